"""Converts real-world feeds to items: RSS of all versions, RSS 1.0/RDF, Atom, JSON Feed, including malformed ones.

In: the bytes of a feed. Out: its entries in order of time, each a flat document `<item>` with the common attributes of
RSS and Atom under their RSS names, as plain text, and everything else that the feed has in simple elements (RoSeS 3.2:
a flat, open set of attributes). A link in an HTML text is kept in the text, in parentheses after the words it is
attached to, so that conditions on links find it.
"""

from __future__ import annotations

import calendar
import hashlib
import io
import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import feedparser
from lxml import etree

from fishweir.algebra.simple_paths import xml_name
from fishweir.intake.sources.addresses import without_credentials
from fishweir.intake.sources.discovery import find_feed
from fishweir.intake.sources.json_feed import is_json, json_entries
from fishweir.intake.sources.written import Written, written_entries
from fishweir.records import dataclass

BLOCKS = frozenset((
    "address", "article", "aside", "blockquote", "br", "dd", "div", "dl", "dt", "figure", "footer", "h1", "h2",
    "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "nav", "ol", "p", "pre", "section", "table", "td",
    "th", "tr", "ul",
))  # fmt: skip
HIDDEN = frozenset(("script", "style", "template", "noscript"))
DATES = ("published", "updated", "created")
HANDLED = frozenset((
    "title", "link", "links", "summary", "content", "author", "authors", "contributors", "publisher", "tags",
    "id", "guidislink", "language", "published", "updated", "created", "source", "enclosures", "comments",
))  # fmt: skip
HTML = etree.HTMLParser(no_network=True, remove_comments=True, remove_pis=True, huge_tree=True)
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SPACE = re.compile(r"\s+")
_PREFIXED = re.compile(rb"<(\w+):(?:item|entry)[\s>]")
_MARKUP = re.compile(r"</\w+>|&#?\w+;")
_ADDRESS = re.compile(r" ?\(https?://\S*\)")


@dataclass(frozen=True, slots=True)
class Item:
    """An entry: `key` tells whether it is new; `timestamp` is None if the feed gives no time.

    Entries with the same guid, title, link, description and date have the same key. So a changed entry is new, and
    entries without a guid that share a link are distinguished. URLs within the description are ignored, and the link is
    used as written: when resolved, both depend on where the feed was found. Entries with the same `guid` are versions
    of one entry; it is empty if the entry has none.
    """

    key: str
    timestamp: float | None
    body: bytes
    guid: str = ""
    context: str | None = None


@dataclass(frozen=True, slots=True)
class About:
    """The metadata of a feed, as plain text."""

    title: str = ""
    link: str = ""
    description: str = ""


@dataclass(frozen=True, slots=True)
class Feed:
    """A parsed text: its items, the oldest first; `problem` if it is not a feed.

    `elsewhere` is the feed that a page declares which is not a feed itself.
    """

    items: tuple[Item, ...]
    problem: str | None = None
    about: About = About()
    elsewhere: str | None = None


def parse_feed(body: bytes, url: str = "", content_type: str = "") -> Feed:
    """The items of a feed; never raises."""
    url = without_credentials(url)
    try:
        entries, channel = _from_json(body, url) if is_json(body) else _from_xml(body, url, content_type)
        about = About(*(_xml_text(_text(channel, name) or "") for name in ("title", "link", "subtitle")))
    except NoFeed as error:
        return Feed((), str(error), elsewhere=find_feed(body, url))
    except Exception as error:  # any exception of the lenient parser is caused by the feed
        return Feed((), f"it cannot be read: {type(error).__name__}: {error}")
    late = float("inf")
    entries.reverse()  # feeds list the newest first
    entries.sort(key=lambda item: late if item.timestamp is None else item.timestamp)
    return Feed(tuple({item.key: item for item in entries}.values()), about=about)


class NoFeed(ValueError):
    """A text that is not a feed."""


def _from_json(body: bytes, url: str) -> tuple[list[Item], dict[str, Any]]:
    try:
        entries, channel = json_entries(body)
    except ValueError as error:
        raise NoFeed(f"it is not a feed: {error}") from None
    return [to_item(entry, channel, url, None) for entry in entries], channel


def _from_xml(body: bytes, url: str, content_type: str) -> tuple[list[Item], dict[str, Any]]:
    headers = {"content-location": url} | ({"content-type": content_type} if content_type else {})
    parsed = feedparser.parse(io.BytesIO(body), response_headers=headers)
    if not parsed.entries and (prefix := _PREFIXED.search(body)):  # in an unknown namespace
        body = re.sub(rb"(</?)" + prefix[1] + rb":", rb"\1", body)
        parsed = feedparser.parse(io.BytesIO(body), response_headers=headers)
    if not parsed.entries and not parsed.get("version"):
        reason = parsed.get("bozo_exception")
        harmless = reason is None or isinstance(reason, feedparser.exceptions.ThingsNobodyCaresAboutButMe)
        raise NoFeed("it is not a feed" if harmless else f"it is not a feed: {reason}")
    written: list[Any] = written_entries(body, parsed.get("encoding"))
    if written and not parsed.entries:
        raise NoFeed(f"it is not a feed: its {len(written)} entries are in a namespace that no feed format uses")
    if len(written) != len(parsed.entries):  # broken beyond comparison
        written = [None] * len(parsed.entries)
    channel = dict(parsed.get("feed", {}))
    return [to_item(dict(e), channel, url, own) for e, own in zip(parsed.entries, written, strict=True)], channel


def to_item(entry: dict[str, Any], channel: Mapping[str, Any], url: str, own: Written | None) -> Item:
    if own is not None:
        entry = corrected(entry, own)
    seconds = next((s for name in DATES if (s := _seconds(entry.get(f"{name}_parsed"))) is not None), None)
    root = etree.Element("item")
    found: dict[str, str] = {}
    for name, value in attributes(entry, channel, url, seconds):
        child = etree.SubElement(root, name)
        if isinstance(value, str):
            child.text = value
            found.setdefault(name, value)
        else:
            for key, text in value.items():
                child.set(key, text)
    body: bytes = etree.tostring(root, encoding="utf-8")
    link = own.link if own is not None else found.get("link", "")
    parts = [found.get("guid", ""), found.get("title", ""), link, found.get("pubdate", "")]
    parts.append(_ADDRESS.sub("", found.get("description", "")))
    identity = json.dumps(parts).encode() if any(parts) else body
    guid = found.get("guid", "")
    return Item(_digest(identity), seconds, body, _digest(guid.encode()) if guid else "")


def _digest(text: bytes) -> str:
    return hashlib.blake2b(text, digest_size=8).hexdigest()


def updated(body: bytes) -> bytes:
    """The item, marked as a new version of an earlier one."""
    return body.replace(b"<item", b'<item change="updated"', 1)


def corrected(entry: dict[str, Any], own: Written) -> dict[str, Any]:
    """The entry with only its own title, its verbatim guid, and without a link derived from a guid that is not one."""
    wrong = set() if own.has_title else {"title"}
    if (
        not own.link
        and entry.get("link") == entry.get("id")
        and not own.guid.lower().startswith(("http://", "https://"))
    ):
        wrong.add("link")
    if own.description is not None:
        html = {"type": "text/html", "value": own.description}
        entry = entry | {"summary": own.description, "summary_detail": html}
    return {name: value for name, value in entry.items() if name not in wrong} | {"id": own.guid}


def attributes(
    entry: Mapping[str, Any], channel: Mapping[str, Any], url: str, seconds: float | None
) -> Iterator[tuple[str, str | dict[str, str]]]:
    """The names and texts of the item's children; an enclosure has attributes."""
    contents = [_plain(part) for part in entry.get("content", ())]
    summary = _text(entry, "summary") if "summary_detail" in entry or not contents else None
    single = {
        "title": _text(entry, "title"),
        "link": entry.get("link"),
        "description": summary or next(iter(contents), None),
        "pubdate": _iso(seconds) or next((entry[name] for name in DATES if entry.get(name)), None),
        "updated": _iso(_seconds(entry.get("updated_parsed"))) if entry.get("published") else None,
        "guid": entry.get("id"),
        "comments": entry.get("comments"),
        "language": entry.get("language") or channel.get("language"),
    }
    several = {
        "author": [a.get("name") or a.get("email") for a in entry.get("authors", ())] or [entry.get("author")],
        "category": [tag.get("term") or tag.get("label") for tag in entry.get("tags") or ()],
        "content": [text for text in contents if text != summary] if summary else contents[1:],
    }
    others = {xml_name(k): v for k, v in entry.items() if k not in HANDLED and not k.endswith(("_detail", "_parsed"))}
    origin = {"channel": _text(channel, "title"), "channel_url": url}
    pairs = [*single.items(), *((n, v) for n, vs in several.items() for v in vs), *others.items(), *origin.items()]
    yield from ((name, fit) for name, value in pairs if isinstance(value, str) and (fit := _xml_text(value)))
    for link in entry.get("links", ()):
        if link.get("rel") == "enclosure" and link.get("href"):
            yield (
                "enclosure",
                {
                    name: _xml_text(str(link[key]))
                    for name, key in (("url", "href"), ("type", "type"), ("length", "length"))
                    if link.get(key)
                },
            )


def _text(part: Mapping[str, Any], name: str) -> str | None:
    """A part as plain text. The detail may belong to a nested element with a different value."""
    value, detail = part.get(name), part.get(f"{name}_detail") or {}
    if not isinstance(value, str):
        return None
    if detail.get("value", value) != value:
        return html_to_text(value) if _MARKUP.search(value) else value
    return _plain({"value": value, **detail})


def _plain(detail: Mapping[str, Any]) -> str:
    value = str(detail.get("value", ""))
    return html_to_text(value) if "html" in str(detail.get("type", "")) else value


def html_to_text(html: str) -> str:
    """The words of an HTML text on one line, with the address of each link after its text."""
    if "<" not in html and "&" not in html:
        return _SPACE.sub(" ", html).strip()
    root = etree.HTML(_xml_text(html) or " ", HTML)
    return "" if root is None else _SPACE.sub(" ", "".join(_words(root))).strip()


def _words(root: Any) -> Iterator[str]:
    """The texts in order, without recursion: real HTML is deeply nested."""
    for event, element in etree.iterwalk(root, events=("start", "end")):
        tag = element.tag if isinstance(element.tag, str) else ""
        if event == "start":
            hidden = tag in HIDDEN or any(above.tag in HIDDEN for above in element.iterancestors())
            yield " " if tag in BLOCKS else ""
            yield "" if hidden else element.text or ""
            continue
        href = element.get("href", "") if tag == "a" else ""
        if href.startswith(("http://", "https://")) and href not in "".join(element.itertext()):
            yield f" ({href})"
        yield " " if tag in BLOCKS else ""
        yield element.tail or "" if element is not root else ""


def _xml_text(text: str) -> str:
    """The text without the characters that XML does not allow."""
    return _NOT_XML.sub("", text).strip()


def _seconds(moment: Any) -> float | None:
    try:
        return None if moment is None else float(calendar.timegm(moment))
    except (ValueError, OverflowError, TypeError):
        return None


def _iso(seconds: float | None) -> str | None:
    try:
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return None

"""Human-readable results: a title, a link, a summary. Mails, feeds and notifications use them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

from lxml import etree

from fishweir.algebra.documents import BadDocument, parse_document
from fishweir.pipeline.result import Result
from fishweir.records import dataclass

TITLE = 120
_BAD = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class Entry:
    id: str
    title: str
    link: str | None
    summary: str
    timestamp: float


def entry_of(result: Result, media: str | None = None) -> Entry:
    """The entry of a result: a feed's item has its own title, link and description, anything else its text or
    columns.
    """
    title, link, summary = "", None, ""
    if media in ("text", "html") or not isinstance(result.output, str | Mapping):
        summary = str(result.output)
        title = _plain(summary) if media == "html" else summary
    elif isinstance(result.output, Mapping):
        summary = ", ".join(f"{name}: {value}" for name, value in result.output.items())
    else:
        title, link, summary = _item(result.output)
    title = _short(title or summary or ", ".join(result.documents))
    return Entry(id_of(result), printable(title), link, printable(summary), result.timestamp)


def id_of(result: Result) -> str:
    """An id that is the same for equal results, whenever they are delivered."""
    digest = hashlib.sha256(result.to_json().encode()).hexdigest()[:32]
    return f"urn:fishweir:{digest}"


def printable(text: str) -> str:
    return _BAD.sub("", text)


def _item(output: str) -> tuple[str, str | None, str]:
    try:
        root = parse_document(output.encode())
    except (BadDocument, ValueError):
        try:
            root = parse_document(f"<result>{output}</result>".encode())
        except (BadDocument, ValueError):
            return "", None, output
    found = {name: _first(root, name) for name in ("title", "link", "description", "summary", "content")}
    text = " ".join(" ".join(map(str, root.itertext())).split())
    summary = found["description"] or found["summary"] or found["content"] or ("" if found["title"] else text)
    return found["title"] or text, found["link"] or None, summary


def _first(root: etree._Element, name: str) -> str:
    for child in root:
        if isinstance(child.tag, str) and etree.QName(child).localname.lower() == name:
            text = " ".join("".join(map(str, child.itertext())).split())
            return text or child.get("href", "")
    return ""


def _plain(html: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", html).split())


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= TITLE else f"{line[: TITLE - 1]}…"

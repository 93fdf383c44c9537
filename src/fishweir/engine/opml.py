"""OPML: exports the feeds of a home, and converts the feeds of an OPML document to statements.

User and password in the URL of a feed are not exported. Names are derived from the titles in a document, so that
statements can use them without quotes. A feed whose URL is already registered is skipped.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path

from lxml import etree

from fishweir.algebra.documents import BadDocument, parse_document
from fishweir.algebra.nodes import StreamDefinition
from fishweir.errors import SourceError
from fishweir.intake import is_url, without_credentials

LONGEST = 60
"""The maximum length of a name."""


def to_opml(feeds: Mapping[str, tuple[StreamDefinition, Mapping[str, str]]]) -> str:
    """The feeds of a home as OPML, given by name, each with its metadata."""
    root = etree.Element("opml", version="2.0")
    etree.SubElement(etree.SubElement(root, "head"), "title").text = "Feeds of Fishweir"
    body = etree.SubElement(root, "body")
    for name, (stream, about) in sorted(feeds.items()):
        place = stream.path or ""
        url = without_credentials(place) if "://" in place else Path(place).as_uri()
        given = {"title": about.get("title"), "htmlUrl": about.get("link"), "description": about.get("description")}
        metadata = {key: value for key, value in given.items() if value}
        etree.SubElement(body, "outline", {"type": "rss", "text": name, "xmlUrl": url, **metadata})
    text: bytes = etree.tostring(root, encoding="utf-8", xml_declaration=True, pretty_print=True)
    return text.decode()


def from_opml(document: bytes, taken: Collection[str], known: Collection[str]) -> list[tuple[str, str]]:
    """Names and URLs of the feeds in a document, without those whose URLs are in `known`. No name is in `taken`."""
    try:
        root = parse_document(document)
    except BadDocument as error:
        raise SourceError(f"not an OPML document: {error}") from None
    if str(root.tag).lower() != "opml":
        raise SourceError(f"not an OPML document: the document element is {root.tag}")
    names, urls = {name.lower() for name in taken}, {without_credentials(url) for url in known}
    feeds: list[tuple[str, str]] = []
    for outline in root.iter("outline"):
        given = {str(key).lower(): str(value).strip() for key, value in outline.attrib.items()}
        url = given.get("xmlurl", "").replace("'", "%27")
        if not is_url(url) or without_credentials(url) in urls:
            continue
        name = _name(given.get("text") or given.get("title") or url.partition("://")[2], names)
        names.add(name.lower())
        urls.add(without_credentials(url))
        feeds.append((name, url))
    return feeds


def _name(title: str, taken: Collection[str]) -> str:
    words = re.sub(r"\W+", "_", title).strip("_")[:LONGEST] or "feed"
    name = words if words[0].isalpha() else f"feed_{words}"
    number = 2
    unique = name
    while unique.lower() in taken:
        unique, number = f"{name}_{number}", number + 1
    return unique


def registration(feeds: list[tuple[str, str]]) -> str:
    """The statements that register feeds."""
    return "\n".join(f"register feed '{url}' as '{name}';" for name, url in feeds)

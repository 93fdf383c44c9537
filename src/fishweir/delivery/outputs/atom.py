"""`atom 'FILE'`: an Atom 1.0 feed of the newest results."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from lxml import etree

from fishweir.algebra.documents import new_parser
from fishweir.delivery.outputs.entries import Entry
from fishweir.delivery.outputs.feed_file import FeedFile, link_of, moment

ATOM = "{http://www.w3.org/2005/Atom}"
TIME = "{urn:fishweir}timestamp"
NAMESPACES: Any = {None: ATOM[1:-1], "fishweir": "urn:fishweir"}


class Atom(FeedFile):
    def read(self) -> list[Entry]:
        try:
            root = etree.fromstring(self.path.read_bytes(), new_parser())
        except etree.XMLSyntaxError:
            return []
        return [_read(entry) for entry in root.iter(f"{ATOM}entry")]

    def render(self, name: str, entries: Sequence[Entry], now: float) -> bytes:
        feed = etree.Element(f"{ATOM}feed", nsmap=NAMESPACES)
        _add(feed, "title", name)
        _add(feed, "id", f"urn:fishweir:{hashlib.sha256(str(self.path).encode()).hexdigest()[:32]}")
        _add(feed, "updated", moment(now).isoformat())
        etree.SubElement(etree.SubElement(feed, f"{ATOM}author"), f"{ATOM}name").text = "Fishweir"
        for one in entries:
            entry = etree.SubElement(feed, f"{ATOM}entry")
            _add(entry, "title", one.title)
            _add(entry, "id", one.id)
            _add(entry, "updated", moment(one.timestamp).isoformat())
            link = link_of(one)
            if link is not None:
                etree.SubElement(entry, f"{ATOM}link", href=link)
            _add(entry, "content" if link is None else "summary", one.summary)  # RFC 4287: a link or a content element
            etree.SubElement(entry, TIME).text = repr(one.timestamp)
        return etree.tostring(feed, encoding="utf-8", xml_declaration=True, pretty_print=True)


def _read(entry: etree._Element) -> Entry:
    link = entry.find(f"{ATOM}link")
    return Entry(
        entry.findtext(f"{ATOM}id") or "",
        entry.findtext(f"{ATOM}title") or "",
        None if link is None else link.get("href"),
        entry.findtext(f"{ATOM}summary") or entry.findtext(f"{ATOM}content") or "",
        float(entry.findtext(TIME) or 0),
    )


def _add(parent: etree._Element, name: str, text: str) -> None:
    etree.SubElement(parent, f"{ATOM}{name}").text = text

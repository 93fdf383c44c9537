"""`rss 'FILE'`: an RSS 2.0 feed of the newest results."""

from __future__ import annotations

from collections.abc import Sequence
from email.utils import format_datetime

from lxml import etree

from fishweir.algebra.documents import new_parser
from fishweir.delivery.outputs.entries import Entry
from fishweir.delivery.outputs.feed_file import FeedFile, link_of, moment

TIME = "{urn:fishweir}timestamp"


class Rss(FeedFile):
    def read(self) -> list[Entry]:
        try:
            root = etree.fromstring(self.path.read_bytes(), new_parser())
        except etree.XMLSyntaxError:
            return []
        return [
            Entry(
                item.findtext("guid") or "",
                item.findtext("title") or "",
                item.findtext("link"),
                item.findtext("description") or "",
                float(item.findtext(TIME) or 0),
            )
            for item in root.iter("item")
        ]

    def render(self, name: str, entries: Sequence[Entry], now: float) -> bytes:
        rss = etree.Element("rss", version="2.0", nsmap={"fishweir": "urn:fishweir"})
        channel = etree.SubElement(rss, "channel")
        _add(channel, "title", name)
        _add(channel, "link", next(filter(None, map(link_of, entries)), "https://localhost/"))
        _add(channel, "description", f"Results of {name}")
        _add(channel, "lastBuildDate", format_datetime(moment(now)))
        for entry in entries:
            item = etree.SubElement(channel, "item")
            _add(item, "title", entry.title)
            if (link := link_of(entry)) is not None:
                _add(item, "link", link)
            _add(item, "description", entry.summary)
            etree.SubElement(item, "guid", isPermaLink="false").text = entry.id
            _add(item, "pubDate", format_datetime(moment(entry.timestamp)))
            _add(item, TIME, repr(entry.timestamp))
        return etree.tostring(rss, encoding="utf-8", xml_declaration=True, pretty_print=True)


def _add(parent: etree._Element, name: str, text: str) -> None:
    etree.SubElement(parent, name).text = text

"""Autodiscovery: the feed that an HTML page links with `<link rel="alternate" type="application/rss+xml"
href="...">`."""

from __future__ import annotations

from urllib.parse import urljoin

from lxml import etree

TYPES = (
    "application/rss+xml", "application/atom+xml", "application/feed+json", "application/rdf+xml",
    "application/x.atom+xml", "application/x-atom+xml",
)  # fmt: skip


def find_feed(page: bytes, url: str) -> str | None:
    """The address of the first feed that a page declares in its head, or None."""
    if b"<" not in page[:1_000_000]:
        return None
    parser = etree.HTMLParser(no_network=True, huge_tree=True, recover=True)
    try:
        root = etree.fromstring(page, parser)
    except (etree.XMLSyntaxError, ValueError):
        return None
    if root is None:
        return None
    base = urljoin(url, next((b.get("href", "") for b in root.iter("base")), ""))
    for link in root.iter("link"):
        relations, kind = link.get("rel", "").lower().split(), link.get("type", "").partition(";")[0].strip().lower()
        href = link.get("href", "").strip()
        if href and "alternate" in relations and "stylesheet" not in relations and kind in TYPES:
            found = urljoin(base, href)
            return found if found.lower().startswith(("http://", "https://")) and found != url else None
    return None

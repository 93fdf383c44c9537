"""The verbatim guid, title and description of feed entries.

feedparser resolves a guid like a link, and confuses the title or description of an image or source inside an entry with
those of the entry. This module reads the children of each entry again. In: the bytes of a feed. Out: one `Written` per
entry, in the order of the feed.
"""

from __future__ import annotations

from typing import Any

from lxml import etree

from fishweir.algebra.documents import local_name
from fishweir.records import dataclass

OTHERS = frozenset(("image", "source", "textinput"))
"""Elements of an entry that have their own description."""
HOLDERS = frozenset(("channel", "rss", "rdf", "feed"))
TITLES = (
    "http://purl.org/dc/elements/1.1/",
    "http://search.yahoo.com/mrss/",
    "http://search.yahoo.com/mrss",
)
"""Other namespaces whose `title` counts as the title of the parent entry."""
ABOUT = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}about"


@dataclass(frozen=True, slots=True)
class Written:
    """`guid` and `link` are empty if missing. `description` is set only if feedparser might confuse it with another."""

    has_title: bool
    guid: str
    link: str
    description: str | None = None


def written_entries(body: bytes, encoding: str | None) -> list[Written]:
    """The verbatim parts of each entry; for a broken feed, those that can be found."""
    root = _root(body, encoding)
    if root is None:
        return []
    return [_written(element) for element in root.iter(etree.Element) if _is_entry(element)]


def _root(body: bytes, encoding: str | None) -> Any:
    for given in (encoding, None):
        try:
            return etree.fromstring(body, _parser(given))
        except LookupError:
            continue
        except (etree.XMLSyntaxError, ValueError):
            return None
    return None


def _parser(encoding: str | None) -> etree.XMLParser:
    """A parser that does not expand entities, so that large trees are safe."""
    return etree.XMLParser(
        recover=True, resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True, encoding=encoding
    )


def _is_entry(element: Any) -> bool:
    above = element.getparent()
    return _name(element) in ("item", "entry") and above is not None and _name(above) in HOLDERS


def _written(entry: Any) -> Written:
    own = etree.QName(entry).namespace
    titled, guid, link = False, entry.get(ABOUT, ""), ""
    described, description = False, ""
    for child in entry.iterchildren(etree.Element):
        name, namespace = _name(child), etree.QName(child).namespace
        if name == "title" and (namespace == own or namespace in TITLES):
            titled = True
        elif name in ("guid", "id") and namespace == own:
            guid = _text(child) or guid
        elif name == "link" and not link and child.get("rel", "alternate") == "alternate":
            link = _text(child) or child.get("href", "")
        elif name == "description" and namespace == own:
            description = _text(child) or description
        elif name in OTHERS:
            described = described or any(_name(part) == "description" for part in child.iterchildren(etree.Element))
    return Written(titled, guid.strip(), link.strip(), description if described else None)


def _text(element: Any) -> str:
    return "".join(element.itertext(etree.Element)).strip()


def _name(element: Any) -> str:
    return local_name(element.tag).lower()

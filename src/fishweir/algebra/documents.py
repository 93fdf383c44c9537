"""Documents as trees: safe parsing, preorder node ids, string values, values at simple paths.

A document is an lxml element with the names of the elements that stood above it before its file was
split (its *context*). Node ids are preorder positions of elements, the document element being 0.
A tuple is turned into a flat document, its element named after the stream.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from lxml import etree

from fishweir.algebra.nodes import Step
from fishweir.algebra.simple_paths import SimplePath, xml_name
from fishweir.algebra.values import to_text, to_timestamp
from fishweir.records import dataclass

Element = etree._Element

MAX_DOCUMENT = 64 * 1024 * 1024
"""Longest document in bytes; libxml2 itself refuses text nodes over 10 MB and depth over 256."""


class BadDocument(ValueError):
    """A document that cannot be read; the message is the reason it is set aside for."""


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed document, as used by the oracle and for constructing outputs."""

    id: str
    timestamp: float
    root: Element
    context: tuple[str, ...] = ()


def new_parser(comments: bool = False, encoding: str | None = None, recover: bool = False) -> etree.XMLParser:
    """A parser that expands no external entity, reaches no network and loads no DTD."""
    return etree.XMLParser(
        resolve_entities="internal",  # type: ignore[arg-type]  # missing in the stubs
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        remove_comments=not comments,
        remove_pis=not comments,
        encoding=encoding,
        recover=recover,
    )


ABOUT_IDS = {etree.ErrorTypes.DTD_ID_REDEFINED, etree.ErrorTypes.DTD_XMLID_VALUE}

PARSERS = {comments: new_parser(comments) for comments in (False, True)}
"""Created once: creating a parser takes longer than parsing a small document."""


def parse_document(body: bytes, comments: bool = False) -> Element:
    """The document element of an XML text. Raises BadDocument with the reason."""
    if not body.strip():
        raise BadDocument("the document is empty")
    if len(body) > MAX_DOCUMENT:
        raise BadDocument(f"the document has {len(body):,} bytes, more than {MAX_DOCUMENT:,}")
    try:
        return etree.fromstring(body, PARSERS[comments])
    except (etree.XMLSyntaxError, LookupError, ValueError) as error:
        if getattr(error, "code", None) in ABOUT_IDS:
            parser = new_parser(comments, recover=True)
            root = etree.fromstring(body, parser)
            if is_well_formed(parser.error_log):
                return root
        raise BadDocument(syntax_reason(error)) from error


def is_well_formed(errors: Any) -> bool:
    """Whether libxml2 complains only about ids that are duplicate or malformed, which is a matter of validity.

    A parser with `collect_ids=False` ignores ids, but loads DTDs.
    """
    found = {error.type for error in errors}
    return bool(found) and found <= ABOUT_IDS


def syntax_reason(error: Exception) -> str:
    """The reason that libxml2 gives. It reports external entities, which are never loaded, as undefined."""
    hint = "; external entities are not loaded" if "Entity" in str(error) else ""
    return f"not well-formed XML: {error}{hint}"


def text_to_body(text: str) -> bytes:
    """The UTF-8 bytes of an XML text, without the encoding of its declaration, which no longer applies."""
    if text.startswith("<") and not text.startswith("<?"):
        return text.encode()
    return re.sub(r"^(\ufeff?\s*<\?xml[^>]*?)\s+encoding=(\"[^\"]*\"|'[^']*')", r"\1", text, count=1).encode()


@lru_cache(maxsize=65536)
def local_name(tag: str) -> str:
    return tag.rpartition("}")[2]


def elements(root: Element) -> Iterator[Element]:
    """All elements in preorder: the position is the node id."""
    return root.iter(etree.Element)


_string = etree.XPath("string()", smart_strings=False)


def string_value(element: Element) -> str:
    """The XPath string value. In documents parsed without comments, it is the concatenation of all text."""
    if len(element) == 0:
        return element.text or ""
    return str(_string(element))


def item_text(root: Element) -> str:
    """All text of an item including attribute values, separated by spaces."""
    pieces = [piece for element in elements(root) for piece in (element.text, element.tail, *element.attrib.values())]
    return " ".join(str(piece) for piece in pieces if piece)


def values_at(root: Element, path: tuple[Step, ...]) -> list[str]:
    """The values at a path below the document element; the empty path is the whole item."""
    if not path:
        return [item_text(root)]
    found = [root]
    for step in path:
        if step.axis == "attribute":
            return [str(element.attrib[key]) for element in found for key in attributes_named(element, step.name)]
        children = [child for element in found for child in element.iterchildren(etree.Element)]
        found = [child for child in children if local_name(child.tag) == step.name]
    values = [string_value(element) for element in found]
    if path[-1].axis == "seconds":
        times = map(to_timestamp, values)
        return [to_text(time) for time in times if time is not None]
    return values


def attributes_named(element: Element, name: str) -> list[str]:
    """The attributes that a name without a namespace refers to: the one in no namespace, then the others in order."""
    keys = [key for key in map(str, element.attrib) if local_name(key) == name]
    return sorted(keys, key=lambda key: key != name)


ATTRIBUTE, MOST_ATTRIBUTES = 1 << 25, 64
"""If an element has several attributes with one local name, the node number of the i-th is the element's number plus i
* ATTRIBUTE, which exceeds the number of elements of any document. From MOST_ATTRIBUTES on, they count as one."""


def attribute_at(element: Element, name: str, node: int) -> str:
    """The attribute with this local name that a node number refers to."""
    return attributes_named(element, name)[node // ATTRIBUTE]


def attribute_id(element: int, key: str, place: int) -> str:
    """An attribute's id in results. It includes the namespace if another attribute of the same name precedes it."""
    return f"{element}@{key if place else local_name(key)}"


def tuple_to_document(stream: str, row: Mapping[str, Any]) -> Element:
    """A tuple as a flat document. A NULL column is an absent element, so it satisfies no comparison."""
    root = etree.Element(xml_name(stream))
    for column, value in row.items():
        if value is not None:
            etree.SubElement(root, xml_name(column)).text = xml_text(to_text(value))
    return root


def xml_text(text: str) -> str:
    """The text without the control characters that XML does not allow."""
    return re.sub(r"[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", text)


def first_value(root: Element, path: SimplePath) -> str | None:
    """The value of the first node at a path: relative paths start at a child or at the element itself."""
    steps = [s.name for s in path.steps if s.axis == "child"]
    attribute = next((s.name for s in path.steps if s.axis == "attribute"), None)
    for element in elements(root):
        if not _ends_with(element, steps, path.absolute):
            continue
        if attribute is None:
            return string_value(element)
        for key in attributes_named(element, attribute):
            return str(element.attrib[key])
    return None


def at_path(element: Element, path: SimplePath) -> bool:
    """Whether an element is at the end of a path of child steps."""
    return _ends_with(element, [s.name for s in path.steps if s.axis == "child"], path.absolute)


def _ends_with(element: Element, names: list[str], absolute: bool) -> bool:
    node: Element | None = element
    for name in reversed(names):
        if node is None or (name != "*" and local_name(node.tag) != name):
            return False
        node = node.getparent()
    return not absolute or node is None

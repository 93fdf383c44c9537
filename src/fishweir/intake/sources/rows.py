"""The rows of an XML file that changes in place: their keys, and their equality."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Iterator
from typing import Any

from lxml import etree

from fishweir.algebra.documents import Element, elements, first_value, local_name, string_value
from fishweir.algebra.simple_paths import SimplePath, parse_path
from fishweir.intake.sources.split import context_of, has_name, is_outermost, serialise
from fishweir.records import dataclass

INSERTED, UPDATED, DELETED = "inserted", "updated", "deleted"
"""Values of the log's column `change`, for rows of a changing file and entries of a feed."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the file. Equal digests mean equal rows; a row without a key is invalid."""

    key: str | None
    digest: str
    body: bytes
    context: str
    line: int | None = None


class RowReader:
    """Finds the rows of a version by the paths of a stream definition. The path of the key is relative to the row."""

    def __init__(self, rows: str, key: str) -> None:
        self.rows, self.key = parse_path(rows), parse_path(key)
        self.key_anywhere = self.key.absolute or key.startswith("//")

    def read(self, root: Element) -> Iterator[Row]:
        """The rows in the order of the file. Nested rows are part of the outer row."""
        for element in elements(root):
            if is_outermost(element, self.rows):
                yield self.row(element)

    def row(self, element: Element) -> Row:
        own = copy.deepcopy(element)
        own.tail = None
        line: Any = element.sourceline
        return Row(self.key_of(own), digest(own), serialise(element), context_of(element), line)

    def key_of(self, row: Element) -> str | None:
        """The key of a single row."""
        key = first_value(row, self.key) if self.key_anywhere else key_value(row, self.key)
        return (key or "").strip() or None


def key_value(row: Element, path: SimplePath) -> str | None:
    """The value of the first node at a path that starts at a child of the row, or at the row itself."""
    steps = [step for step in path.steps if step.axis == "child"]
    nodes = _below(row, [step.name for step in steps])
    if not nodes and steps and steps[0].name == local_name(str(row.tag)):
        nodes = _below(row, [step.name for step in steps[1:]])
    if path.steps[-1].axis == "child":
        return string_value(nodes[0]) if nodes else None
    values = (str(v) for n in nodes for k, v in n.attrib.items() if local_name(str(k)) == path.last)
    return next(values, None)


def _below(row: Element, names: list[str]) -> list[Element]:
    nodes = [row]
    for name in names:
        children = (child for node in nodes for child in node.iterchildren(etree.Element))
        nodes = [child for child in children if has_name(child, name)]
    return nodes


def digest(row: Element) -> str:
    """A digest of a detached row's canonical form (C14N), ignoring white space between elements."""
    for node in row.iter():
        if len(node) and node.text and not node.text.strip():
            node.text = None
        if node.tail and not node.tail.strip():
            node.tail = None
    try:
        text = etree.tostring(row, method="c14n", exclusive=True, with_comments=False)
    except etree.C14NError:  # it rejects relative namespace URIs
        text = etree.tostring(row)
    return hashlib.blake2b(text, digest_size=16).hexdigest()

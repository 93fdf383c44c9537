"""Reads XML files as documents: the whole file, or each outermost element at a path.

A split file is parsed in chunks. After each chunk, everything before the open elements is dropped, so memory contains
one chunk and the open document, regardless of the size of the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from lxml import etree

from fishweir.algebra.documents import (
    MAX_DOCUMENT,
    BadDocument,
    Element,
    at_path,
    is_well_formed,
    local_name,
    syntax_reason,
)
from fishweir.algebra.nodes import StreamDefinition
from fishweir.algebra.simple_paths import SimplePath, parse_path
from fishweir.intake.schema import file_problem, log_batch

CHUNK = 256 * 1024
BATCH_DOCUMENTS, BATCH_BYTES = 1_000, 8 * 1024 * 1024

UNREADABLE = (etree.XMLSyntaxError, BadDocument, LookupError, ValueError)


def is_outermost(element: Element, path: SimplePath) -> bool:
    """Whether an element is at the path and none of its ancestors is."""
    return at_path(element, path) and not any(at_path(above, path) for above in element.iterancestors())


def has_name(element: Element, name: str) -> bool:
    return name in ("*", local_name(str(element.tag)))


def context_of(element: Element) -> str:
    """The local names of the elements above, from the document element down, separated by slashes."""
    return "/".join(local_name(str(above.tag)) for above in reversed(list(element.iterancestors())))


def serialise(element: Element) -> bytes:
    """An element as a separate document: with the namespaces in scope, without its tail."""
    return bytes(etree.tostring(element, encoding="UTF-8", with_tail=False))


@dataclass
class _Batch:
    """Documents of one file that are collected for a batch of entries."""

    bodies: list[bytes] = field(default_factory=list)
    contexts: list[str] = field(default_factory=list)
    size: int = 0

    def add(self, body: bytes, context: str) -> None:
        self.bodies.append(body)
        self.contexts.append(context)
        self.size += len(body)

    def is_full(self) -> bool:
        return len(self.bodies) >= BATCH_DOCUMENTS or self.size >= BATCH_BYTES

    def take(self, stream: StreamDefinition, now: float) -> pa.RecordBatch:
        columns = {"body": self.bodies, "context": self.contexts}
        batch = log_batch(stream, len(self.bodies), now, columns)
        self.bodies, self.contexts, self.size = [], [], 0
        return batch


def xml_batches(stream: StreamDefinition, path: Path, now: float) -> Iterator[pa.RecordBatch]:
    """The documents of an XML file in order. An unreadable remainder becomes one problem entry at the end."""
    size = path.stat().st_size
    if size == 0:
        yield file_problem(stream, path, "the file is empty", now)
    elif stream.split is None and size > MAX_DOCUMENT:
        yield file_problem(stream, path, f"the document has {size:,} bytes, more than {MAX_DOCUMENT:,}", now)
    elif stream.split is None:
        yield log_batch(stream, 1, now, {"body": [path.read_bytes()]})
    else:
        yield from _split_batches(stream, path, parse_path(stream.split), now)


def _split_batches(stream: StreamDefinition, path: Path, split: SimplePath, now: float) -> Iterator[pa.RecordBatch]:
    batch, reason, taken = _Batch(), None, 0
    try:
        for element, context in split_elements(path, split):
            batch.add(serialise(element), context)
            taken += 1
            if batch.is_full():
                yield batch.take(stream, now)
    except UNREADABLE as error:
        reason = str(error) if isinstance(error, BadDocument) else syntax_reason(error)
    if batch.bodies:
        yield batch.take(stream, now)
    if reason is not None:
        yield file_problem(stream, path, f"after {taken} documents: {reason}", now)


def split_elements(path: Path, split: SimplePath) -> Iterator[tuple[Element, str]]:
    """The outermost elements at a path, each with its context. Raises one of UNREADABLE if the file is invalid.

    An element is only valid until the next one is requested.
    """
    root = _document_element_tag(path)
    parser = _pull_parser(("start", "end"), ["{*}" + split.last, *([root] if root else [])])
    tree = _OpenTree(split)
    broken: Exception | None = None
    with path.open("rb") as file:
        while broken is None:
            chunk = file.read(CHUNK)
            try:
                parser.feed(chunk) if chunk else parser.close()
            except UNREADABLE as error:
                broken = None if is_well_formed(parser.feed_error_log) else error
            yield from tree.completed(parser.read_events())
            if not chunk:
                break
            tree.drop_processed(len(chunk))
    if broken is not None:
        raise broken


def _pull_parser(events: tuple[str, ...], tags: list[str] | None = None) -> Any:
    """A parser with the same restrictions as algebra.documents.new_parser, for text in chunks. Comments are kept."""
    pull_parser: Any = etree.XMLPullParser  # resolve_entities="internal" is missing in the stubs
    return pull_parser(
        events=events,
        tag=tags,
        resolve_entities="internal",
        no_network=True,
        load_dtd=False,
        huge_tree=False,
    )


def _document_element_tag(path: Path) -> str | None:
    """The first tag of a file, or None; parsing will report the error."""
    parser = _pull_parser(("start",))
    with path.open("rb") as file:
        try:
            while chunk := file.read(CHUNK):
                parser.feed(chunk)
                for _, element in parser.read_events():
                    return str(element.tag)
        except UNREADABLE:
            for _, element in parser.read_events():
                return str(element.tag)
    return None


class _OpenTree:
    """The partially parsed tree: which documents are complete, and what can be dropped."""

    def __init__(self, split: SimplePath) -> None:
        self.split, self.held = split, 0
        self.root: Element | None = None
        self.last: Element | None = None
        self._parent: Element | None = None
        self._matches, self._context = False, ""

    def completed(self, events: Iterator[tuple[str, Element]]) -> Iterator[tuple[Element, str]]:
        for event, element in events:
            if self.root is None:
                self.root = element
            if event == "end" and self._is_document(element):
                self.last = element
                yield element, self._context

    def _is_document(self, element: Element) -> bool:
        """Siblings with the path's last name are either all documents or none is, so only a new parent is checked."""
        if not has_name(element, self.split.last):
            return False
        parent = element.getparent()
        if parent is None or parent is not self._parent:
            self._parent = parent
            self._matches, self._context = is_outermost(element, self.split), context_of(element)
        return self._matches

    def drop_processed(self, size: int) -> None:
        """Drops everything before the open elements. Raises BadDocument if an open document grows too large."""
        node = self.root
        while node is not None and len(node) and not at_path(node, self.split):
            del node[:-1]
            node = node[-1] if isinstance(node[-1].tag, str) else None
        is_open = node is not None and node is not self.last and at_path(node, self.split)
        self.held = self.held + size if is_open else 0
        if self.held > MAX_DOCUMENT:
            raise BadDocument(f"a {self.split.last} element has more than {MAX_DOCUMENT:,} bytes")

"""XML files to documents: a file as it is, or each outermost element at a path.

A split file is parsed in chunks. After each chunk everything left of the open elements is dropped, so
memory holds a chunk and the open document, whatever the size of the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
from lxml import etree

from fishweir.algebra.documents import (
    MAX_DOCUMENT,
    BadDocument,
    Element,
    SimplePath,
    at_path,
    local_name,
    parse_path,
    syntax_reason,
)
from fishweir.algebra.nodes import StreamDefinition
from fishweir.intake.schema import file_problem, log_batch, logger

CHUNK = 256 * 1024
BATCH_DOCUMENTS, BATCH_BYTES = 1_000, 8 * 1024 * 1024

UNREADABLE = (etree.XMLSyntaxError, BadDocument, LookupError, ValueError)


def is_outermost(element: Element, path: SimplePath) -> bool:
    """Whether an element stands at the path and none of its ancestors does."""
    return at_path(element, path) and not any(at_path(above, path) for above in element.iterancestors())


def context_of(element: Element) -> str:
    """Local names of the elements above, from the document element down, joined by slashes."""
    return "/".join(local_name(str(above.tag)) for above in reversed(list(element.iterancestors())))


def serialise(element: Element) -> bytes:
    """An element as a document of its own: with the namespaces in scope, without its tail."""
    return bytes(etree.tostring(element, encoding="UTF-8", with_tail=False))


@dataclass
class _Batch:
    """Documents of one file on their way into a batch of entries."""

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
    """The documents of an XML file in order; what cannot be read is one problem entry at the end."""
    if path.stat().st_size == 0:
        yield file_problem(stream, path, "the file is empty", now)
    elif stream.split is None:
        yield log_batch(stream, 1, now, {"body": [path.read_bytes()]})
    else:
        yield from _split_batches(stream, path, parse_path(stream.split), now)


def _split_batches(
    stream: StreamDefinition, path: Path, split: SimplePath, now: float
) -> Iterator[pa.RecordBatch]:
    batch, reason, taken = _Batch(), None, 0
    try:
        for element in split_elements(path, split):
            batch.add(serialise(element), context_of(element))
            taken += 1
            if batch.is_full():
                yield batch.take(stream, now)
    except UNREADABLE as error:
        reason = str(error) if isinstance(error, BadDocument) else syntax_reason(error)
    if batch.bodies:
        yield batch.take(stream, now)
    if reason is not None:
        yield file_problem(stream, path, f"after {taken} documents: {reason}", now)
    elif not taken:
        logger.warning("stream %s: %s has no element at %s", stream.name, path, stream.split)


def split_elements(path: Path, split: SimplePath) -> Iterator[Element]:
    """The outermost elements at a path as they are complete; raises one of UNREADABLE where the file breaks.

    An element is only good until the next one is asked for.
    """
    parser = etree.XMLPullParser(
        events=("end",), tag="{*}" + split.last, resolve_entities="internal", no_network=True,
        load_dtd=False, huge_tree=False,
    )  # fmt: skip
    guard = _Guard(split)
    with path.open("rb") as file:
        try:
            while chunk := file.read(CHUNK):
                parser.feed(chunk)
                yield from _complete(parser, split)
                guard.drop_processed(parser.root, len(chunk))
            parser.close()
        finally_error = None
        except etree.XMLSyntaxError as error:
            finally_error = error
    yield from _complete(parser, split)
    if finally_error is not None:
        raise finally_error

"""Documents taken from their logs, for those who read results."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from fishweir.algebra.documents import Element, elements, parse_document, tuple_to_document
from fishweir.evaluate.join.state import origin_of
from fishweir.intake.log import StreamLog
from fishweir.pipeline.home import Home, open_log


@dataclass(frozen=True)
class TakenDocument:
    """Its id, its elements by node id, its columns where it is a tuple, the names above it before a split, and the
    document that it is, by `origin_of`: another where a published query passed it on."""

    id: str
    nodes: list[Element]
    values: dict[str, Any] | None
    context: tuple[str, ...]
    origin: int


def take_document(home: Home, stream: int, number: int) -> TakenDocument:
    """A document by its stream and its number there; the last ones are remembered."""
    return _taken(open_log(home.streams, stream), stream, number)


@lru_cache(maxsize=1024)
def _taken(log: StreamLog, stream: int, number: int) -> TakenDocument:
    entry = log.entry(number)
    if entry.values is not None:
        root = tuple_to_document(log.stream.tuple_element, entry.values)
    else:
        root = parse_document(entry.body or b"", comments=True)
    context = tuple(entry.context.split("/")) if entry.context else ()
    origin = origin_of(stream, number) if entry.origin is None else entry.origin
    return TakenDocument(entry.id, list(elements(root)), entry.values, context, origin)

"""Documents taken from their logs, for those who read results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from fishweir.algebra.documents import Element, elements, parse_document, tuple_to_document
from fishweir.evaluate.arrays import Ints
from fishweir.evaluate.join.state import origin_of
from fishweir.intake.log import StreamLog
from fishweir.intake.schema import column_name
from fishweir.pipeline.home import Home, open_log


@dataclass(frozen=True, eq=False)
class TakenDocument:
    """Its id, its columns where it is a tuple, the names above it before a split, and the
    document that it is, by `origin_of`: another where a published query passed it on."""

    id: str
    values: dict[str, Any] | None
    context: tuple[str, ...]
    origin: int
    element: str
    body: bytes | None

    @cached_property
    def nodes(self) -> list[Element]:
        """Its elements by node id; a tuple's are made when somebody asks for them."""
        if self.values is not None:
            return list(elements(tuple_to_document(self.element, self.values)))
        return list(elements(parse_document(self.body or b"", comments=True)))


def take_document(home: Home, stream: int, number: int) -> TakenDocument:
    """A document by its stream and its number there; the last ones are remembered."""
    return taken_from(open_log(home.streams, stream), stream, number)


@lru_cache(maxsize=1024)
def taken_from(log: StreamLog, stream: int, number: int) -> TakenDocument:
    entry = log.entry(number)
    context = tuple(entry.context.split("/")) if entry.context else ()
    origin = origin_of(stream, number) if entry.origin is None else entry.origin
    body = None if entry.values is not None else entry.body
    return TakenDocument(entry.id, entry.values, context, origin, log.stream.tuple_element, body)


def ids_of(log: StreamLog, numbers: Ints) -> list[str]:
    """The ids of documents whose numbers ascend; nothing else of them is read."""
    given = _entries(log, numbers, ["id"]).column("id")
    if given.null_count == len(numbers):
        return [f"{log.stream.name}-{number}" for number in numbers.tolist()]
    pairs = zip(numbers.tolist(), given.to_pylist(), strict=True)
    return [id or f"{log.stream.name}-{number}" for number, id in pairs]


def values_of(log: StreamLog, numbers: Ints, columns: Sequence[str]) -> dict[str, list[Any]]:
    """Columns of tuples whose numbers ascend."""
    found = _entries(log, numbers, [column_name(name) for name in columns])
    return {name: found.column(column_name(name)).to_pylist() for name in columns}


def _entries(log: StreamLog, numbers: Ints, names: list[str]) -> pa.Table:
    """Some columns of entries whose numbers ascend, segment by segment."""
    parts = []
    at = 0
    while at < len(numbers):
        first, batch = next(log.read(int(numbers[at]) - 1, int(numbers[-1])))
        upto = int(np.searchsorted(numbers, first + batch.num_rows))
        parts.append(batch.select(names).take(pa.array(numbers[at:upto] - first)))
        at = upto
    schema = pa.schema([log.schema.field(name) for name in names])
    return pa.Table.from_batches([part.replace_schema_metadata(None) for part in parts], schema)

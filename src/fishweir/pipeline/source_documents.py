"""Documents read from their logs, for readers of results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fishweir.algebra.documents import (
    ATTRIBUTE,
    Element,
    attribute_at,
    attribute_id,
    elements,
    parse_document,
    tuple_to_document,
)
from fishweir.algebra.nodes import Step
from fishweir.algebra.return_paths import Bound
from fishweir.evaluate.arrays import Ints
from fishweir.evaluate.group import origin_of
from fishweir.intake.log import StreamLog
from fishweir.intake.schema import column_name
from fishweir.pipeline.home import Home, open_log
from fishweir.pipeline.text_pieces import numbered
from fishweir.records import dataclass


@dataclass(frozen=True, eq=False)
class SourceDocument:
    """A document: its id, its columns if it is a tuple, the names above it before a split, and its original by
    `origin_of`, which is another document if a published query passed it on.
    """

    id: str
    values: dict[str, Any] | None
    context: tuple[str, ...]
    origin: int
    element: str
    body: bytes | None

    @cached_property
    def nodes(self) -> list[Element]:
        """Its elements by node id. Those of a tuple are created on demand."""
        if self.values is not None:
            return list(elements(tuple_to_document(self.element, self.values)))
        return list(elements(parse_document(self.body or b"", comments=True)))


class HasNodes(Protocol):
    @property
    def nodes(self) -> Sequence[Element] | Mapping[int, Element]: ...


def bind(document: HasNodes, step: Step, position: int) -> tuple[Bound, int | str]:
    """The binding of a variable at a step to a node, given by number, and the id that results show."""
    number = position % ATTRIBUTE
    element = document.nodes[number]
    if not step.is_attribute:
        return (element, None), number
    attribute = attribute_at(element, step.name, position)
    return (element, attribute), attribute_id(number, attribute, position // ATTRIBUTE)


def read_document(home: Home, stream: int, number: int) -> SourceDocument:
    """A document by its stream and number; the last ones are cached."""
    return _taken_from(open_log(home.streams, stream), stream, number)


@lru_cache(maxsize=1024)
def _taken_from(log: StreamLog, stream: int, number: int) -> SourceDocument:
    return taken_of(log, stream, np.array([number]))[0]


def taken_of(log: StreamLog, stream: int, numbers: Ints) -> list[SourceDocument]:
    """Documents with ascending numbers, read together."""
    names = [name for name, _ in log.stream.columns]
    columns = ["context", "origin", "problem", "body", *map(column_name, names)]
    found = fields_of(log, numbers, [name for name in columns if name in log.schema.names])
    ids = ids_of(log, numbers).to_pylist()
    context, origin, problem, body = (_listed(found, name) for name in columns[:4])
    rows = zip(*(_listed(found, column_name(name)) for name in names), strict=True) if names else ((),) * len(numbers)
    tuples, element = log.stream.is_tuples, log.stream.tuple_element
    return [
        SourceDocument(
            ids[i],
            dict(zip(names, row, strict=True)) if (good := tuples and problem[i] is None) else None,
            tuple(context[i].split("/")) if context[i] else (),
            origin_of(stream, number) if origin[i] is None else origin[i],
            element,
            None if good else body[i],
        )
        for i, (number, row) in enumerate(zip(numbers.tolist(), rows, strict=True))
    ]


def _listed(found: pa.Table, name: str) -> list[Any]:
    return found.column(name).to_pylist() if name in found.column_names else [None] * len(found)


def ids_of(log: StreamLog, numbers: Ints) -> pa.StringArray:
    """The ids of documents with ascending numbers, read without the rest of the documents."""
    given = fields_of(log, numbers, ["id"]).column("id").combine_chunks()
    counted = numbered(f"{log.stream.name}-", numbers)
    return counted if given.null_count == len(given) else pc.if_else(_is_given(given), given, counted)


def _is_given(ids: pa.Array) -> pa.Array:
    return pc.not_equal(ids, "").fill_null(False)


def values_of(log: StreamLog, numbers: Ints, columns: Sequence[str]) -> dict[str, pa.Array]:
    """Columns of tuples with ascending numbers."""
    found = fields_of(log, numbers, [column_name(name) for name in columns])
    return {name: found.column(column_name(name)).combine_chunks() for name in columns}


def fields_of(log: StreamLog, numbers: Ints, names: list[str]) -> pa.Table:
    """Some columns of entries with ascending numbers, segment by segment."""
    parts = []
    at = 0
    while at < len(numbers):
        first, batch = next(log.read(int(numbers[at]) - 1, int(numbers[-1])))
        upto = int(np.searchsorted(numbers, first + batch.num_rows))
        parts.append(_taken(batch.select(names), numbers[at:upto] - first))
        at = upto
    schema = pa.schema([log.schema.field(name) for name in names])
    return pa.Table.from_batches([part.replace_schema_metadata(None) for part in parts], schema)


def _taken(batch: pa.RecordBatch, places: Ints) -> pa.RecordBatch:
    """The rows at ascending positions, not copied if they are adjacent."""
    adjacent = int(places[-1] - places[0]) == len(places) - 1
    return batch.slice(int(places[0]), len(places)) if adjacent else batch.take(pa.array(places))

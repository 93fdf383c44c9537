"""Columns of type timestamp: what SQL compares them with.

A time is kept as text, ISO 8601 in UTC, whose order is that of time. In: a shape and the streams' definitions. Out:
which constants are times however they are written, to be brought into that form before the query is stored; and what
is not built, the order of the times of two columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from fishweir.algebra.column_joins import block_of
from fishweir.algebra.documents import xml_name
from fishweir.algebra.feeds import FeedQuery, Selection
from fishweir.algebra.formula import Atom, atoms_of
from fishweir.algebra.nodes import Constant, Shape, Slot, Source, StreamDefinition
from fishweir.algebra.values import COMPARE, to_text, to_timestamp


def dated_slots(shape: Shape | Selection | FeedQuery, streams: Mapping[str, StreamDefinition]) -> dict[int, str]:
    """The slots of constants that are compared with columns of times, and the columns' names."""
    atoms = _dated(shape, streams)
    return {atom.right.index: atom.path[0].name for atom in atoms if isinstance(atom.right, Slot)}


def ordered_times(shape: Shape | Selection | FeedQuery, streams: Mapping[str, StreamDefinition]) -> list[Atom]:
    """Where a column of times is compared with another column by more than equality."""
    return [a for a in _dated(shape, streams) if isinstance(a.right, tuple) and a.op not in ("=", "!=")]


def time_text(constant: Constant) -> str | None:
    """As a column has it: `2025-01-01T00:00:00+00:00`; None for what is no time."""
    seconds = to_timestamp(constant) if isinstance(constant, str) else None
    return None if seconds is None else to_text(datetime.fromtimestamp(seconds, UTC))


def _dated(shape: Shape | Selection | FeedQuery, streams: Mapping[str, StreamDefinition]) -> Iterator[Atom]:
    """The comparisons whose left side is a column of times."""
    for source, atoms in _atoms(shape):
        columns = streams[source.name].columns if source.name in streams else ()
        dated = {xml_name(name) for name, kind in columns if kind == "timestamp"}
        for atom in atoms:
            if atom.op in COMPARE and atom.part == "value" and len(atom.path) == 1 and atom.path[0].name in dated:
                yield atom


def _atoms(shape: Shape | Selection | FeedQuery) -> Iterator[tuple[Source, list[Atom]]]:
    """The conditions of a query in SQL on the columns of each of its sources."""
    if isinstance(shape, Selection) and shape.language == "sql":
        for part in shape.filters:
            yield part.source, list(atoms_of(part.formula))
    if isinstance(shape, Shape) and shape.formula is not None:
        for i, block in enumerate(shape.blocks):
            own = [atom for atom in atoms_of(shape.formula) if block_of(atom.path) == i]
            yield block.source, [replace(atom, path=atom.path[1:]) for atom in own]

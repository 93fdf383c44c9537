"""Columns of type timestamp: what SQL compares them with.

A time is kept as text, ISO 8601 in UTC, whose order is that of time. In: a shape and the streams' definitions. Out:
which constants are times however they are written, to be brought into that form before the query is stored; and the
shape with columns of times that are ordered by each other read as numbers of seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from fishweir.algebra.column_joins import block_of
from fishweir.algebra.documents import xml_name
from fishweir.algebra.feeds import FeedQuery, Selection
from fishweir.algebra.formula import Atom, Formula, RelativePath, atoms_of, with_atoms
from fishweir.algebra.nodes import Constant, Shape, Slot, Source, StreamDefinition
from fishweir.algebra.values import COMPARE, to_text, to_timestamp

AnyShape = Shape | Selection | FeedQuery


def dated_slots(shape: AnyShape, streams: Mapping[str, StreamDefinition]) -> dict[int, str]:
    """The slots of constants that are compared with columns of times, and the columns' names."""
    atoms = _dated(shape, streams)
    return {atom.right.index: atom.path[0].name for atom in atoms if isinstance(atom.right, Slot)}


def in_seconds(shape: AnyShape, streams: Mapping[str, StreamDefinition]) -> AnyShape:
    """The shape with columns of times that are ordered by each other as numbers. Raises Mixed where one of two is a
    time."""
    if isinstance(shape, Selection) and shape.columns:
        filters = tuple(
            replace(part, formula=_ordered(part.formula, [_times(part.source, streams)], lambda path: (0, path)))
            for part in shape.filters
        )
        return shape if filters == shape.filters else replace(shape, filters=filters)
    if isinstance(shape, Shape) and shape.formula is not None:
        times = [_times(block.source, streams) for block in shape.blocks]
        formula = _ordered(shape.formula, times, lambda path: (block_of(path), path[1:]))
        return shape if formula == shape.formula else replace(shape, formula=formula)
    return shape


class Mixed(Exception):
    """A time is ordered by what is none."""

    def __init__(self, atom: Atom, column: str) -> None:
        self.atom, self.column = atom, column


def _ordered(
    formula: Formula, times: Sequence[frozenset[str]], place: Callable[[RelativePath], tuple[int, RelativePath]]
) -> Formula:
    """`times` are the columns of each block that are times, `place` says which block a path reads, and which column."""

    def change(atom: Atom) -> Atom:
        if atom.op not in ("<", "<=", ">", ">=") or not isinstance(atom.right, tuple):
            return atom
        paths = atom.path, atom.right
        columns = list(map(place, paths))
        dated = [len(column) == 1 and column[0].name in times[block] for block, column in columns]
        if not any(dated):
            return atom
        if not all(dated):
            raise Mixed(atom, columns[dated.index(True)][1][0].name)
        left, right = ((*path[:-1], replace(path[-1], axis="seconds")) for path in paths)
        return replace(atom, path=left, right=right)

    return with_atoms(formula, change)


def time_text(constant: Constant) -> str | None:
    """As a column has it: `2025-01-01T00:00:00+00:00`; None for what is no time."""
    seconds = to_timestamp(constant) if isinstance(constant, str) else None
    return None if seconds is None else to_text(datetime.fromtimestamp(seconds, UTC))


def _times(source: Source, streams: Mapping[str, StreamDefinition]) -> frozenset[str]:
    """The columns of a stream that are times."""
    columns = streams[source.name].columns if source.name in streams else ()
    return frozenset(xml_name(name) for name, kind in columns if kind == "timestamp")


def _dated(shape: AnyShape, streams: Mapping[str, StreamDefinition]) -> Iterator[Atom]:
    """The comparisons whose left side is a column of times."""
    for source, atoms in _atoms(shape):
        dated = _times(source, streams)
        for atom in atoms:
            if atom.op in COMPARE and atom.part == "value" and len(atom.path) == 1 and atom.path[0].name in dated:
                yield atom


def _atoms(shape: AnyShape) -> Iterator[tuple[Source, list[Atom]]]:
    """The conditions of a query in SQL on the columns of each of its sources."""
    if isinstance(shape, Selection) and shape.columns:
        for part in shape.filters:
            yield part.source, list(atoms_of(part.formula))
    if isinstance(shape, Shape) and shape.formula is not None:
        for i, block in enumerate(shape.blocks):
            own = [atom for atom in atoms_of(shape.formula) if block_of(atom.path) == i]
            yield block.source, [replace(atom, path=atom.path[1:]) for atom in own]

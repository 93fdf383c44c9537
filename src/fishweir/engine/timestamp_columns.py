"""Timestamp columns: converts the constants that SQL compares them with.

A time is stored as text, ISO 8601 in UTC, so that text order is time order. In: a shape and the streams' definitions.
Out: the constants that are times, in any notation, to be converted to that form before the query is stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from fishweir.algebra.column_joins import block_of
from fishweir.algebra.feeds import Selection
from fishweir.algebra.formula import Atom, atoms_of
from fishweir.algebra.nodes import Constant, Shape, Slot, Source, StreamDefinition
from fishweir.algebra.values import COMPARE, to_text, to_timestamp
from fishweir.engine.ordering import AnyShape, column_type, types_of


def dated_slots(shape: AnyShape, streams: Mapping[str, StreamDefinition]) -> dict[int, str]:
    """The slots of constants that are compared with time columns, and the columns' names."""
    atoms = _dated(shape, streams)
    return {atom.right.index: atom.path[0].name for atom in atoms if isinstance(atom.right, Slot)}


def time_text(constant: Constant) -> str | None:
    """The stored form of a time: `2025-01-01T00:00:00+00:00`; None if the constant is not a time."""
    seconds = to_timestamp(constant) if isinstance(constant, str) else None
    return None if seconds is None else to_text(datetime.fromtimestamp(seconds, UTC))


def _dated(shape: AnyShape, streams: Mapping[str, StreamDefinition]) -> Iterator[Atom]:
    """The comparisons whose left side is a time column."""
    for source, atoms in _atoms(shape):
        types = types_of(source, streams)
        for atom in atoms:
            if atom.op in COMPARE and atom.part == "value" and column_type(atom.path, types) == "timestamp":
                yield atom


def _atoms(shape: AnyShape) -> Iterator[tuple[Source, list[Atom]]]:
    """The conditions of an SQL query on the columns of each of its sources."""
    if isinstance(shape, Selection) and shape.columns:
        for part in shape.filters:
            yield part.source, list(atoms_of(part.formula))
    if isinstance(shape, Shape) and shape.formula is not None:
        for i, block in enumerate(shape.blocks):
            own = [atom for atom in atoms_of(shape.formula) if block_of(atom.path) == i]
            yield block.source, [replace(atom, path=atom.path[1:]) for atom in own]

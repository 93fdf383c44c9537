"""Orders comparisons between two columns by their declared types.

In: a shape and the streams' definitions. Out: the shape with the type of each `<`, `<=`, `>`, `>=` between two columns.
Two time columns are compared as seconds, two text columns as texts, by code points. Everything else is compared as
numbers: numeric columns, columns of documents, which have no declared types, and a text with a number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from fishweir.algebra.column_joins import block_of
from fishweir.algebra.feeds import FeedQuery, Selection
from fishweir.algebra.formula import Atom, Formula, RelativePath, with_atoms
from fishweir.algebra.nodes import Shape, Source, StreamDefinition
from fishweir.algebra.simple_paths import xml_name

AnyShape = Shape | Selection | FeedQuery
Types = Mapping[str, str]
"""The declared type of each column, by its element name."""
SlotPlace = Callable[[RelativePath], tuple[int, RelativePath]]
"""Maps a path to the block that it reads, and the column in it."""

ORDERS = ("<", "<=", ">", ">=")


class Unordered(Exception):
    """Two columns have no order, or none that a join can use."""

    def __init__(self, column: str, reason: str) -> None:
        self.column, self.reason = column, reason


def with_orders(shape: AnyShape, streams: Mapping[str, StreamDefinition]) -> AnyShape:
    """The shape with typed comparisons of columns. Raises Unordered."""
    if isinstance(shape, Selection) and shape.columns:
        filters = tuple(
            replace(part, formula=_ordered(part.formula, [types_of(part.source, streams)], lambda path: (0, path)))
            for part in shape.filters
        )
        return shape if filters == shape.filters else replace(shape, filters=filters)
    if isinstance(shape, Shape) and shape.formula is not None:
        types = [types_of(block.source, streams) for block in shape.blocks]
        formula = _ordered(shape.formula, types, lambda path: (block_of(path), path[1:]))
        return shape if formula == shape.formula else replace(shape, formula=formula)
    return shape


def types_of(source: Source, streams: Mapping[str, StreamDefinition]) -> Types:
    columns = streams[source.name].columns if source.name in streams else ()
    return {xml_name(name): kind for name, kind in columns}


def _ordered(formula: Formula, types: Sequence[Types], place: SlotPlace) -> Formula:
    def change(atom: Atom) -> Atom:
        if atom.op not in ORDERS or not isinstance(atom.right, tuple):
            return atom
        (left_block, left), (right_block, right) = place(atom.path), place(atom.right)
        names = left[-1].name, right[-1].name
        kinds = column_type(left, types[left_block]), column_type(right, types[right_block])
        _check(atom.op, names, kinds, left_block != right_block)
        if kinds == ("timestamp", "timestamp"):
            return replace(atom, path=_seconds(atom.path), right=_seconds(atom.right))
        return replace(atom, part="text") if kinds == ("string", "string") else atom

    return with_atoms(formula, change)


def column_type(column: RelativePath, types: Types) -> str | None:
    """The declared type of a column; None if the path is not a declared column."""
    return types.get(column[0].name) if len(column) == 1 else None


def _check(op: str, names: tuple[str, str], kinds: tuple[str | None, str | None], across: bool) -> None:
    if kinds.count("timestamp") == 1:
        name = names[kinds.index("timestamp")]
        raise Unordered(name, f"compares {name}, a time, with a column that is not a time, using '{op}'")
    if "boolean" in kinds:
        name = names[kinds.index("boolean")]
        raise Unordered(name, f"compares {name} using '{op}', but true and false have no order")
    if kinds == ("string", "string") and across:
        left, right = names
        reason = f"compares {left} with {right}, both strings, using '{op}'"
        raise Unordered(left, f"{reason}; in joins, only numbers and times can be ordered")


def _seconds(path: RelativePath) -> RelativePath:
    return (*path[:-1], replace(path[-1], axis="seconds"))

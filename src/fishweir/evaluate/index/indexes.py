"""Indexes: which one serves a condition.

In: a condition's operator, type and part, and a column of constants. Out: the order in which the constants
must stand, and the index over them in that order. All answer with slices (constants.Slices).
"""

from __future__ import annotations

from fishweir.evaluate.arrays import Column, Ints
from fishweir.evaluate.index.constants import Equal, Everything, Interval, Sorted, Words
from fishweir.evaluate.index.links import LINK_KEYS, Links
from fishweir.evaluate.index.patterns import Like
from fishweir.evaluate.index.similarity import Similar

Index = Everything | Equal | Words | Sorted | Interval | Links | Similar | Like


def order_for(op: str, type: str, column: Column) -> Ints:
    """The order of the constants in which the index of such a condition can be built."""
    if op == "exists":
        return Everything.order(len(column))
    if type == "words":
        return Equal.order(Words.keys(column))
    if op in LINK_KEYS:
        return Links.order(column)
    if op == "similar":
        return Similar.order(column)
    if op == "like":
        return Like.order(column)
    if op == "=" and type == "string":
        return Equal.order(column)
    return Sorted.order(column)


def index_for(op: str, type: str, part: str, column: Column) -> Index:
    """The index of a condition with a constant; `column` is in the order of `order_for`."""
    if op == "exists":
        return Everything(len(column))
    if type == "words":
        return Words.build(column)
    if op in LINK_KEYS:
        return Links(op, column)
    if op == "similar":
        return Similar(column)
    if op == "like":
        return Like(column)
    if op == "=" and type == "string":
        return Equal.build(column)
    return Sorted(op, column, part)


def is_exact(index: Index) -> bool:
    """Whether what a look-up gives needs no further check: `contains` of several words is looked up by one."""
    return not isinstance(index, Words) or bool(index.exact[0])

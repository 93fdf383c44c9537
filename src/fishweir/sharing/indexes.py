"""Which index a group of constants gets, by its operator."""

from __future__ import annotations

import numpy as np

from fishweir.sharing.arrays import Column, Ints
from fishweir.sharing.constants import Equal, Everything, Index, Sorted, Words


def order_for(op: str, type: str, column: Column) -> Ints:
    """The order in which an index wants its constants."""
    if op == "exists":
        return np.arange(len(column))
    if type == "words":
        return Equal.order(Words.keys(column))
    if op == "=" and type == "string":
        return Equal.order(column)
    return Sorted.order(column)


def index_for(op: str, type: str, part: str, column: Column) -> Index:
    """The index over a column in that order."""
    if op == "exists":
        return Everything(len(column))
    if type == "words":
        return Words.build(column)
    if op == "=" and type == "string":
        return Equal.build(column)
    return Sorted(op, column, part)

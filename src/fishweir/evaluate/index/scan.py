"""Scan: evaluates a condition without an index on each distinct pair of a value and a constant.

In: the condition's meaning and the constants of all queries with one signature. Out: slices of the table, exact. The
cost is the product of the two counts, so the other conditions of a query are looked up first if it has any.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fishweir.evaluate.arrays import Ints, expand
from fishweir.evaluate.index.constants import Equal, Slices, slices
from fishweir.evaluate.witnesses.path_tables import PathTable

Meaning = Callable[[str, str], bool]


@dataclass(frozen=True)
class Scan:
    """Constants in an order in which equal ones are adjacent."""

    meaning: Meaning
    constants: pa.LargeStringArray

    @staticmethod
    def order(column: pa.LargeStringArray) -> Ints:
        return Equal.order(column)

    def look_up(self, values: PathTable) -> Slices:
        texts, order, ends = values.once(distinct_values)
        constants, starts = distinct_constants(self.constants)
        wanted = list(enumerate(constants.to_pylist()))
        found = [(v, c) for v, text in enumerate(texts.to_pylist()) for c, one in wanted if self.meaning(text, one)]
        value, constant = np.array(found, dtype=np.int64).reshape(-1, 2).T
        pair, at = expand(ends[value], ends[value + 1])
        return slices(order[at], starts[constant[pair]], starts[constant[pair] + 1])


def distinct_values(values: PathTable) -> tuple[pa.LargeStringArray, Ints, Ints]:
    """The distinct values, the rows sorted by value, and the offset of each value's rows."""
    codes = values.texts.dictionary_encode()
    rows = codes.indices.to_numpy().astype(np.int64)
    order = np.argsort(rows, kind="stable")
    ends = np.searchsorted(rows[order], np.arange(len(codes.dictionary) + 1)).astype(np.int64)
    return codes.dictionary, order, ends


def distinct_constants(column: pa.LargeStringArray) -> tuple[pa.LargeStringArray, Ints]:
    """The distinct constants of a column in which equal ones are adjacent, and the offset of each."""
    codes = column.dictionary_encode()
    starts = np.flatnonzero(np.diff(codes.indices.to_numpy(), prepend=-1))
    return codes.dictionary, np.append(starts, len(column)).astype(np.int64)


def pairs_hold(meaning: Meaning, texts: pa.LargeStringArray, constants: pa.LargeStringArray) -> NDArray[np.bool_]:
    """Evaluates a condition on each distinct pair once. An index leaves few pairs to check."""
    pairs = list(zip(texts.to_pylist(), constants.to_pylist(), strict=True))
    decided = {pair: meaning(*pair) for pair in set(pairs)}
    return np.fromiter((decided[pair] for pair in pairs), np.bool_, len(pairs))

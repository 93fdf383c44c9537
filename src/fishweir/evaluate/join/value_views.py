"""Views of runs: the values that a segment's edge sets compare, side by side, and the kernels that compare them.

In: a run and the variables of some edge sets. Out: the first value of each variable in one row per document, so that a
pair of documents touches two rows; and one bit per variable that the document binds several times. The run's cells are
read only for these variables. One pass over the edges finds those that hold for a pair of documents.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fishweir.evaluate.arrays import Ints
from fishweir.evaluate.join.hashes import Hashes
from fishweir.evaluate.join.state import Run
from fishweir.jit import kernel

EQUAL, LEFT_EXISTS, RIGHT_EXISTS = range(3)
"""Kinds of edges: two values are equal, or a node is present on one side."""


@dataclass(frozen=True)
class View:
    """`values`: the first value of each variable, 0 if there is none, 1 if only its presence matters."""

    run: Run
    columns: Ints
    values: Hashes
    several: Hashes

    @cached_property
    def has_several(self) -> bool:
        return bool(self.several.any())

    @cached_property
    def keys(self) -> dict[tuple[int, int], tuple[Hashes, Ints]]:
        """The lookup keys of documents by shape and side (shapes.py)."""
        return {}

    @cached_property
    def indexes(self) -> dict[tuple[int, int], tuple[Hashes, Ints]]:
        return {}


def view_of(run: Run, variables: Mapping[int, bool]) -> View:
    """Builds a view of a run. `variables` maps the key of each variable to a flag: whether its values are compared."""
    keys = np.array(list(variables), dtype=np.uint64)
    columns, compared = run.columns(keys), np.array(list(variables.values()), dtype=np.bool_)
    values = np.zeros((len(run), len(keys)), np.uint64)
    several = np.zeros((len(run), max(1, -(-len(keys) // 64))), np.uint64)
    _first_values(run.cells, run.values, columns, compared, len(run.variables), values, several)
    return View(run, columns, values, several)


@kernel
def _first_values(
    cells: Ints, stored: Hashes, columns: Ints, compared: NDArray[np.bool_], width: int, values: Hashes, several: Hashes
) -> None:
    for document in range(len(values)):
        for variable in range(len(columns)):
            if columns[variable] < 0:
                continue
            start, stop = cells[document * width + columns[variable]], cells[document * width + columns[variable] + 1]
            if stop > start:
                values[document, variable] = max(stored[start], np.uint64(1)) if compared[variable] else np.uint64(1)
            if stop > start + 1:
                several[document, variable // 64] |= np.uint64(1) << np.uint64(variable % 64)


def pair_words(left: View, right: View, lefts: Ints, rights: Ints, edges: Ints) -> Hashes:
    """For each pair of documents: the words of S, then the variables that the left and the right one bind several
    times."""
    size, many = max(1, -(-len(edges) // 64)), left.several.shape[1]
    words = np.zeros((len(lefts), size + 2 * many), np.uint64)
    words[:, size : size + many] = left.several[lefts]
    words[:, size + many :] = right.several[rights]
    _edges_that_hold(lefts, rights, left.values, right.values, edges, words)
    if left.has_several or right.has_several:
        _edges_of_several(
            lefts,
            rights,
            left.run.cells,
            left.run.values,
            left.columns,
            len(left.run.variables),
            right.run.cells,
            right.run.values,
            right.columns,
            len(right.run.variables),
            edges,
            words,
            size,
            many,
        )
    return words


@kernel
def _edges_that_hold(
    lefts: Ints, rights: Ints, left_values: Hashes, right_values: Hashes, edges: Ints, words: Hashes
) -> None:
    """Sets the bits of edges that hold for the first values."""
    for pair in range(len(lefts)):
        left, right = left_values[lefts[pair]], right_values[rights[pair]]
        for edge in range(len(edges)):
            kind, one, two = edges[edge, 0], left[edges[edge, 1]], right[edges[edge, 2]]
            if (kind == 0 and one == two and one != 0) or (kind == 1 and one != 0) or (kind == 2 and two != 0):
                words[pair, edge // 64] |= np.uint64(1) << np.uint64(edge % 64)


@kernel
def _edges_of_several(
    lefts: Ints,
    rights: Ints,
    left_cells: Ints,
    left_values: Hashes,
    left_columns: Ints,
    left_width: int,
    right_cells: Ints,
    right_values: Hashes,
    right_columns: Ints,
    right_width: int,
    edges: Ints,
    words: Hashes,
    size: int,
    many: int,
) -> None:
    """Sets the bits of edges that hold for the other values of variables that a document binds several times."""
    for pair in range(len(lefts)):
        left, right = lefts[pair] * left_width, rights[pair] * right_width
        for edge in range(len(edges)):
            one, two = edges[edge, 1], edges[edge, 2]
            on_left = (words[pair, size + one // 64] >> np.uint64(one % 64)) & np.uint64(1)
            on_right = (words[pair, size + many + two // 64] >> np.uint64(two % 64)) & np.uint64(1)
            if edges[edge, 0] != 0 or not (on_left or on_right):
                continue
            a, b = left_columns[one], right_columns[two]
            if a < 0 or b < 0:
                continue
            for i in range(left_cells[left + a], left_cells[left + a + 1]):
                for j in range(right_cells[right + b], right_cells[right + b + 1]):
                    if left_values[i] == right_values[j]:
                        words[pair, edge // 64] |= np.uint64(1) << np.uint64(edge % 64)


@kernel
def least_common(
    lefts: Ints, rights: Ints, left_cells: Ints, left_values: Hashes, right_cells: Ints, right_values: Hashes
) -> Hashes:
    """For each pair of cells, the least value that is in both."""
    least = np.full(len(lefts), np.uint64(0xFFFFFFFFFFFFFFFF), np.uint64)
    for pair in range(len(lefts)):
        for i in range(left_cells[lefts[pair]], left_cells[lefts[pair] + 1]):
            for j in range(right_cells[rights[pair]], right_cells[rights[pair] + 1]):
                if left_values[i] == right_values[j] and left_values[i] < least[pair]:
                    least[pair] = left_values[i]
    return least


@kernel
def words_to_keys(anchors: Ints, words: Hashes) -> Hashes:
    """One number per row of words and its anchor."""
    keys = np.zeros(len(words), np.uint64)
    for row in range(len(words)):
        key = np.uint64(anchors[row] + 1) * np.uint64(0xBF58476D1CE4E5B9)
        key ^= key >> np.uint64(27)
        for word in words[row]:
            key = (key ^ word) * np.uint64(0x9E3779B97F4A7C15)
            key ^= key >> np.uint64(31)
        keys[row] = key
    return keys

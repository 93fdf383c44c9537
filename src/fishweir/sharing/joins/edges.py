"""Edge sets: which plain joins hold for a pair of documents, decided by the set S of edges that hold.

In: the plain join tables. Out: one bit per different edge, and for each anchor the queries contained in a given S, by
window. Few different S occur in a stream: what is contained is worked out once per S and remembered. Where a document
binds a variable several times, S is only necessary: the joins that read that variable are left to be verified (rows).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fishweir.sharing.arrays import Ints
from fishweir.sharing.jit import kernel
from fishweir.sharing.joins.state import Hashes, Run
from fishweir.sharing.joins.tables import JoinTable, Variable, variables_of

EQUAL, LEFT_EXISTS, RIGHT_EXISTS = range(3)
LATER, EARLIER, TOGETHER = range(3)
"""Of a pair: the right document is later, or earlier, or has the time of the left one."""


@dataclass(frozen=True)
class Contained:
    """The queries of one anchor whose edges are all in S, for one order in time: longest reach first."""

    members: Ints
    reaches: NDArray[np.float64]

    def count(self, apart: NDArray[np.float64]) -> Ints:
        """How many of them reach over each distance: a prefix."""
        return np.searchsorted(-self.reaches, -apart, "right")


@dataclass(frozen=True)
class Entry:
    """What is remembered of one S: the queries by order in time, and the tables that must be verified."""

    orders: tuple[Contained, Contained, Contained]
    doubtful: tuple[int, ...]


class EdgeSets:
    """The bits, and a memory of what is contained in which set of them."""

    def __init__(self, tables: Sequence[JoinTable]) -> None:
        self.tables = tables
        self.variables: dict[Variable, bool] = {}
        for variable, compared in variables_of(tables):
            self.variables[variable] = self.variables.get(variable, False) or compared
        self._place = {variable: i for i, variable in enumerate(self.variables)}
        self.bits: dict[tuple[int, int, int], int] = {}
        sets = [self._bits(table) for table in tables]
        self.anchors = np.array([bits[t.anchor] for bits, t in zip(sets, tables, strict=True)], dtype=np.int64)
        self.masks = _masks(sets, len(self.bits))
        self.reads = tuple(
            _masks([self._read(table, side) for table in tables], len(self.variables)) for side in (0, 1)
        )
        self._memory: dict[tuple[int, bytes], Entry] = {}

    def _bits(self, table: JoinTable) -> list[int]:
        """The bit of each edge, then those of what must only be there."""
        found = [(EQUAL, *self._ends(table, e.left, e.right)) for e in table.template.edges]
        for side, kind in ((0, LEFT_EXISTS), (1, RIGHT_EXISTS)):
            for node in sorted({*table.kept(side)} - {*table.joined(side)}):
                place = self._place[table.variable(side, node)]
                found.append((kind, place, place))
        return [self.bits.setdefault(bit, len(self.bits)) for bit in found]

    def _ends(self, table: JoinTable, left: int, right: int) -> tuple[int, int]:
        return self._place[table.variable(0, left)], self._place[table.variable(1, right)]

    def _read(self, table: JoinTable, side: int) -> list[int]:
        return [self._place[table.variable(side, n)] for n in {*table.kept(side), *table.joined(side)}]

    @cached_property
    def keys(self) -> Hashes:
        return np.array([variable.key for variable in self.variables], dtype=np.uint64)

    @cached_property
    def edges(self) -> Ints:
        """Kind, left and right variable of each bit."""
        return np.array(list(self.bits), dtype=np.int64).reshape(-1, 3)

    @cached_property
    def by_anchor(self) -> dict[int, Ints]:
        return {int(anchor): np.flatnonzero(self.anchors == anchor) for anchor in np.unique(self.anchors)}

    def entry(self, anchor: int, words: Hashes) -> Entry:
        """The queries of an anchor for a row of `pair_words`."""
        key = (anchor, words.tobytes())
        if key not in self._memory:
            self._memory[key] = self._contained(anchor, words)
        return self._memory[key]

    def _contained(self, anchor: int, words: Hashes) -> Entry:
        size, many = self.masks.shape[1], self.reads[0].shape[1]
        holding, left, right = words[:size], words[size : size + many], words[size + many :]
        group = self.by_anchor[anchor]
        inside = group[((self.masks[group] & ~holding) == 0).all(axis=1)]
        several = [(reads[inside] & own) != 0 for reads, own in zip(self.reads, (left, right), strict=True)]
        doubtful = several[0].any(axis=1) | several[1].any(axis=1)
        sure = [self.tables[i] for i in inside[~doubtful]]
        later, earlier, together = (by_reach(sure, order) for order in (LATER, EARLIER, TOGETHER))
        return Entry((later, earlier, together), tuple(inside[doubtful].tolist()))


def by_reach(tables: Sequence[JoinTable], order: int) -> Contained:
    """The queries of some tables for one order in time, longest reach first."""
    members = np.concatenate([np.empty(0, np.int64), *(table.numbers for table in tables)])
    reaches = np.concatenate([np.empty(0), *(reach(table, order) for table in tables)])
    chosen = np.flatnonzero(reaches >= 0)
    chosen = chosen[np.lexsort((members[chosen], -reaches[chosen]))]
    return Contained(members[chosen], reaches[chosen])


def reach(table: JoinTable, order: int) -> NDArray[np.float64]:
    """How far apart two documents in this order may be, for each query of a table; -1: not at all."""
    if order == TOGETHER:
        return np.full(table.size, -1.0 if table.template.window.strict else np.inf)
    return table.reaches[order]


def _masks(sets: Sequence[Sequence[int]], width: int) -> Hashes:
    masks = np.zeros((len(sets), max(1, -(-width // 64))), np.uint64)
    for row, bits in enumerate(sets):
        for bit in bits:
            masks[row, bit // 64] |= np.uint64(1 << (bit % 64))
    return masks


@dataclass(frozen=True)
class View:
    """A run as the edge sets see it: where each of their variables is, and what each document binds several times."""

    run: Run
    columns: Ints
    several: Hashes

    @property
    def has_several(self) -> bool:
        return bool(self.several.any())


def view_of(run: Run, sets: EdgeSets) -> View:
    columns = run.columns(sets.keys)
    several = np.zeros((len(run), sets.reads[0].shape[1]), np.uint64)
    counts = np.diff(run.cells).reshape(len(run), len(run.variables))
    for variable, column in enumerate(columns):
        if column >= 0:
            several[:, variable // 64] |= np.where(counts[:, column] > 1, np.uint64(1 << (variable % 64)), np.uint64(0))
    return View(run, columns, several)


def pair_words(left: View, right: View, lefts: Ints, rights: Ints, edges: Ints) -> Hashes:
    """For each pair of documents: the words of S, then what the left and the right one bind several times."""
    size, many = max(1, -(-len(edges) // 64)), left.several.shape[1]
    words = np.zeros((len(lefts), size + 2 * many), np.uint64)
    _edges_that_hold(
        lefts, rights, left.run.cells, left.run.values, left.columns, len(left.run.variables),
        right.run.cells, right.run.values, right.columns, len(right.run.variables), edges, words,
    )  # fmt: skip
    words[:, size : size + many] = left.several[lefts]
    words[:, size + many :] = right.several[rights]
    return words


@kernel
def _edges_that_hold(
    lefts: Ints, rights: Ints, left_cells: Ints, left_values: Hashes, left_columns: Ints, left_width: int,
    right_cells: Ints, right_values: Hashes, right_columns: Ints, right_width: int, edges: Ints, words: Hashes,
) -> None:  # fmt: skip
    for pair in range(len(lefts)):
        left, right = lefts[pair] * left_width, rights[pair] * right_width
        for edge in range(len(edges)):
            kind, a, b = edges[edge, 0], left_columns[edges[edge, 1]], right_columns[edges[edge, 2]]
            holds = False
            if kind == 1:
                holds = a >= 0 and left_cells[left + a + 1] > left_cells[left + a]
            elif kind == 2:
                holds = b >= 0 and right_cells[right + b + 1] > right_cells[right + b]
            elif a >= 0 and b >= 0:
                for i in range(left_cells[left + a], left_cells[left + a + 1]):
                    for j in range(right_cells[right + b], right_cells[right + b + 1]):
                        if left_values[i] == right_values[j]:
                            holds = True
                            break
                    if holds:
                        break
            if holds:
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
def words_to_keys(words: Hashes) -> Hashes:
    """One number per row of words."""
    keys = np.zeros(len(words), np.uint64)
    for row in range(len(words)):
        key = np.uint64(0)
        for word in words[row]:
            key = (key ^ word) * np.uint64(0x9E3779B97F4A7C15)
            key ^= key >> np.uint64(31)
        keys[row] = key
    return keys

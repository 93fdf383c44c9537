"""Finds the conjunctions that subsume two or more predicates: the candidate lists of VCB (RoSeS, section 5).

In: distinct predicates and a selectivity function. Out: candidates numbered by rank (most selective first, so that only
ranks are compared later), and for each predicate the ranks of its candidates.

Sets grow level by level, by one atom at a time in ascending order. A set found in only one predicate is dropped
immediately, because none of its supersets can be in two (the Apriori property). The remaining sets are exactly the
relevant nodes of the subsumption graph, found with a few sorts over arrays.

Bound: for a predicate with more than `width` shared atoms, only subsets of its `width` most selective atoms are
generated (at most 2**width), in addition to each single shared atom and each other predicate that it contains. Up to
`width` atoms, nothing is omitted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from fishweir.evaluate.select.factorization.cost import Predicate, Selectivity

Ints = NDArray[np.int64]
WIDTH = 8


@dataclass(frozen=True)
class Candidates:
    """By rank: the conjunction, its selectivity, and the predicates below it. By predicate: its ascending ranks."""

    sets: list[Predicate]
    selectivity: list[float]
    below: list[list[int]]
    lists: list[list[int]]


@dataclass(frozen=True)
class Level:
    """All sets of one size, with their predicates as pairs (set, row), and the position of the last atom in the row."""

    sets: list[Predicate]
    set_ids: Ints
    rows: Ints
    last: Ints


def find_candidates(predicates: Sequence[Predicate], selectivity: Selectivity, width: int = WIDTH) -> Candidates:
    starts, atoms = _shared_atoms(predicates)
    level, grown, ends = _single_atoms(starts, atoms, selectivity, width)
    levels = [level]
    while len(grown.sets):
        grown = _grow(grown, atoms, ends)
        levels.append(grown)
    long = np.flatnonzero(np.diff(starts) > width)
    return _ranked(levels, _contained(predicates, long.tolist()), selectivity, len(predicates))


def _shared_atoms(predicates: Sequence[Predicate]) -> tuple[Ints, Ints]:
    """The atoms that at least two predicates share, ascending within each row, and the offsets of the rows."""
    rows = np.repeat(np.arange(len(predicates)), np.fromiter(map(len, predicates), np.int64, len(predicates)))
    atoms = np.fromiter((a for p in predicates for a in sorted(p)), np.int64, len(rows))
    _, inverse, counts = np.unique(atoms, return_inverse=True, return_counts=True)
    shared = counts[inverse] > 1
    return np.searchsorted(rows[shared], np.arange(len(predicates) + 1)), atoms[shared]


def _single_atoms(starts: Ints, atoms: Ints, selectivity: Selectivity, width: int) -> tuple[Level, Level, Ints]:
    """All single atoms, those that may grow, and for each position of `atoms` the end of its row.

    In a long row, only the `width` most selective atoms grow. The others are moved after the row's end. Each part stays
    in ascending order.
    """
    names, ids = np.unique(atoms, return_inverse=True)
    sets = [frozenset((int(a),)) for a in names]
    rows = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    single = Level(sets, ids, rows, np.arange(len(atoms)))
    ends = starts[rows + 1].copy()
    grows = np.ones(len(atoms), bool)
    chance = np.array([selectivity(s) for s in sets])
    for row in np.flatnonzero(np.diff(starts) > width):
        lo, hi = starts[row], starts[row + 1]
        best = np.sort(np.argsort(chance[ids[lo:hi]], kind="stable")[:width])
        rest = np.setdiff1d(np.arange(hi - lo), best)
        order = lo + np.concatenate([best, rest])
        atoms[lo:hi], ids[lo:hi] = atoms[order], ids[order]
        ends[lo:hi] = lo + width
        grows[lo + width : hi] = False
    return single, Level(sets, ids[grows], rows[grows], single.last[grows]), ends


def _grow(level: Level, atoms: Ints, ends: Ints) -> Level:
    """Each set extended by each later atom of its row, if the result is in two or more rows."""
    room = ends[level.last] - level.last - 1
    source = np.repeat(np.arange(len(room)), room)
    first = np.cumsum(room) - room
    last = level.last[source] + 1 + np.arange(len(source)) - first[source]
    base = int(atoms.max(initial=0)) + 1
    keys, inverse, counts = np.unique(
        level.set_ids[source] * base + atoms[last], return_inverse=True, return_counts=True
    )
    shared = counts > 1
    new_ids = np.cumsum(shared) - 1
    grown = (divmod(key, base) for key in keys[shared].tolist())
    sets = [level.sets[old] | {atom} for old, atom in grown]
    kept = shared[inverse]
    return Level(sets, new_ids[inverse[kept]], level.rows[source[kept]], last[kept])


def _contained(predicates: Sequence[Predicate], long: list[int]) -> list[tuple[Predicate, int]]:
    """The predicates contained in the long ones (and these in themselves), which the bounded subsets may miss."""
    if not long:
        return []
    used: defaultdict[int, list[int]] = defaultdict(list)
    for row, predicate in enumerate(predicates):
        used[min(predicate, key=lambda a: (len(used[a]), a))].append(row)
    pairs = [
        (inner, outer)
        for outer in long
        for atom in predicates[outer]
        for inner in used.get(atom, ())
        if predicates[inner] < predicates[outer]
    ]
    itself = [(inner, inner) for inner in {inner for inner, _ in pairs}]
    return [(predicates[inner], row) for inner, row in pairs + itself]


def _ranked(levels: list[Level], more: list[tuple[Predicate, int]], selectivity: Selectivity, rows: int) -> Candidates:
    """Numbers the sets by cost.order_key. Within a level, they are already in the order of their atoms."""
    sets = [s for level in levels for s in level.sets]
    known = {s: i for i, s in enumerate(sets)}
    for extra, _ in more:
        if known.setdefault(extra, len(sets)) == len(sets):
            sets.append(extra)
    chance = np.array([selectivity(s) for s in sets])
    sizes = np.array([len(s) for s in sets], np.int64)
    order = np.lexsort((np.arange(len(sets)), -sizes, chance))
    if more:
        order = np.array(sorted(order.tolist(), key=lambda i: (chance[i], -sizes[i], tuple(sorted(sets[i])))))
    rank = np.empty(len(sets), np.int64)
    rank[order] = np.arange(len(sets))
    shifts = np.cumsum([0] + [len(level.sets) for level in levels])
    ids = np.concatenate([level.set_ids + shift for level, shift in zip(levels, shifts[:-1], strict=True)])
    at = np.concatenate([level.rows for level in levels])
    if more:
        ids = np.concatenate([ids, [known[s] for s, _ in more]])
        at = np.concatenate([at, [row for _, row in more]])
    pairs = np.unique(np.stack([at, rank[ids]], 1), axis=0) if more else np.stack([at, rank[ids]], 1)
    return Candidates(
        [sets[i] for i in order],
        chance[order].tolist(),
        _lists(pairs[:, 1], pairs[:, 0], len(sets)),
        _lists(pairs[:, 0], pairs[:, 1], rows),
    )


def _lists(keys: Ints, values: Ints, size: int) -> list[list[int]]:
    """The values of each key, ascending."""
    order = np.lexsort((values, keys))
    ends = np.searchsorted(keys[order], np.arange(size + 1)).tolist()
    flat = values[order].tolist()
    return [flat[lo:hi] for lo, hi in pairwise(ends)]

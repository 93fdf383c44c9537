"""A filter plan as flat arrays, and a batch of documents run through it at once.

In: a filter plan; then batches of documents as their true atoms. Out: pairs (document, node) for the
nodes where predicates end.

A row is a block of 64 * WORDS documents, one bit each: an edge is checked for all of them by AND. The
rows that a node leaves empty go no further, so a block pays for an edge only where the parent let one of
its documents pass: the cost model of RoSeS (table 1), a block at a time. No loop over documents, nodes or
predicates, only over the plan's depth and the atoms of an edge.

Shared: nodes are numbered level by level, the children of a node side by side and in the order of the
nodes, so one array of offsets is the whole tree.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fishweir.sharing.factorization.cost import Predicate, Selectivity
from fishweir.sharing.factorization.plan import ROOT, FilterPlan

Ints = NDArray[np.int64]
Bits = NDArray[np.uint64]
WORDS = 4
"""Words in a row: more of them share the work of indexing, fewer are empty more often."""


@dataclass(frozen=True)
class Layout:
    """names: the atoms that occur, ascending; elsewhere an atom is its position here.

    The children of node n are first[n] to first[n + 1]; checks: the atoms that the edge to a node checks,
    the most selective first; ends: numbers of the predicates. The last two are lists by node, with offsets.
    """

    names: Ints
    first: Ints
    check_offsets: Ints
    checks: Ints
    end_offsets: Ints
    ends: Ints

    def __len__(self) -> int:
        return len(self.first) - 1


def to_layout(plan: FilterPlan, selectivity: Selectivity) -> Layout:
    names = sorted({atom for node in plan.nodes() for atom in plan.extra(node)})
    chance = {atom: selectivity(frozenset((atom,))) for atom in names}
    position = {atom: i for i, atom in enumerate(names)}
    nodes, first, checks = [ROOT], [], [[]]  # type: tuple[list[int], list[int], list[list[int]]]
    for node in nodes:  # grows while it is walked, level by level
        first.append(len(nodes))
        edges = [(sorted(plan.extra(c), key=lambda a: (chance[a], a)), c) for c in plan.children[node]]
        edges.sort()
        nodes += [child for _, child in edges]
        checks += [[position[atom] for atom in atoms] for atoms, _ in edges]
    ends = [sorted(plan.ends[node]) for node in nodes]
    first.append(len(nodes))
    return Layout(np.array(names, np.int64), np.array(first, np.int64), *_flat(checks), *_flat(ends))


def to_batch(layout: Layout, documents: Iterable[Predicate]) -> tuple[Ints, Ints]:
    """Documents given as sets of true atoms: offsets by document, and positions in `names`."""
    known = {int(atom): i for i, atom in enumerate(layout.names)}
    return _flat([sorted(known[a] for a in atoms if a in known) for atoms in documents])


def match(layout: Layout, offsets: Ints, atoms: Ints, words: int = WORDS) -> tuple[Ints, Ints]:
    """Which predicates' nodes hold in which documents, as pairs sorted by document and node."""
    truths, rows = _bitmaps(len(layout.names), offsets, atoms, words)
    nodes, blocks = np.zeros(len(rows), np.int64), np.arange(len(rows))
    found = []
    while len(nodes):
        found.append(_pairs(layout, nodes, blocks, rows))
        at, nodes = _slices(layout.first[nodes], layout.first[nodes + 1])
        nodes, blocks, rows = _check(layout, truths, nodes, blocks[at], rows[at])
    if not found:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    documents, nodes = (np.concatenate(column) for column in zip(*found, strict=True))
    order = np.lexsort((nodes, documents))
    return documents[order], nodes[order]


def _bitmaps(names: int, offsets: Ints, atoms: Ints, words: int) -> tuple[Bits, Bits]:
    """The documents where an atom is true, by atom and block; and the documents there are, by block."""
    size = len(offsets) - 1
    width = -(-size // (64 * words)) * words
    documents = np.repeat(np.arange(size), np.diff(offsets))
    truths = np.zeros(names * width, np.uint64)
    np.bitwise_or.at(truths, atoms * width + documents // 64, np.uint64(1) << (documents % 64).astype(np.uint64))
    exist = np.zeros(width * 64, np.uint8)
    exist[:size] = 1
    rows = np.packbits(exist, bitorder="little").view("<u8")
    blocks = width // words
    return truths.reshape(names, blocks, words), rows.astype(np.uint64).reshape(blocks, words)


def _check(layout: Layout, truths: Bits, nodes: Ints, blocks: Ints, rows: Bits) -> tuple[Ints, Ints, Bits]:
    """Checks one atom of every edge at a time; rows that become empty are dropped."""
    step = 0
    while True:
        at = layout.check_offsets[nodes] + step
        more = np.flatnonzero(at < layout.check_offsets[nodes + 1])
        if not len(more):
            return nodes, blocks, rows
        rows[more] &= truths[layout.checks[at[more]], blocks[more]]
        alive = np.flatnonzero(rows.any(axis=1))
        nodes, blocks, rows = nodes[alive], blocks[alive], rows[alive]
        step += 1


def _pairs(layout: Layout, nodes: Ints, blocks: Ints, rows: Bits) -> tuple[Ints, Ints]:
    """The set bits of the rows whose node ends a predicate."""
    ending = np.flatnonzero(layout.end_offsets[nodes] < layout.end_offsets[nodes + 1])
    row, word = np.nonzero(rows[ending])
    bits = rows[ending[row], word].astype("<u8").view(np.uint8).reshape(-1, 8)
    at, bit = np.nonzero(np.unpackbits(bits, axis=1, bitorder="little"))
    row, word = ending[row[at]], word[at]
    return (blocks[row] * rows.shape[1] + word) * 64 + bit, nodes[row]


def _slices(lo: Ints, hi: Ints) -> tuple[Ints, Ints]:
    """All positions of the slices [lo, hi): the slice each comes from, and the position."""
    lengths = hi - lo
    source = np.repeat(np.arange(len(lo)), lengths)
    first = np.cumsum(lengths) - lengths
    return source, lo[source] + np.arange(len(source)) - first[source]


def _flat(lists: list[list[int]]) -> tuple[Ints, Ints]:
    offsets = np.cumsum([0, *map(len, lists)])
    return offsets, np.array([value for values in lists for value in values], np.int64)

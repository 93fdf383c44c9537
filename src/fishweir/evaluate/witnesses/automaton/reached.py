"""Counts the nodes and documents that reached each path of a batch.

In: rows by state and paths by state. Out: the numbers of nodes and documents of each reached path. The rows of a state
are counted once for all paths that it accepts. A path that several states accept requires the union of their documents,
kept as bitmaps. A path that ends in no state of the batch costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fishweir.evaluate.arrays import Ints
from fishweir.jit import kernel, population

if TYPE_CHECKING:
    from fishweir.evaluate.witnesses.automaton.batch import FactorizedHits


@dataclass(frozen=True, slots=True)
class PathCounts:
    """Row i: a path, the number of nodes that reached its end, and the number of documents with such a node."""

    paths: Ints
    nodes: Ints
    documents: Ints


def count_reached(found: FactorizedHits, documents: Ints) -> PathCounts:
    """Counts per path. `documents` are those of the rows. The rows of a document are adjacent."""
    times = np.bincount(found.paths)
    paths = np.flatnonzero(times)
    line = np.cumsum(times > 0) - 1
    ordinals = np.cumsum(np.append(0, np.diff(documents) != 0))
    words = (int(ordinals[-1]) >> 6) + 1
    nodes, inside = np.zeros(len(paths), np.int64), np.zeros(len(paths), np.int64)
    seen = np.zeros((len(paths), words), np.uint64)
    rows, lines = ordinals[found.rows], line[found.paths]
    _count(found.row_offsets, rows, found.path_offsets, lines, times[paths], nodes, inside, seen)
    return PathCounts(paths, nodes, inside)


@kernel
def _count(
    row_offsets: Ints,
    documents: Ints,
    path_offsets: Ints,
    lines: Ints,
    times: Ints,
    nodes: Ints,
    inside: Ints,
    seen: NDArray[np.uint64],
) -> None:
    bits = np.empty(seen.shape[1], np.uint64)
    for state in range(len(row_offsets) - 1):
        first, last = path_offsets[state], path_offsets[state + 1]
        if first == last:
            continue
        bits[:] = 0
        for at in range(row_offsets[state], row_offsets[state + 1]):
            bits[documents[at] >> 6] |= np.uint64(1) << np.uint64(documents[at] & 63)
        size, distinct = row_offsets[state + 1] - row_offsets[state], 0
        for word in range(len(bits)):
            distinct += population(bits[word])
        for at in range(first, last):
            line = lines[at]
            nodes[line] += size
            if times[line] == 1:
                inside[line] = distinct
            else:
                seen[line] |= bits
    for line in range(len(nodes)):
        if times[line] > 1:
            for word in range(seen.shape[1]):
                inside[line] += population(seen[line, word])

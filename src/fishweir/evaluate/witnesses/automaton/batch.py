"""The result of the automaton for a batch of documents, factorized: rows by state, paths by state.

In: the rows and the automaton's paths. Out: the nodes or the chains of a path; or everything as (state -> rows, state
-> paths), in which a state that five thousand paths accept is one entry; or everything expanded to pairs. A batch must
be read before paths are added to the automaton or removed from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fishweir.algebra.documents import ATTRIBUTE, attribute_id
from fishweir.evaluate.arrays import Ints, expand
from fishweir.evaluate.witnesses.automaton.compiled import CompiledPattern
from fishweir.evaluate.witnesses.automaton.evaluate import embeddings, end_rows
from fishweir.evaluate.witnesses.automaton.reached import PathCounts, count_reached
from fishweir.evaluate.witnesses.automaton.rows import Rows
from fishweir.evaluate.witnesses.automaton.walk import Walk


@dataclass(frozen=True)
class Witnesses:
    """Row i has the document, the node bound to each step (the last column is the result), and the batch's row.

    A node is given by the position of its element. The second and further attributes with the same local name also
    encode their rank (`ATTRIBUTE`). `Batch.node_id` names attributes, `Batch.texts` returns values.
    """

    documents: Ints
    nodes: Ints
    rows: Ints

    def __len__(self) -> int:
        return len(self.documents)


@dataclass(frozen=True)
class FactorizedHits:
    """The paths without predicates. The `rows` of state s lie between its `row_offsets`, its `paths` between its
    `path_offsets`."""

    row_offsets: Ints
    rows: Ints
    path_offsets: Ints
    paths: NDArray[np.int32]

    def expand(self) -> tuple[Ints, NDArray[np.int32]]:
        """All pairs (row, path)."""
        times = np.diff(self.path_offsets)
        state = np.repeat(np.arange(len(times)), np.diff(self.row_offsets))
        at, position = expand(self.path_offsets[state], self.path_offsets[state + 1])
        return self.rows[at], self.paths[position]

    @property
    def pairs(self) -> int:
        return int(np.diff(self.row_offsets) @ np.diff(self.path_offsets))


class Batch:
    """`path_at` has the path without predicates that ends at each node of the rows' states, or -1. `elements` is the
    number of elements in the documents. `skipped` is the number of those in subtrees that no path enters."""

    def __init__(
        self,
        rows: Rows,
        paths: Mapping[int, CompiledPattern],
        path_at: NDArray[np.int32],
        anchors: Mapping[int, Mapping[str | None, Mapping[int, None]]],
        walk: Walk,
    ) -> None:
        self.rows, self.elements, self.skipped, self.bytes = rows, walk.elements, walk.skipped, walk.bytes
        self._paths, self._path_at, self._anchors = paths, path_at, anchors

    @cached_property
    def factorized(self) -> FactorizedHits:
        """All hits of the paths without predicates."""
        order, starts = self.rows.by_state
        accepted = self._path_at >= 0
        offsets = np.append(0, np.cumsum(accepted))[self.rows.node_starts]
        return FactorizedHits(starts, order, offsets, self._path_at[accepted])

    @cached_property
    def reached(self) -> PathCounts:
        """The numbers of nodes and documents of each path without predicates that has nodes in the batch."""
        return count_reached(self.factorized, self.rows.documents)

    @cached_property
    def below(self) -> tuple[Ints, Ints]:
        """Elements and bytes below the nodes of each path without predicates that has nodes in the batch."""
        accepted = np.flatnonzero(self._path_at >= 0)
        states = np.repeat(np.arange(self.rows.states), np.diff(self.rows.node_starts))[accepted]
        paths, line = np.unique(self._path_at[accepted], return_inverse=True)
        sums = [np.bincount(line, self.rows.activity[states, k], len(paths)).astype(np.int64) for k in (0, 1)]
        return sums[0], sums[1]

    @cached_property
    def conditional(self) -> dict[int, Ints]:
        """The rows of each path with predicates that has rows."""
        found = {path: end_rows(self.rows, self._paths[path].trunk) for path in self._candidates()}
        return {path: rows for path, rows in found.items() if len(rows)}

    def _candidates(self) -> list[int]:
        """The paths with predicates whose anchors occur in the batch. The others cannot match."""
        found: dict[int, None] = {}
        texts = self.rows.by_text
        for node in self.rows.present(self._anchors.keys()):
            anchors = self._anchors[node]
            found.update(anchors.get(None, {}))
            for text in anchors.keys() & texts.keys():
                found.update(anchors[text])
        return list(found)

    def matched(self) -> Ints:
        """The sorted ids of all paths that match somewhere in the batch."""
        plain = self.factorized.paths
        return np.unique(np.concatenate([plain.astype(np.int64), np.array([*self.conditional], np.int64)]))

    def expand(self) -> tuple[Ints, Ints]:
        """All pairs (row, path). Pairs of paths with predicates come last."""
        rows, paths = self.factorized.expand()
        conditional = self.conditional
        lengths = [len(found) for found in conditional.values()]
        more = np.repeat(np.array([*conditional], np.int64), lengths)
        return np.concatenate([rows, *conditional.values()]), np.concatenate([paths, more])

    def nodes(self, path: int) -> Witnesses:
        """The distinct nodes of a path, in document order."""
        rows = end_rows(self.rows, self._paths[path].trunk)
        return Witnesses(self.rows.documents[rows], self.rows.positions[rows][:, None], rows)

    def chains(self, path: int) -> Witnesses:
        """One row per embedding of a path's steps, in document order of the last node."""
        chains = embeddings(self.rows, self._paths[path].trunk)
        last = chains[:, -1]
        return Witnesses(self.rows.documents[last], self.rows.positions[chains], last)

    def texts(self, found: Witnesses) -> list[str]:
        """The values of the last nodes of a path that was added with `values`."""
        return self.rows.texts_of(found.rows)

    def node_id(self, row: int) -> str:
        """The node of a row as shown in results: `17`, `17@id`."""
        name, position = self.rows.name_of(row), int(self.rows.positions[row])
        return f"{position}" if name is None else attribute_id(position % ATTRIBUTE, name, position // ATTRIBUTE)

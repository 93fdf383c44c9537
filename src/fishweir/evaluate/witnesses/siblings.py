"""Places among siblings: which of the children of one element that pass a test a node is.

In: a walk that kept its elements, steps with a position, nodes. Out: which nodes are at the position. Shared: for each
test the places of all elements of a batch are worked out once, by one sort of parents; nothing loops over elements.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fishweir.algebra.nodes import LAST, Step
from fishweir.evaluate.arrays import Ints
from fishweir.evaluate.witnesses.automaton.walk import Walk


class Siblings:
    """The elements of a batch by their parents."""

    def __init__(self, walk: Walk) -> None:
        self._walk = walk
        self._known: dict[tuple[str, str | None], tuple[Ints, NDArray[np.bool_]]] = {}

    def at_position(self, step: Step, documents: Ints, nodes: Ints) -> NDArray[np.bool_]:
        """Whether nodes that pass a step's test are at its position; what stood above a split is alone."""
        places, lasts = self._places(step)
        elements = self._firsts[self._order[np.searchsorted(self._sorted, documents)]] + np.maximum(nodes, 0)
        alone = nodes < 0
        if step.position == LAST:
            return alone | lasts[elements]
        return np.where(alone, step.position == 1, places[elements] == step.position)

    def _places(self, step: Step) -> tuple[Ints, NDArray[np.bool_]]:
        """For each element its place among the siblings that pass, from 1, and whether it is the last of them."""
        test = step.name, step.namespace
        if test not in self._known:
            names, parents = self._elements
            passing = np.flatnonzero(self._accepted(step)[names])
            ordered = passing[np.argsort(parents[passing], kind="stable")]
            begins = np.append(True, np.diff(parents[ordered]) != 0)[: len(ordered)]
            starts = np.flatnonzero(begins)
            counts = np.diff(np.append(starts, len(ordered)))
            places, lasts = np.zeros(len(names), np.int64), np.zeros(len(names), np.bool_)
            places[ordered] = np.arange(len(ordered)) - np.repeat(starts, counts) + 1
            lasts[ordered] = np.append(begins[1:], True)[: len(ordered)]
            self._known[test] = places, lasts
        return self._known[test]

    def _accepted(self, step: Step) -> NDArray[np.bool_]:
        """Which of the names so far pass a test."""
        parted = [name.rpartition("}") for name in self._walk.steps.names.names]
        return np.array([step.accepts(local, space[1:]) for space, _, local in parted], np.bool_)

    @cached_property
    def _elements(self) -> tuple[Ints, Ints]:
        """Names and parents of all elements; each document element has a parent of its own."""
        names, parents, size = [], [], 0
        for part in self._walk.parts:
            assert part.elements is not None, "the walk has kept its elements"
            own = part.elements.elements[:-1]
            roots = own[:, 1] < 0
            names.append(own[:, 0])
            parents.append(np.where(roots, -1 - size - np.arange(len(own)), own[:, 1] + size))
            size += len(own)
        return np.concatenate(names), np.concatenate(parents)

    @cached_property
    def _firsts(self) -> Ints:
        """The first element of each document, in the order of the walk."""
        firsts, size = [], 0
        for part in self._walk.parts:
            assert part.elements is not None, "the walk has kept its elements"
            firsts.append(part.elements.firsts[:-1] + size)
            size += len(part.elements.elements) - 1
        return np.concatenate(firsts)

    @cached_property
    def _order(self) -> Ints:
        return np.argsort(np.array(self._walk.documents, np.int64), kind="stable")

    @cached_property
    def _sorted(self) -> Ints:
        return np.array(self._walk.documents, np.int64)[self._order]

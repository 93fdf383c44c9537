"""A filter plan as flat arrays, and its evaluation on a batch of documents.

In: a filter plan over *units* (an atom, or a disjunction of atoms and negated atoms), and then batches of documents,
given as their true atoms. Out: for each document, the nodes at which predicates that hold end.

Shared: nodes are numbered level by level, with the children of a node adjacent, so one array of offsets represents the
whole tree. Children are sorted by their *access*, the most selective unit of their edge that a true atom leads to.
Below `true`, and below any node with many children, a document therefore reaches only the edges whose access holds, and
other registered predicates cost nothing. An edge is checked for the documents that its parent let pass, as in the cost
model of table 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fishweir.evaluate.arrays import Ints
from fishweir.evaluate.select.factorization.plan import ROOT, FilterPlan
from fishweir.jit import kernel

Numbers = NDArray[np.int32]
Literals = tuple[tuple[int, bool], ...]
"""A disjunction: atoms with their signs."""

NO_ACCESS = -1


@dataclass(frozen=True)
class Units:
    """Unit u is atom u for u < atoms, else a disjunction: its `literals` between the offsets are 2 * atom + negated."""

    atoms: int
    offsets: Ints
    literals: Ints

    def __len__(self) -> int:
        return self.atoms + len(self.offsets) - 1

    def is_findable(self, unit: int) -> bool:
        """Whether a true atom leads to the unit whenever it holds, which requires that it has no negated atom."""
        return unit < self.atoms or not self._negated[unit - self.atoms]

    @property
    def findable(self) -> NDArray[np.bool_]:
        """Whether each unit is findable."""
        return np.append(np.ones(self.atoms, np.bool_), ~self._negated)

    @cached_property
    def _negated(self) -> NDArray[np.bool_]:
        before = np.append(0, np.cumsum(self.literals & 1))
        return before[self.offsets[1:]] != before[self.offsets[:-1]]

    def of(self, unit: int) -> Literals:
        if unit < self.atoms:
            return ((unit, True),)
        lo, hi = self.offsets[unit - self.atoms : unit - self.atoms + 2]
        return tuple((int(x) >> 1, not x & 1) for x in self.literals[lo:hi])

    def chances(self, atoms: NDArray[np.float64]) -> NDArray[np.float64]:
        """The share of documents in which each unit holds, assuming independent atoms."""
        alone = np.where(self.literals & 1, 1 - atoms[self.literals >> 1], atoms[self.literals >> 1])
        logs = np.append(0, np.cumsum(np.log1p(-np.minimum(alone, 1 - 1e-12))))
        return np.append(atoms, 1 - np.exp(logs[self.offsets[1:]] - logs[self.offsets[:-1]]))


def to_units(atoms: int, disjunctions: Sequence[Literals]) -> Units:
    offsets = np.cumsum([0, *map(len, disjunctions)])
    flat = [2 * atom + (not positive) for literals in disjunctions for atom, positive in literals]
    return Units(atoms, offsets.astype(np.int64), np.array(flat, np.int64))


@dataclass(frozen=True)
class Layout:
    """The children of node n are first[n] to first[n + 1]. `checks` are the units of the edge to a node, with its
    access first. `ends` are the numbers of the predicates. Both are lists by node, with offsets."""

    units: Units
    first: Numbers
    access: Numbers
    check_offsets: Numbers
    checks: Numbers
    end_offsets: Numbers
    ends: Ints

    def __len__(self) -> int:
        return len(self.first) - 1

    @cached_property
    def entries(self) -> Numbers:
        """By unit, the first child of `true` with this access. Children without access come first."""
        below = self.access[1 : self.first[1]]
        return (np.searchsorted(below, np.arange(len(self.units) + 1)) + 1).astype(np.int32)

    @cached_property
    def triggers(self) -> tuple[Numbers, Numbers]:
        """By atom, with offsets: the disjunctions that contain it and are the access of a child of `true`."""
        units = self.units
        wanted = np.diff(self.entries)[units.atoms :] > 0
        unit = np.repeat(np.arange(len(wanted)), np.diff(units.offsets))
        atoms, unit = units.literals[wanted[unit]] >> 1, unit[wanted[unit]]
        order = np.argsort(atoms, kind="stable")
        offsets = np.searchsorted(atoms[order], np.arange(units.atoms + 1))
        return offsets.astype(np.int32), (unit[order] + units.atoms).astype(np.int32)

    @cached_property
    def parents(self) -> Ints:
        parents = np.repeat(np.arange(len(self)), np.diff(self.first))
        return np.append(-1, parents)

    def units_of(self, node: int) -> frozenset[int]:
        """The conjunction that a node represents."""
        found: list[int] = []
        while node != ROOT:
            found += self.checks[self.check_offsets[node] : self.check_offsets[node + 1]].tolist()
            node = int(self.parents[node])
        return frozenset(found)

    def cost(self, chances: NDArray[np.float64]) -> float:
        """The cost of the plan for a source of rate 1 (table 1): each edge costs what its parent lets pass.

        `chances` are by unit.
        """
        logs = np.append(0, np.cumsum(np.log(np.maximum(chances[self.checks], 1e-300))))
        edge = np.exp(logs[self.check_offsets[1:]] - logs[self.check_offsets[:-1]])
        return _cost(self.first, edge)


@kernel
def _cost(first: Numbers, edge: NDArray[np.float64]) -> float:
    passed = np.ones(len(edge))
    total = 0.0
    for node in range(len(edge)):
        for child in range(first[node], first[node + 1]):
            passed[child] = passed[node] * edge[child]
            total += passed[node]
    return total


def to_layout(plan: FilterPlan, units: Units, chances: NDArray[np.float64]) -> Layout:
    chance = chances.tolist()
    nodes, first = [ROOT], []  # type: tuple[list[int], list[int]]
    checks: list[list[int]] = [[]]
    access = [NO_ACCESS]
    for node in nodes:  # grows during the iteration, level by level
        first.append(len(nodes))
        last = len(units) if node == ROOT else units.atoms
        edges = sorted((*_edge(plan.extra(child), units, chance, last), child) for child in plan.children[node])
        for entry, ordered, child in edges:
            nodes.append(child)
            access.append(entry)
            checks.append(ordered)
    ends = [sorted(plan.ends[node]) for node in nodes]
    first.append(len(nodes))
    check_offsets, flat_checks = _flat(checks)
    end_offsets, flat_ends = _flat(ends)
    tree = (np.array(first, np.int32), np.array(access, np.int32), check_offsets, flat_checks.astype(np.int32))
    return Layout(units, *tree, end_offsets, flat_ends)


def _edge(extra: frozenset[int], units: Units, chance: list[float], last: int) -> tuple[int, list[int]]:
    """The access, which is a findable unit below `last`, and all units of an edge, most selective first."""
    ordered = sorted(extra, key=lambda unit: (chance[unit], unit))
    entry = next((unit for unit in ordered if unit < last and units.is_findable(unit)), NO_ACCESS)
    return entry, ordered if entry == NO_ACCESS else [entry, *(unit for unit in ordered if unit != entry)]


def _flat(lists: list[list[int]]) -> tuple[Numbers, Ints]:
    offsets = np.cumsum([0, *map(len, lists)]).astype(np.int32)
    return offsets, np.array([value for values in lists for value in values], np.int64)


def run(layout: Layout, offsets: Ints, atoms: Ints) -> tuple[Ints, Numbers, int]:
    """The reached nodes with ends, by document with offsets, and the number of edges checked.

    `atoms` are the distinct true atoms of each document, between its offsets.
    """
    units = layout.units
    return _run(
        layout.first,
        layout.access,
        layout.check_offsets,
        layout.checks,
        layout.end_offsets,
        layout.entries,
        *layout.triggers,
        units.atoms,
        units.offsets,
        units.literals,
        offsets,
        atoms,
    )


@kernel
def _run(
    first: Numbers,
    access: Numbers,
    check_offsets: Numbers,
    checks: Numbers,
    end_offsets: Numbers,
    entries: Numbers,
    trigger_offsets: Numbers,
    triggers: Numbers,
    base: int,
    unit_offsets: Ints,
    literals: Ints,
    offsets: Ints,
    atoms: Ints,
) -> tuple[Ints, Numbers, int]:
    """Depth-first traversal per document. `stamp[u]` is the last document in which unit u was found to hold."""
    documents = len(offsets) - 1
    stamp = np.full(base + len(unit_offsets) - 1, -1, np.int32)
    true = np.empty(len(stamp), np.int32)
    stack = np.empty(len(first), np.int32)
    found = np.empty(1024, np.int32)
    ends = np.zeros(documents + 1, np.int64)
    size, checked = 0, 0
    for document in range(documents):
        known = offsets[document + 1] - offsets[document]
        true[:known] = atoms[offsets[document] : offsets[document + 1]]
        count = _mark(document, known, trigger_offsets, triggers, stamp, true)
        stack[0] = 0
        top = 1
        while top:
            top -= 1
            node = stack[top]
            if end_offsets[node + 1] > end_offsets[node]:
                if size == len(found):
                    found = np.append(found, np.empty_like(found))
                found[size] = node
                size += 1
            lo, hi = first[node], first[node + 1]
            steps = 1
            if node == 0:
                steps = count + 1
            elif hi - lo > 8 * known:  # few of the children can hold: find them by the true atoms
                steps = known + 1
            for step in range(steps):
                start, end = lo, hi
                wanted = -1 if step == 0 else true[step - 1]
                if node == 0:
                    start, end = (lo, entries[0]) if step == 0 else (entries[wanted], entries[wanted + 1])
                elif steps > 1:
                    start, end = _with_access(access, lo, hi, wanted)
                for child in range(start, end):
                    checked += 1
                    edge = checks[check_offsets[child] : check_offsets[child + 1]]
                    if _holds(edge, document, stamp, base, unit_offsets, literals):
                        stack[top] = child
                        top += 1
        ends[document + 1] = size
    return ends, found[:size], checked


@kernel
def _mark(document: int, known: int, trigger_offsets: Numbers, triggers: Numbers, stamp: Numbers, true: Numbers) -> int:
    """Stamps the true atoms and the disjunctions they lead to, and appends the latter to `true`. Returns its length."""
    count = known
    for i in range(known):
        stamp[true[i]] = document
        for j in range(trigger_offsets[true[i]], trigger_offsets[true[i] + 1]):
            unit = triggers[j]
            if stamp[unit] != document:
                stamp[unit] = document
                true[count] = unit
                count += 1
    return count


@kernel
def _with_access(access: Numbers, lo: int, hi: int, wanted: int) -> tuple[int, int]:
    """The children between lo and hi that have the given access."""
    start, end = lo, hi
    while start < end:
        middle = (start + end) >> 1
        if access[middle] < wanted:
            start = middle + 1
        else:
            end = middle
    while end < hi and access[end] == wanted:
        end += 1
    return start, end


@kernel
def _holds(edge: Numbers, document: int, stamp: Numbers, base: int, unit_offsets: Ints, literals: Ints) -> bool:
    """Whether all units of an edge hold. A disjunction that was not stamped is evaluated."""
    for unit in edge:
        if stamp[unit] == document:
            continue
        if unit < base:
            return False
        some = False
        for m in range(unit_offsets[unit - base], unit_offsets[unit - base + 1]):
            if (stamp[literals[m] >> 1] == document) != (literals[m] & 1):
                some = True
                break
        if not some:
            return False
    return True

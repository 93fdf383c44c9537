"""The filters of one source: atoms, clauses, conjunctions and queries in one plan (RoSeS 4.3).

In: the witnesses of a batch. Out: Matches, with one row per document and the queries it satisfies, and the sides that
other kinds of queries read. The plan has four levels. Atom groups find the atoms that hold. Disjunctions are derived
from them. Conjunctions are shared by the filter plan that VCA with VCB chose (filter_plan.py). Queries and sides with
equal conjunctions end at one node. Immutable; written to a segment file and mapped from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fishweir.algebra.codec import from_json, to_json
from fishweir.algebra.nodes import Source
from fishweir.algebra.normal import ANY_ROOT
from fishweir.algebra.predicates import AtomSignature, Predicate
from fishweir.evaluate.arrays import Ints, expand
from fishweir.evaluate.index.atoms import AtomGroup, true_atoms
from fishweir.evaluate.matches import Matches, SideMatches, to_sides
from fishweir.evaluate.select.factorization.layout import Layout, Units, run
from fishweir.evaluate.witnesses.path_tables import Path, PathTable, suspensions

ROOT_PATH: Path = (ANY_ROOT,)


@dataclass(frozen=True)
class FilterTable:
    """Queries and sides by the node at which they end, sides first. `chances` are the atom selectivities for which the
    plan was chosen. `counted` is the number of values counted at that time."""

    kind: ClassVar[str] = "filters"

    source: Source
    groups: tuple[AtomGroup, ...]
    layout: Layout
    chances: NDArray[np.float64]
    counted: int

    @property
    def members(self) -> Ints:
        """The query or side at each position."""
        return self.layout.ends

    @property
    def size(self) -> int:
        return len(self.members) - self.side_count

    @cached_property
    def side_count(self) -> int:
        return int(np.count_nonzero(np.asarray(self.members) < 0))

    @cached_property
    def first_queries(self) -> Ints:
        """By node, the position at which its sides end and its queries begin."""
        sides = np.append(0, np.cumsum(np.asarray(self.members) < 0))
        starts, ends = self.layout.end_offsets[:-1], self.layout.end_offsets[1:]
        return (starts + sides[ends] - sides[starts]).astype(np.int64)

    @property
    def own_paths(self) -> dict[Path, bool]:
        """The paths read, and whether their values are read. Every document has a row for its root."""
        return _paths(group.signature for group in self.groups)

    def paths(self, sources: Sequence[Source]) -> dict[Path, bool]:
        return self.own_paths if self.source in sources else {}

    def header(self) -> Any:
        return [to_json(self.source), [to_json(g.signature) for g in self.groups], self.counted]

    def arrays(self) -> dict[str, Any]:
        return filter_arrays(self)

    @property
    def worded(self) -> set[Path]:
        return {g.signature.path for g in self.groups if g.signature.type == "words"}

    def positions_of(self, number: int) -> Ints:
        return np.flatnonzero(self.members == number)

    def nodes_of(self, number: int) -> list[int]:
        """The nodes at which a query's predicates end."""
        found = np.searchsorted(self.layout.end_offsets, self.positions_of(number), "right") - 1
        return found.tolist()

    def cost(self, chances: NDArray[np.float64]) -> float:
        """The cost of the plan per item of the source, for the given atom selectivities."""
        return self.layout.cost(self.layout.units.chances(chances))


def predicate_paths(predicate: Predicate) -> dict[Path, bool]:
    return _paths(literal.signature for literal in predicate.literals)


def _paths(signatures: Iterable[AtomSignature]) -> dict[Path, bool]:
    read = {ROOT_PATH: False}
    for signature in signatures:
        read[signature.path] = read.get(signature.path, False) or signature.op != "exists"
    return read


def with_ends(layout: Layout, members: Ints) -> Layout:
    """Replaces the ends of a layout, which index `members`, by the members: at each node sides first, then queries."""
    ends = np.asarray(members, np.int64)[layout.ends]
    if (ends < 0).any():
        nodes = np.repeat(np.arange(len(layout)), np.diff(layout.end_offsets))
        ends = ends[np.lexsort((ends >= 0, nodes))]
    return replace(layout, ends=ends)


def match_filters(table: FilterTable, witnesses: Mapping[Path, PathTable]) -> Matches | None:
    """The matches of a source's filters, or None if nothing fires."""
    roots = witnesses.get(ROOT_PATH)
    if roots is None or not len(roots):
        return None
    offsets, atoms = true_atoms(table.groups, witnesses, int(roots.documents.max()) + 1)
    ends, nodes, _ = run(table.layout, offsets, atoms)
    counts = np.diff(ends)
    counts[np.setdiff1d(np.arange(len(counts)), roots.documents)] = 0
    documents = np.flatnonzero(counts)
    if not len(documents):
        return None
    _, at = expand(ends[documents], ends[documents + 1])
    ended, counts = nodes[at].astype(np.int64), counts[documents]
    if not table.side_count and not suspensions(witnesses):
        return _of_queries(table, documents, counts, ended)
    pairs = np.repeat(documents, counts)
    for some, suspended in suspensions(witnesses):
        known = ~(np.isin(pairs, some) & _unknown(table, suspended)[ended])
        pairs, ended = pairs[known], ended[known]
    sides = _of_sides(table, pairs, ended)
    queried = table.first_queries[ended] < table.layout.end_offsets[ended + 1]
    documents, counts = np.unique(pairs[queried], return_counts=True)
    return replace(_of_queries(table, documents, counts, ended[queried]), sides=sides)


def _unknown(table: FilterTable, suspended: frozenset[Path]) -> NDArray[np.bool_]:
    """The nodes whose conjunctions have a negated atom on a suspended path, where a missing value has no meaning."""
    layout, units = table.layout, table.layout.units
    hidden = [np.full(len(group), group.signature.path in suspended) for group in table.groups]
    atoms = np.concatenate([np.zeros(0, np.bool_), *hidden])
    unknown = _any(atoms[units.literals >> 1] & (units.literals & 1 == 1), units.offsets)
    nodes = _any(np.append(np.zeros(units.atoms, np.bool_), unknown)[layout.checks], layout.check_offsets)
    above = np.maximum(layout.parents, 0)
    while above.any():  # unknown at a node implies unknown below it
        nodes |= nodes[above]
        above = np.maximum(layout.parents[above], 0)
    return nodes


def _any(flags: NDArray[np.bool_], offsets: NDArray[Any]) -> NDArray[np.bool_]:
    """For each range between two offsets, whether a flag is set in it."""
    before = np.append(0, np.cumsum(flags))
    return before[offsets[1:]] != before[offsets[:-1]]


def _of_sides(table: FilterTable, documents: Ints, ended: Ints) -> SideMatches:
    """The sides that end at the given nodes, each with the document that reached the node."""
    source, positions = expand(table.layout.end_offsets[ended].astype(np.int64), table.first_queries[ended])
    return SideMatches(documents[source], to_sides(np.asarray(table.members)[positions]))


def _of_queries(table: FilterTable, documents: Ints, counts: Ints, ended: Ints) -> Matches:
    """The queries that end at the given nodes. `counts` is the number of nodes of each document."""
    bounds = np.append(0, np.cumsum(counts))
    lo, hi = table.first_queries[ended], table.layout.end_offsets[ended + 1].astype(np.int64)
    zeros, none = np.zeros(len(documents) + 1, np.int64), np.empty(0, np.int64)
    root = np.zeros((len(documents), 1), np.int64)
    if (hi - lo).sum() > 2 * len(lo):
        return Matches(documents, root, 2 * bounds, np.stack([lo, hi], 1).ravel(), zeros, none)
    source, positions = expand(lo, hi)
    members = np.searchsorted(source, bounds)
    return Matches(documents, root, zeros, none, members, table.members[positions])


# Serialization to segment files.


def filter_arrays(table: FilterTable) -> dict[str, Any]:
    layout, units = table.layout, table.layout.units
    return {
        "first": layout.first,
        "access": layout.access,
        "check_offsets": layout.check_offsets,
        "checks": layout.checks,
        "end_offsets": layout.end_offsets,
        "ends": layout.ends,
        "unit_offsets": units.offsets,
        "literals": units.literals,
        "chances": table.chances,
        **{f"constants{i}": group.constants for i, group in enumerate(table.groups)},
    }


def filters_from_arrays(header: Sequence[Any], arrays: Mapping[str, Any]) -> FilterTable:
    source, signatures, counted = header
    groups: list[AtomGroup] = []
    first = 0
    for i, signature in enumerate(signatures):
        groups.append(AtomGroup(from_json(signature), first, arrays[f"constants{i}"]))
        first += len(groups[-1])
    units = Units(first, arrays["unit_offsets"], arrays["literals"])
    tree = (arrays[name] for name in ("first", "access", "check_offsets", "checks", "end_offsets", "ends"))
    return FilterTable(from_json(source), tuple(groups), Layout(units, *tree), arrays["chances"], counted)

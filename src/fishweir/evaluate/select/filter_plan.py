"""Plans the filters of one source by VCA with VCB (RoSeS 4.3 and 5).

In: the predicates of many queries with their constants, or tables to merge, and the statistics. Out: a FilterTable.
Sides of other kinds (matches.py) are planned together with the queries; below, "queries" refers to both. Each source
has its own plans, so adding or removing a query does not affect other sources. A plan is rebuilt if its estimated cost
has drifted from the estimate it was chosen by, and if the new plan is sufficiently cheaper.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from fishweir.algebra.nodes import Source
from fishweir.algebra.normal import dotted
from fishweir.algebra.predicates import AtomSignature, Predicate
from fishweir.evaluate.arrays import Column, Ints, take, to_column
from fishweir.evaluate.index.atoms import AtomGroup, build_groups
from fishweir.evaluate.query_rows import Columns
from fishweir.evaluate.select.factorization.cost import independent
from fishweir.evaluate.select.factorization.flat import flat_layout
from fishweir.evaluate.select.factorization.layout import Literals, to_layout, to_units
from fishweir.evaluate.select.factorization.vcb import vcb
from fishweir.evaluate.select.filters import FilterTable, with_ends
from fishweir.evaluate.select.selectivity import selectivities
from fishweir.evaluate.statistics import PathStatistics, Statistics, path_key

Conjunction = frozenset[Literals]
"""A predicate over numbered atoms."""

DRIFTED = 1.5
"""A plan is reconsidered when its estimated cost is off by this factor in either direction."""
FLAT_FROM = 256
"""More new queries than this at once are evaluated by the naive plan until they are merged or replanned."""
PAYS = 0.9
"""A new plan replaces the old one if it costs at most this fraction of it."""


def build_filters(source: Source, grouped: Mapping[Predicate, Columns], statistics: Statistics) -> FilterTable:
    """All predicates of a source as one plan, from the queries of each predicate."""
    columns: dict[AtomSignature, list[Column]] = {}
    parts: list[list[int]] = []
    for template, (_, rows) in grouped.items():
        columns_of = [columns.setdefault(literal.signature, []) for literal in template.literals]
        parts.append([])
        for literal, column, values in zip(template.literals, columns_of, zip(*rows, strict=True), strict=True):
            parts[-1].append(len(column))
            column.append(to_column(values, literal.signature.type))
    groups, numbered = build_groups(columns)
    numbers: list[int] = []
    found = _Numbered(groups)
    for (template, (some, _)), here in zip(grouped.items(), parts, strict=True):
        atoms = [numbered[x.signature][part].tolist() for x, part in zip(template.literals, here, strict=True)]
        numbers += some
        if atoms and len(atoms) == len(template.clauses) and all(x.positive for x in template.literals):
            found.predicates += map(frozenset, zip(*atoms, strict=True))  # each clause is one atom
        else:
            found.add(_conjunctions(template, atoms, len(some)))
    return _planned(source, found, numbers, statistics, flat=len(numbers) > FLAT_FROM)


def _conjunctions(template: Predicate, atoms: list[list[int]], count: int) -> list[Conjunction]:
    """The predicate of each query: the template with the atoms of the query's constants."""
    if not template.clauses:
        return [frozenset()] * count
    signs = [literal.positive for literal in template.literals]
    ends = np.cumsum([len(clause) for clause in template.clauses]).tolist()
    spans = list(zip([0, *ends[:-1]], ends, strict=True))
    return [
        frozenset(tuple(sorted(zip(row[lo:hi], signs[lo:hi], strict=True))) for lo, hi in spans)
        for row in zip(*atoms, strict=True)
    ]


def merge_filters(tables: Sequence[FilterTable], dead: Ints, statistics: Statistics) -> FilterTable | None:
    """Several plans of one source merged into one, without the dead queries and the atoms that only they use."""
    gone = set(dead.tolist())
    columns: dict[AtomSignature, list[Column]] = {}
    living: list[tuple[int, Conjunction, int]] = []
    used: list[tuple[FilterTable, Ints]] = []
    for i, table in enumerate(tables):
        here = [
            (n, conjunction, i) for numbers, conjunction in members_by_node(table) for n in numbers if n not in gone
        ]
        living += here
        used_atoms = {atom for conjunction in {c for _, c, _ in here} for clause in conjunction for atom, _ in clause}
        used.append((table, np.array(sorted(used_atoms), np.int64)))
    if not living:
        return None
    for table, atoms in used:
        for group in table.groups:
            own = atoms[(atoms >= group.first) & (atoms < group.first + len(group))] - group.first
            columns.setdefault(group.signature, []).append(take(group.constants, own))
    groups, numbered = build_groups(columns)
    renamed = _renamed(used, numbered)
    moved: dict[tuple[Conjunction, int], Conjunction] = {}
    for _, conjunction, i in living:
        if (conjunction, i) not in moved:
            clauses = (tuple(sorted((renamed[i][a], sign) for a, sign in clause)) for clause in conjunction)
            moved[conjunction, i] = frozenset(clauses)
    numbers, found = [number for number, _, _ in living], _Numbered(groups)
    found.add([moved[c, i] for _, c, i in living])
    return _planned(tables[0].source, found, numbers, statistics)


def _renamed(
    used: Sequence[tuple[FilterTable, Ints]], numbered: dict[AtomSignature, list[Ints]]
) -> list[dict[int, int]]:
    """For each table, the new numbers of its atoms. The columns were given in the order of tables and groups."""
    taken = dict.fromkeys(numbered, 0)
    found = []
    for table, atoms in used:
        new = []
        for group in table.groups:
            new += numbered[group.signature][taken[group.signature]].tolist()
            taken[group.signature] += 1
        found.append(dict(zip(atoms.tolist(), new, strict=True)))
    return found


def members_by_node(table: FilterTable) -> Iterator[tuple[list[int], Conjunction]]:
    """The queries that end at each node, with the node's conjunction."""
    layout = table.layout
    above: list[frozenset[int]] = [frozenset()] * len(layout)
    parents, offsets, checks = layout.parents.tolist(), layout.check_offsets.tolist(), layout.checks.tolist()
    ends, members = layout.end_offsets.tolist(), layout.ends.tolist()
    of = {unit: layout.units.of(unit) for unit in set(checks)}
    for node in range(len(layout)):
        if node:
            above[node] = above[parents[node]] | frozenset(checks[offsets[node] : offsets[node + 1]])
        if ends[node + 1] > ends[node]:
            yield members[ends[node] : ends[node + 1]], frozenset(of[unit] for unit in above[node])


class _Numbered:
    """Predicates over numbered units: the atoms of some groups, then the disjunctions."""

    def __init__(self, groups: tuple[AtomGroup, ...]) -> None:
        self.groups, self.atoms = groups, sum(map(len, groups))
        self.disjunctions: dict[Literals, int] = {}
        self.predicates: list[frozenset[int]] = []

    def add(self, conjunctions: Iterable[Conjunction]) -> None:
        atoms, disjunctions = self.atoms, self.disjunctions
        self.predicates += [
            frozenset(
                clause[0][0]
                if len(clause) == 1 and clause[0][1]
                else disjunctions.setdefault(clause, atoms + len(disjunctions))
                for clause in conjunction
            )
            for conjunction in conjunctions
        ]


def _planned(
    source: Source, found: _Numbered, numbers: Sequence[int], statistics: Statistics, flat: bool = False
) -> FilterTable:
    """Creates a factorized plan, or a `flat` one. A flat plan records no counted values, so it is factorized as soon as
    statistics exist."""
    groups, predicates = found.groups, found.predicates
    units = to_units(found.atoms, list(found.disjunctions))
    chances = atom_chances(source, groups, statistics)
    of_units = units.chances(chances)
    if flat:
        layout = flat_layout(predicates, units, of_units)
    else:
        layout = to_layout(vcb(predicates, independent(of_units)), units, of_units)
    counted = 0 if flat else counted_values(source, groups, statistics)
    return FilterTable(source, groups, with_ends(layout, np.array(numbers, np.int64)), chances, counted)


def atom_chances(source: Source, groups: Sequence[AtomGroup], statistics: Statistics) -> NDArray[np.float64]:
    """The current estimate of each atom's selectivity."""
    known = (_path_statistics(source, group, statistics) for group in groups)
    found = [selectivities(g.signature, g.constants, k) for g, k in zip(groups, known, strict=True)]
    return np.concatenate([np.empty(0), *found])


def counted_values(source: Source, groups: Sequence[AtomGroup], statistics: Statistics) -> int:
    """The number of values counted on the atoms' paths."""
    return sum(_path_statistics(source, group, statistics).count for group in groups)


def _path_statistics(source: Source, group: AtomGroup, statistics: Statistics) -> PathStatistics:
    return statistics.get(path_key(source, dotted(group.signature.path)), PathStatistics())


def replanned(table: FilterTable, statistics: Statistics) -> FilterTable | None:
    """A better plan for the same queries if the statistics have drifted; else None."""
    if not counted_values(table.source, table.groups, statistics):
        return None
    then = table.cost(table.chances)
    cost = table.cost(atom_chances(table.source, table.groups, statistics))
    if table.counted and max(cost, then) <= DRIFTED * min(cost, then):
        return None
    better = merge_filters([table], np.empty(0, np.int64), statistics)
    assert better is not None, "no query is dead"
    return better if not table.counted or better.cost(better.chances) <= PAYS * cost else None

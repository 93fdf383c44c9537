"""`explain` for a feed's filter: its path through the plan of its source, and the queries that share it."""

from __future__ import annotations

import numpy as np

from fishweir.algebra.nodes import Constant
from fishweir.algebra.predicates import Predicate, show_constant
from fishweir.evaluate.select.filters import FilterTable


def explain_plan(table: FilterTable, title: str) -> list[str]:
    """The plan of a source's filters: the sizes of its four levels, and its cost."""
    atoms, disjunctions = table.layout.units.atoms, len(table.layout.units) - table.layout.units.atoms
    conjunctions = int(np.count_nonzero(np.diff(table.layout.end_offsets)))
    shared = len(table.layout) - 1 - conjunctions + int(table.layout.end_offsets[1] > 0)
    cost = table.cost(table.chances)
    by = f"{table.counted:,} values counted" if table.counted else "operators, no values counted yet"
    return [
        f"  filters   of {table.source}, by {title}",
        f"    levels    atoms: {atoms:,} in {len(table.groups):,} groups, disjunctions: {disjunctions:,}, "
        f"conjunctions: {conjunctions:,}, {_members(table)}",
        f"    plan      shared nodes inserted: {shared:,}, cost {cost:.3g} against {conjunctions:,} "
        f"without sharing, by {by}",
    ]


def _members(table: FilterTable) -> str:
    members = np.unique(table.members)
    sides = int(np.count_nonzero(members < 0))
    return f"queries: {len(members) - sides:,}" + (f", sides of joins: {sides:,}" if sides else "")


def explain_filter(
    table: FilterTable, number: int, predicate: Predicate, constants: list[Constant], title: str
) -> list[str]:
    """The path of a query down from `true`: the checks of each edge, and the number of queries below it."""
    below = queries_below(table)
    way = [node_of(table, number, predicate, constants)]
    while way[-1]:
        way.append(int(table.layout.parents[way[-1]]))
    lines = [f"    path      true, shared by {below[0]:,}"]
    for node in reversed(way[:-1]):
        checks = table.layout.checks[table.layout.check_offsets[node] : table.layout.check_offsets[node + 1]]
        shown = " and ".join(show_unit(table, int(unit)) for unit in checks)
        lines.append(f"              -> {shown}, shared by {below[node]:,}")
    return [*explain_plan(table, title), *lines]


def node_of(table: FilterTable, number: int, predicate: Predicate, constants: list[Constant]) -> int:
    """The node at which a predicate of a query ends. A query may have several."""
    wanted = {frozenset(literal.shown(constants) for literal in clause) for clause in predicate.clauses}
    nodes = table.nodes_of(number)
    for node in nodes:
        if {frozenset(show_literals(table, unit)) for unit in table.layout.units_of(node)} == wanted:
            return node
    return nodes[0]


def queries_below(table: FilterTable) -> list[int]:
    """By node, the number of query ends at the node or below it."""
    counts = np.diff(table.layout.end_offsets).tolist()
    parents = table.layout.parents.tolist()
    for node in range(len(counts) - 1, 0, -1):
        counts[parents[node]] += counts[node]
    return counts


def show_unit(table: FilterTable, unit: int) -> str:
    literals = show_literals(table, unit)
    return literals[0] if len(literals) == 1 else f"({' or '.join(literals)})"


def show_literals(table: FilterTable, unit: int) -> list[str]:
    shown = ((show_atom(table, atom), positive) for atom, positive in table.layout.units.of(unit))
    return [text if positive else f"not {text}" for text, positive in shown]


def show_atom(table: FilterTable, atom: int) -> str:
    group = next(group for group in table.groups if group.first <= atom < group.first + len(group))
    constant: Constant = group.constants[atom - group.first : atom - group.first + 1].tolist()[0]
    return group.signature.shown(show_constant(constant))

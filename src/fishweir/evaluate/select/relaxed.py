"""Relaxed selections: queries without some of their conditions, for documents in which these are not checked.

In: tables, and paths whose conditions were given up under overload (utility-driven shedding, section 2: a shed query
may lack a selection pattern; it then selects more). Out: the matches of each table's queries without the conditions on
these paths, and without the nodes that only these conditions refer to. They are evaluated in addition to the unchanged
tables. The caller chooses which of the two results applies to a document.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

import numpy as np

from fishweir.algebra.normal import Template
from fishweir.evaluate.arrays import expand
from fishweir.evaluate.group import PlacedBundle
from fishweir.evaluate.matches import Matches
from fishweir.evaluate.select.anchors import choose_anchor
from fishweir.evaluate.select.constant_tables import Table, build_table
from fishweir.evaluate.select.match import match_table, with_members
from fishweir.evaluate.statistics import Statistics
from fishweir.evaluate.witnesses.path_tables import Path, PathTable

NOT_COUNTED: Statistics = {}


def relaxed_template(template: Template, paths: Collection[Path]) -> tuple[Template, list[int]] | None:
    """A template without the conditions on some paths, and the remaining slots; None if it has no such conditions, or
    cannot be evaluated without them."""
    nodes = range(len(template.nodes))
    gone = {i for i in nodes if template.path(i) in paths}
    if not any(c.node in gone for c in template.constants) or template.negated or template.absent or template.joins:
        return None
    gone |= {i for i in nodes if any(above in gone for above in template.chain(i))}
    if gone.intersection(template.outputs):
        return None
    constants = [c for c in template.constants if c.node not in gone]
    needed = {above for i in (*template.outputs, *(c.node for c in constants)) for above in template.chain(i)}
    needed |= {above for i in template.leaves if i not in gone for above in template.chain(i)}
    kept = [i for i in nodes if i in needed or i == 0]
    place = {old: new for new, old in enumerate(kept)} | {-1: -1}
    slots = [c.slot for c in constants]
    return replace(
        template,
        nodes=tuple(replace(template.nodes[i], parent=place[template.nodes[i].parent]) for i in kept),
        constants=tuple(replace(c, node=place[c.node], slot=slot) for slot, c in enumerate(constants)),
        outputs=tuple(place[i] for i in template.outputs),
    ), slots


def relaxed_table(table: Table, paths: Collection[Path]) -> Table | None:
    """The queries of a table without their conditions on some paths."""
    found = relaxed_template(table.template, paths)
    if found is None:
        return None
    template, slots = found
    columns = [table.columns[slot] for slot in slots]
    return build_table(template, choose_anchor(template, columns, NOT_COUNTED), table.numbers, columns)


class RelaxedTables:
    """The tables of an operator without the conditions on some paths, built once."""

    def __init__(self, placed: PlacedBundle, tables: Collection[Table], paths: Collection[Path]) -> None:
        made = ((place, relaxed_table(one, paths)) for place, one in zip(placed.bundle.groups, tables, strict=True))
        self.tables = [(place, table) for place, table in made if table is not None]

    @property
    def paths(self) -> dict[Path, bool]:
        found: dict[Path, bool] = {}
        for _, table in self.tables:
            for path, valued in table.own_paths.items():
                found[path] = found.get(path, False) or valued
        return found

    def matches(self, witnesses: Mapping[Path, PathTable]) -> Iterator[tuple[int, Template, Matches]]:
        """Matches by group, with queries as lists, because slices would refer to other tables."""
        for place, table in self.tables:
            found = match_table(table, witnesses)
            if found is not None:
                yield place, table.template, _listed(found, table)


def _listed(found: Matches, table: Table) -> Matches:
    if not len(found.slices):
        return found
    row, at = expand(found.slice_offsets[:-1] // 2, found.slice_offsets[1:] // 2)
    lo, hi = found.slices.reshape(-1, 2)[at].T
    which, positions = expand(lo, hi)
    return with_members(found.documents, found.nodes, np.arange(len(found)), row[which], table.members[positions])

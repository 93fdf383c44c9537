"""Matches one table against the witnesses of a batch of documents.

In: a table and the path tables of a batch. Out: Matches, with one row per binding of the output nodes. The queries that
it satisfies are slices of the table, or a list if conditions remained to be checked. Nothing here loops over queries,
documents or pairs: a lookup returns slices, joins on common ancestors are sorted lookups, and the remaining conditions
are checked on whole arrays.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from fishweir.algebra.alternatives import ABSENT
from fishweir.algebra.normal import Template
from fishweir.evaluate.arrays import Ints, expand, firsts_of, number_rows
from fishweir.evaluate.index.constants import Everything, Slices
from fishweir.evaluate.matches import Matches
from fishweir.evaluate.select.absences import lies_below
from fishweir.evaluate.select.bindings import Bindings, bind
from fishweir.evaluate.select.conditions import holds, holds_anywhere
from fishweir.evaluate.select.constant_tables import Table
from fishweir.evaluate.witnesses.path_tables import Path, PathTable


def match_table(table: Table, witnesses: Mapping[Path, PathTable]) -> Matches | None:
    """The matches of a table's queries, or None if nothing fires."""
    values = witnesses.get(table.template.path(table.anchor.node))
    if values is None:
        return None
    hits = table.index.look_up(values)
    if not len(hits.row):
        return None
    if isinstance(table.index, Everything) and table.template.columns and not table.residual:
        return _each_document(table, witnesses, hits, table.index.size)
    bindings = bind(table.template, table.anchor.node, witnesses, np.unique(hits.row))
    if bindings is None or not len(bindings.documents):
        return None
    if table.residual or table.template.negated or table.template.absent:
        return _with_residual(table, witnesses, bindings, hits)
    return _with_slices(table, bindings, hits)


def _each_document(table: Table, witnesses: Mapping[Path, PathTable], hits: Slices, queries: int) -> Matches | None:
    """Matches of columns without constants: a document is bound at most once and satisfies all queries."""
    bindings = bind(table.template, table.anchor.node, witnesses, hits.row)
    if bindings is None or not len(bindings.documents):
        return None
    if table.template.negated or table.template.absent:
        return _with_residual(table, witnesses, bindings, hits)
    size = len(bindings.documents)
    slices, none = np.zeros(2 * size, np.int64), np.zeros(size + 1, np.int64)
    slices[1::2] = queries
    nodes = outputs(table.template, bindings)
    return Matches(bindings.documents, nodes, 2 * np.arange(size + 1), slices, none, none[:0])


def _with_slices(table: Table, bindings: Bindings, hits: Slices) -> Matches:
    """Matches without remaining conditions: the queries of a binding are the slices of its anchor's value."""
    documents, nodes = bindings.documents, outputs(table.template, bindings)
    rows, group = distinct(documents, nodes, bindings.anchor_rows)
    documents, nodes, anchors = documents[rows], nodes[rows], bindings.anchor_rows[rows]
    order = np.argsort(hits.row, kind="stable")
    hits = Slices(hits.row[order], hits.lo[order], hits.hi[order])
    row, at = expand(np.searchsorted(hits.row, anchors, "left"), np.searchsorted(hits.row, anchors, "right"))
    lo, hi = hits.lo[at], hits.hi[at]
    if len(np.unique(group)) == len(group):
        ends = np.searchsorted(row, np.arange(len(documents) + 1))
        none = np.zeros(len(documents) + 1, np.int64)
        return Matches(documents, nodes, 2 * ends, np.stack([lo, hi], 1).ravel(), none, np.empty(0, np.int64))
    source, positions = expand(lo, hi)
    return with_members(documents, nodes, group, row[source], table.members[positions])


def _with_residual(
    table: Table, witnesses: Mapping[Path, PathTable], bindings: Bindings, hits: Slices
) -> Matches | None:
    """Matches with remaining conditions: each is checked on all candidates (binding, position) of the slices."""
    order = np.argsort(hits.row, kind="stable")
    starts = np.searchsorted(hits.row[order], bindings.anchor_rows, "left")
    ends = np.searchsorted(hits.row[order], bindings.anchor_rows, "right")
    row, at = expand(starts, ends)
    rows, positions = _candidates(table, witnesses, bindings, row, hits.lo[order][at], hits.hi[order][at])
    for i in table.residual:
        condition = table.template.constants[i]
        values = witnesses[table.template.path(condition.node)]
        keep = holds(condition, values, bindings.at[condition.node][rows], table.constants_at(i, positions))
        rows, positions = rows[keep], positions[keep]
    for i, negated in enumerate(table.template.negated, len(table.template.constants)):
        keep = ~holds_anywhere(negated, witnesses, bindings.documents[rows], table.constants_at(i, positions))
        rows, positions = rows[keep], positions[keep]
    for absence in table.template.absent:
        slots = range(absence.first, absence.first + len(absence.template.types))
        constants = [table.constants_at(slot, positions) for slot in slots]
        nodes = bindings.nodes[absence.node][rows]
        keep = ~lies_below(absence, witnesses, bindings.documents[rows], nodes, constants)
        rows, positions = rows[keep], positions[keep]
    if not len(rows):
        return None
    documents, nodes = bindings.documents, outputs(table.template, bindings)
    _, group = distinct(documents, nodes)
    return with_members(documents, nodes, group, rows, table.members[positions])


def _candidates(
    table: Table, witnesses: Mapping[Path, PathTable], bindings: Bindings, rows: Ints, lo: Ints, hi: Ints
) -> tuple[Ints, Ints]:
    """The pairs of a binding and a position from the slices, without most of those that a condition rules out."""
    if table.sieve is None:
        source, positions = expand(lo, hi)
    else:
        condition, sift, keys = table.sieve
        values = witnesses[table.template.path(condition.node)]
        source, positions = sift(values, bindings.at[condition.node][rows], lo, hi, keys)
    return rows[source], positions


def with_members(documents: Ints, nodes: Ints, group: Ints, rows: Ints, members: Ints) -> Matches:
    """One row per distinct output, with the sorted list of its queries."""
    keys = np.sort((group[rows] << 32) | members)  # a single sort of numbers; query numbers stay below 2**31
    keys = keys[np.append(True, keys[1:] != keys[:-1])]
    groups, members = keys >> 32, keys & 0xFFFFFFFF
    found, starts = np.unique(groups, return_index=True)
    where = firsts_of(group, int(group.max()) + 1)[found]
    none = np.zeros(len(found) + 1, np.int64)
    ends = np.append(starts, len(members)).astype(np.int64)
    return Matches(documents[where], nodes[where], none, np.empty(0, np.int64), ends, members)


def outputs(template: Template, bindings: Bindings) -> Ints:
    """The output nodes. An element above a split is represented by the document element. A variable that an alternative
    does not bind is ABSENT."""
    size = len(bindings.documents)
    columns = [
        np.maximum(bindings.nodes[node], 0) if node != ABSENT else np.full(size, ABSENT) for node in template.outputs
    ]
    return np.stack(columns, axis=1) if columns else np.zeros((len(bindings.documents), 0), np.int64)


def distinct(documents: Ints, nodes: Ints, *more: Ints) -> tuple[Ints, Ints]:
    """The first rows of the distinct (document, nodes, more), and for each of them the number of its distinct
    (document, nodes). Without `more`, all rows are kept."""
    group = number_rows(documents, *nodes.T)
    if not more:
        return np.arange(len(group)), group
    _, rows = np.unique(number_rows(group, *more), return_index=True)
    return rows, group[rows]

"""Absences: checks on whole arrays that a pattern does not match below a node.

In: the absent pattern, the path tables of a batch, and candidates: nodes of documents with the constants of their
queries. Out: the candidates below which the pattern does match. The pattern is bound once per batch, like any other
pattern. The candidates are joined with its bindings on (document, node) by a sorted lookup, and its conditions are
checked on the joined pairs. If its paths were suspended, the pattern counts as present, because its absence is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from fishweir.algebra.normal import AbsentTemplate
from fishweir.evaluate.arrays import Column, Ints, expand, take
from fishweir.evaluate.select.bindings import bind
from fishweir.evaluate.select.conditions import holds
from fishweir.evaluate.witnesses.path_tables import Path, PathTable, node_keys, suspended_documents


def lies_below(
    absence: AbsentTemplate,
    witnesses: Mapping[Path, PathTable],
    documents: Ints,
    nodes: Ints,
    constants: Sequence[Column],
) -> NDArray[np.bool_]:
    """For each (document, node, constants of the absence), whether the pattern matches below the node."""
    template = absence.template
    found = np.isin(documents, suspended_documents(witnesses, _paths(absence)))
    values = witnesses.get(template.path(template.leaves[0]))
    if values is None or not len(documents):
        return found
    inside = np.flatnonzero(np.isin(values.documents, documents))
    bindings = bind(template, template.leaves[0], witnesses, inside)
    if bindings is None or not len(bindings.documents):
        return found
    keys = node_keys(bindings.documents, bindings.nodes[template.outputs[0]])
    order = np.argsort(keys, kind="stable")
    wanted = node_keys(documents, nodes)
    candidate, at = expand(*(np.searchsorted(keys[order], wanted, side) for side in ("left", "right")))
    row = order[at]
    for condition in template.constants:
        values = witnesses[template.path(condition.node)]
        own = take(constants[condition.slot], candidate)
        keep = holds(condition, values, bindings.at[condition.node][row], own)
        candidate, row = candidate[keep], row[keep]
    for inner in template.absent:
        own = [take(column, candidate) for column in constants_of(inner, constants)]
        keep = ~lies_below(inner, witnesses, documents[candidate], bindings.nodes[inner.node][row], own)
        candidate, row = candidate[keep], row[keep]
    found[candidate] = True
    return found


def _paths(absence: AbsentTemplate) -> list[Path]:
    """All paths of an absence. They include those of nested absences, which would invert an unknown result."""
    own = [absence.template.path(node) for node in range(len(absence.template.nodes))]
    return own + [path for inner in absence.template.absent for path in _paths(inner)]


def constants_of(absence: AbsentTemplate, columns: Sequence[Column]) -> Sequence[Column]:
    """The columns of an absence among those of the whole template."""
    return columns[absence.first : absence.first + len(absence.template.types)]

"""Evaluates compiled patterns on the rows of a batch, for all documents at once.

In: a Branch and Rows. Out: the rows at its end, or all embeddings of its steps. A predicate depends on its node alone,
not on how the node was reached. It is therefore evaluated to a set of rows, by going up from the predicate's last rows,
and joined with the trunk on the common row. This is correct even if several ancestors match.
"""

from __future__ import annotations

import numpy as np

from fishweir.evaluate.arrays import Ints
from fishweir.evaluate.witnesses.automaton.compiled import (
    AllOf,
    AnyOf,
    Branch,
    BranchCompares,
    BranchExists,
    Condition,
    Negated,
)
from fishweir.evaluate.witnesses.automaton.rows import NONE, Rows, contained


def end_rows(rows: Rows, trunk: Branch) -> Ints:
    """The distinct rows at the end of a trunk, in preorder."""
    if not any(trunk.conditions) or not len(rows.of(trunk.last)):
        return rows.of(trunk.last)
    # Without a condition above it, every row of a node is reached from the document.
    first = next(i for i, condition in enumerate(trunk.conditions) if condition)
    found = _filtered(rows, rows.of(trunk.nodes[first]), trunk.conditions[first])
    for i in range(first + 1, len(trunk.nodes)):
        if not len(found):
            return NONE
        found = rows.under(found, rows.of(trunk.nodes[i]), trunk.deep[i])
        found = _filtered(rows, found, trunk.conditions[i])
    return found


def embeddings(rows: Rows, trunk: Branch) -> Ints:
    """One line per embedding, with a column of rows per step, sorted by last row, then from the first step on."""
    if not any(trunk.deep[1:]) and not any(trunk.conditions):
        return _upward_chains(rows, trunk)
    chains = _filtered(rows, rows.of(trunk.nodes[0]), trunk.conditions[0])[:, None]
    for i in range(1, len(trunk.nodes)):
        below = _filtered(rows, rows.of(trunk.nodes[i]), trunk.conditions[i])
        index, last = rows.below(chains[:, -1], below, trunk.deep[i])
        chains = np.column_stack([chains[index], last])
    order = np.lexsort((*chains.T[-2::-1], chains[:, -1]))
    return chains[order]


def _upward_chains(rows: Rows, trunk: Branch) -> Ints:
    """The embeddings without descendant steps. Each child has one parent, so no join is needed."""
    chains = [rows.of(trunk.last)]
    for _ in trunk.nodes[1:]:
        chains.append(rows.parents[chains[-1]])
    return np.stack(chains[::-1], axis=1)


def _filtered(rows: Rows, candidates: Ints, condition: Condition | None) -> Ints:
    """The candidates (sorted, distinct) for which a condition holds."""
    match condition:
        case None:
            return candidates
        case BranchExists(branch):
            return _upward(rows, candidates, branch, rows.of(branch.last) if branch.nodes else candidates)
        case BranchCompares(branch):
            return _upward(rows, candidates, branch, _compared(rows, condition))
        case AllOf(parts):
            for part in parts:
                candidates = _filtered(rows, candidates, part)
            return candidates
        case AnyOf(parts):
            return np.unique(np.concatenate([_filtered(rows, candidates, part) for part in parts]))
        case Negated(part):
            return np.setdiff1d(candidates, _filtered(rows, candidates, part), assume_unique=True)


def _upward(rows: Rows, candidates: Ints, branch: Branch, last: Ints) -> Ints:
    """The candidates from which the branch leads to one of its last rows."""
    for i in range(len(branch.nodes) - 1, -1, -1):
        if not len(last):
            return NONE
        last = _filtered(rows, last, branch.conditions[i])
        above = rows.of(branch.nodes[i - 1]) if i else candidates
        last = rows.having(above, last, branch.deep[i])
    return last if branch.nodes else last[contained(last, candidates)]


def _compared(rows: Rows, holds: BranchCompares) -> Ints:
    """The rows at a branch's end whose value satisfies the comparison."""
    node, constant = holds.branch.last, holds.constant
    if not isinstance(constant, str):
        return rows.with_number(node, holds.op, constant)
    equal = rows.with_text(node, constant)
    return equal if holds.op == "=" else np.setdiff1d(rows.of(node), equal, assume_unique=True)

"""Grouping: chooses the condition by which the queries of a template are grouped (NiagaraCQ 3.2 and 3.4).

In: a template, the constants of its queries, and the statistics. Out: the *anchor*, which is the most selective
conjunct. Its expression signature identifies the group. All other conditions are checked after the lookup. Queries
registered earlier are never regrouped. If several conditions of many queries search for words in the same way, the
anchor of each query is its own rarest word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fishweir.algebra.normal import ConstantCondition, Template, dotted
from fishweir.algebra.operators import find_condition
from fishweir.evaluate.arrays import Column, Ints
from fishweir.evaluate.index.indexes import find_index
from fishweir.evaluate.select.selectivity import LEAST, of_condition
from fishweir.evaluate.statistics import EVERY_OPERATOR, PathStatistics, Statistics, path_key

MANY = 1_000
"""Number of queries of a template from which each query may have its own anchor."""
LOWER, UPPER = (">", ">="), ("<", "<=")
_NOTHING = PathStatistics()


@dataclass(frozen=True, slots=True)
class Anchor:
    """The conjunct that is looked up: no condition, one condition, or a lower and an upper bound."""

    node: int
    conditions: tuple[int, ...]

    def signature(self, template: Template) -> str:
        """The group's expression signature. Without a condition, all documents with the path form one group."""
        if not self.conditions:
            return f"exists {dotted(template.path(self.node))} in {template.source}"
        return template.signature(*(template.constants[i] for i in self.conditions))


def choose_anchor(template: Template, columns: list[Column], statistics: Statistics) -> Anchor:
    """The most selective conjunct by the statistics, or by operator if there are none. Ties go to the first."""
    candidates = list(anchors(template))
    if not candidates:
        return Anchor(template.leaves[0], ())
    if len(candidates) == 1:
        return candidates[0]
    return min(candidates, key=lambda anchor: _rank(anchor, template, columns, statistics))


def split_by_anchor(template: Template, columns: list[Column], statistics: Statistics) -> list[tuple[Anchor, Ints]]:
    """The anchors of many queries of one template, each with the places of its queries."""
    size, best = len(columns[0]) if columns else 0, choose_anchor(template, columns, statistics)
    if size < MANY:
        return [(best, np.arange(size))]
    rivals = [anchor for anchor in anchors(template) if _looks_alike(anchor, best, template)]
    if len(rivals) < 2:
        return [(best, np.arange(size))]
    shares = _shares(template, rivals, columns, statistics)
    choice = np.argmin(shares, axis=0)
    return [(rivals[i], places) for i in range(len(rivals)) if len(places := np.flatnonzero(choice == i))]


def _looks_alike(anchor: Anchor, other: Anchor, template: Template) -> bool:
    """Whether both anchors search for words by the same condition."""
    ops = [tuple(template.constants[i].op for i in one.conditions) for one in (anchor, other)]
    condition = find_condition(ops[0][0]) if len(ops[0]) == 1 else None
    return ops[0] == ops[1] and condition is not None and condition.constant == "words"


def _shares(
    template: Template, rivals: Sequence[Anchor], columns: list[Column], statistics: Statistics
) -> NDArray[np.float64]:
    """By anchor and query, the share of values with the query's words. Where no words have been counted, words that
    many queries search for are assumed to be common."""
    slots = [template.constants[rival.conditions[0]].slot for rival in rivals]
    constants = pa.concat_arrays([columns[slot] for slot in slots]).dictionary_encode().indices.to_numpy()
    often = np.bincount(constants)[constants].reshape(len(rivals), -1) / len(constants)
    found = []
    for rival, slot in zip(rivals, slots, strict=True):
        condition = find_condition(template.constants[rival.conditions[0]].op)
        known = statistics.get(path_key(template.source, dotted(template.path(rival.node))), PathStatistics())
        assert condition is not None, "it searches for words"
        found.append(of_condition(condition, columns[slot], known) if known.words else np.zeros(len(columns[slot])))
    return np.stack(found) + LEAST * often


def _rank(anchor: Anchor, template: Template, columns: list[Column], statistics: Statistics) -> tuple[bool, float]:
    """Sort key of an anchor. Conditions without an index come last, because all their pairs would be evaluated."""
    conditions = [find_condition(template.constants[i].op) for i in anchor.conditions]
    tried = any(condition is not None and find_index(condition) is None for condition in conditions)
    return tried, selectivity(anchor, template, columns, statistics)


def anchors(template: Template) -> list[Anchor]:
    """One anchor per condition. A lower and an upper bound on the same number form one two-sided range."""
    found: list[Anchor] = []
    for i, condition in enumerate(template.constants):
        if condition.op == "exists":
            continue
        partner = _partner(i, condition, template) if condition.op in LOWER else None
        found.append(Anchor(condition.node, (i,) if partner is None else (i, partner)))
    return found


def _partner(i: int, lower: ConstantCondition, template: Template) -> int | None:
    for j, upper in enumerate(template.constants):
        same = (upper.node, upper.part) == (lower.node, lower.part) and upper.type == lower.type == "number"
        if j != i and same and upper.op in UPPER:
            return j
    return None


def selectivity(anchor: Anchor, template: Template, columns: list[Column], statistics: Statistics) -> float:
    """The share of values that fire an average query of the group."""
    known = _NOTHING
    if statistics:
        known = statistics.get(path_key(template.source, dotted(template.path(anchor.node))), _NOTHING)
    operators = [template.constants[i].op for i in anchor.conditions]
    kind = "range" if len(operators) == 2 else operators[0]
    on_texts = None if len(operators) == 2 else find_condition(kind)
    if on_texts is not None and not known.count:
        return on_texts.selectivity
    if on_texts is not None:
        column = columns[template.constants[anchor.conditions[0]].slot]
        return float(of_condition(on_texts, column[:16], known).mean())
    if not known.count or template.constants[anchor.conditions[0]].part != "value":
        return EVERY_OPERATOR[kind]
    if kind == "=":
        return 1 / known.distinct
    share = 1.0
    for i, op in zip(anchor.conditions, operators, strict=True):
        column = columns[template.constants[i].slot]
        some = column[:16].tolist()
        share = min(share, known.fraction(op, some)) if kind != "range" else share - (1 - known.fraction(op, some))
    return max(share, 1e-6)

"""The naive plan: each predicate alone below `true` (RoSeS, section 4.3)."""

from __future__ import annotations

from collections.abc import Sequence

from fishweir.evaluate.select.factorization.cost import TRUE, Predicate
from fishweir.evaluate.select.factorization.plan import FilterPlan, plan_of


def naive_plan(predicates: Sequence[Predicate]) -> FilterPlan:
    """The naive plan. Equal predicates share a node."""
    return plan_of({predicate: TRUE for predicate in predicates if predicate}, predicates)

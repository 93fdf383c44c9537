"""The cost of filters (RoSeS, section 4.2 and table 1; benefit: section 5).

In: predicates, plans, and a selectivity function. Out: costs in items per unit of time, for a source of rate R and a
constant cost of 1 per item and filter.

A predicate of one source is a conjunction, given as the set of its atoms' ids; the empty set is `true`. An atom may be
a disjunction; here it is only an id. A filter below p reads the items that p lets pass, so the edge (p, q) costs sel(p)
* R regardless of q. This is why sharing reduces the cost of a plan: only the parents count.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from fishweir.evaluate.select.factorization.plan import FilterPlan

Predicate: TypeAlias = frozenset[int]
TRUE: Predicate = frozenset()

Selectivity: TypeAlias = Callable[[Predicate], float]
"""The share of the source's items that satisfy a predicate; 1 for `true`.

It should be monotone (more atoms never let more items pass), as counts on a sample are. Even if it is not, plans remain
valid and cost no more than the naive one.
"""


def independent(atoms: Mapping[int, float] | Sequence[float] | NDArray[np.float64]) -> Selectivity:
    """Selectivity of a conjunction as the product of its atoms' selectivities, multiplied in a fixed order."""
    of = atoms.tolist() if isinstance(atoms, np.ndarray) else atoms

    def selectivity(predicate: Predicate) -> float:
        product = 1.0
        for atom in sorted(predicate):
            product *= of[atom]
        return product

    return selectivity


def edge_cost(parent: Predicate, selectivity: Selectivity, rate: float = 1.0) -> float:
    """The processing cost of one filter below `parent`: table 1, first row."""
    return selectivity(parent) * rate


def plan_cost(plan: FilterPlan, selectivity: Selectivity, rate: float = 1.0) -> float:
    """The sum over all edges of the plan."""
    return sum(
        edge_cost(plan.atoms[node], selectivity, rate) * len(plan.children[node])
        for node in plan.nodes()
        if plan.children[node]
    )


def naive_cost(predicates: Collection[Predicate], rate: float = 1.0) -> float:
    """The cost of evaluating each predicate separately at the source. Pass a set to count equal predicates once. `true`
    is not a filter."""
    return rate * sum(1 for predicate in predicates if predicate)


def benefit(k: int, outer: float, inner: float) -> float:
    """The gain of inserting a new node of selectivity `inner` between a node and k of its children."""
    return (k - 1) * outer - k * inner


def benefit_of_existing(k: int, outer: float, inner: float) -> float:
    """The gain if the node is already a sibling of the k others, so that it needs no additional edge.

    The paper's formula, with the node counted among its own children, would miss gains here.
    """
    return k * (outer - inner)


def order_key(predicate: Predicate, selectivity: Selectivity) -> tuple[float, int, tuple[int, ...]]:
    """The tie-breaking order of all algorithms: most selective first, then more atoms, then the smaller atom ids."""
    return selectivity(predicate), -len(predicate), tuple(sorted(predicate))

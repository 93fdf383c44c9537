"""VCA on the subsumption graph (RoSeS, section 5, algorithm 1).

In: the predicates of one source and a selectivity function. Out: a filter plan. The algorithm is greedy: while some
conjunction subsumes two or more children of `true` (the border), it inserts the most selective such conjunction between
them and `true`, if that pays. The candidates are recomputed after each change, as in the paper; vcb.py makes the same
choices without that.

Ties: more atoms first, then the smaller atom ids (cost.order_key).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from fishweir.evaluate.select.factorization.cost import TRUE, Predicate, Selectivity
from fishweir.evaluate.select.factorization.growing import GrowingTree
from fishweir.evaluate.select.factorization.plan import FilterPlan, plan_of
from fishweir.papers.roses.subsumption import SubsumptionGraph, subsumption_graph


def vca(predicates: Sequence[Predicate], selectivity: Selectivity) -> FilterPlan:
    graph = subsumption_graph(predicates, selectivity)
    tree = GrowingTree(graph.required, graph.weight.__getitem__)
    border = tree.children[TRUE]
    candidates = find_candidates(graph, border)
    while candidates:
        best = min(candidates, key=graph.rank.__getitem__)
        factorized = [fact for fact in graph.subsumed[best] if fact in border]
        if tree.gain(best, factorized) > 0:
            tree.expand(best, factorized)
            candidates = find_candidates(graph, border)
        else:
            candidates.discard(best)
    return plan_of(tree.parents, predicates)


def find_candidates(graph: SubsumptionGraph, border: Iterable[Predicate]) -> set[Predicate]:
    """All conjunctions except `true` that subsume at least two of the border; a conjunction may itself be in the
    border."""
    below: Counter[Predicate] = Counter()
    for predicate in border:
        below[predicate] += 1
        below.update(graph.subsuming[predicate])
    return {candidate for candidate, count in below.items() if count > 1 and candidate}

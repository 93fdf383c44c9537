"""Figures 7 and 8: the optimization times of STA, VCA with graph and VCA with VCB, and the costs of their plans.

In: predicates over keywords with real document frequencies. Out: figures. `cost` is the plan's cost relative to the
naive plan's, with each predicate counted as often as it is requested. The plans are first checked to give the same
answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from time import process_time

import numpy as np

from fishweir.evaluate.select.factorization.cost import Predicate, Selectivity, independent, naive_cost, plan_cost
from fishweir.evaluate.select.factorization.plan import FilterPlan, evaluate
from fishweir.evaluate.select.factorization.vcb import vcb
from fishweir.papers.experiment.contestants import Disagreement
from fishweir.papers.roses.experiment.predicates import cnf_predicates, keyword_predicates
from fishweir.papers.roses.experiment.report import RosesFigure
from fishweir.papers.roses.experiment.work import Items
from fishweir.papers.roses.naive import naive_plan
from fishweir.papers.roses.sta import sta
from fishweir.papers.roses.vca import vca

Algorithm = Callable[[Sequence[Predicate], Selectivity], FilterPlan]
Say = Callable[[str], None]
ALGORITHMS: dict[str, Algorithm] = {"STA": sta, "VCA with graph": vca, "VCA with VCB": vcb}
SIZES, QUICK_SIZES = (10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000), (5, 10)
COMPLEX, QUICK_COMPLEX = 1_000, 8
CONJUNCTS = (1, 2, 3, 4, 5)
KEYWORDS, LETTERS = 200, 5
PATIENCE, QUICK_PATIENCE = 20.0, 0.5
"""Seconds: an algorithm whose last run took longer is not run on larger inputs."""
SEED = 5


def frequencies(items: Items) -> np.ndarray:
    """The most frequent words of some length, by the share of items that have them."""
    chosen = [count for word, count in items.frequencies if len(word) >= LETTERS][:KEYWORDS]
    return np.array(chosen, dtype=np.float64) / len(items.texts)


def measure_plans(items: Items, quick: bool, say: Say) -> Iterator[RosesFigure]:
    """Experiment I by the number of predicates, experiment II by the length of the conjunctions."""
    shares = frequencies(items)
    check_plans(shares, say)
    patience = QUICK_PATIENCE if quick else PATIENCE
    stopped: set[str] = set()
    for n in QUICK_SIZES if quick else SIZES:
        predicates = keyword_predicates(n, shares, np.random.default_rng(SEED))
        yield from _contest("figure 7", n, None, predicates, independent(shares), patience, stopped, say)
    stopped = {"STA"} if not quick else set()
    count = QUICK_COMPLEX if quick else COMPLEX
    for length in CONJUNCTS:
        made = cnf_predicates(count, shares, np.random.default_rng(SEED), (length, length), (1, 5))
        yield from _contest("figure 8", count, length, made[0], independent(made[1]), patience, stopped, say)


def _contest(
    figure: str,
    n: int,
    length: int | None,
    predicates: Sequence[Predicate],
    selectivity: Selectivity,
    patience: float,
    stopped: set[str],
    say: Say,
) -> Iterator[RosesFigure]:
    naive = naive_cost(predicates)
    for name, algorithm in ALGORITHMS.items():
        say(f"{figure}: {name}, N = {n:,}{f', {length} conjuncts' if length else ''}")
        if name in stopped:
            yield RosesFigure(figure, name, n, None, conjuncts=length, note=f"not run: took over {patience:g} s before")
            continue
        try:
            began = process_time()
            plan = algorithm(predicates, selectivity)
            took = process_time() - began
        except ValueError as error:  # the subsumption graph has size limits
            yield RosesFigure(figure, name, n, None, conjuncts=length, note=str(error))
            continue
        if took > patience:
            stopped.add(name)
        yield RosesFigure(figure, name, n, took, conjuncts=length, cost=plan_cost(plan, selectivity) / naive)


def check_plans(shares: np.ndarray, say: Say, algorithms: dict[str, Algorithm] | None = None) -> None:
    """Checks on random documents that all plans return the same as each predicate alone."""
    say("checking that all plans give the same answers")
    rng = np.random.default_rng(SEED)
    predicates = keyword_predicates(12, shares, rng)
    documents = [frozenset(np.flatnonzero(rng.random(len(shares)) < 0.3).tolist()) for _ in range(200)]
    naive = naive_plan(predicates)
    for name, algorithm in (algorithms or ALGORITHMS).items():
        plan = algorithm(predicates, independent(shares))
        if any(evaluate(plan, facts) != evaluate(naive, facts) for facts in documents):
            raise Disagreement(f"the plan of {name} and the predicates alone give different answers")

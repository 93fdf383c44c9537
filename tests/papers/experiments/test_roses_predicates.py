"""The experiments of RoSeS, section 6: workloads as described, VCB's plans good enough."""

from __future__ import annotations

import numpy as np
import pytest

from fishweir.evaluate.select.factorization.cost import independent, naive_cost, plan_cost
from fishweir.evaluate.select.factorization.vcb import vcb
from fishweir.papers.roses.experiment.predicates import cnf_predicates, keyword_frequencies, keyword_predicates
from fishweir.papers.roses.vca import vca

WORDS = keyword_frequencies(200)


def test_predicates_follow_the_frequencies():
    drawn = keyword_predicates(20_000, WORDS, np.random.default_rng(0))
    assert {len(p) for p in drawn} == {1, 2, 3}
    singles = [next(iter(p)) for p in drawn if len(p) == 1]
    expected = WORDS[0] / WORDS.sum()
    assert singles.count(0) / len(singles) == pytest.approx(expected, rel=0.1)
    assert drawn == keyword_predicates(20_000, WORDS, np.random.default_rng(0))


def test_atoms_of_cnf_are_disjunctions():
    predicates, chance = cnf_predicates(500, WORDS, np.random.default_rng(0))
    assert max(map(len, predicates)) == 5
    assert {a for p in predicates for a in p} == set(range(len(chance)))
    assert (chance > 0).all()
    assert (chance < 1).all()
    plan = vcb(predicates, independent(chance))
    plan.check(predicates)
    assert plan_cost(plan, independent(chance)) < naive_cost(set(predicates))


@pytest.mark.parametrize("n", [10_000, 100_000])
def test_vcb_plans_cost_little(n):
    predicates = keyword_predicates(n, WORDS, np.random.default_rng(1))
    chance = independent(WORDS)
    plan = vcb(predicates, chance)
    plan.check(predicates)
    assert plan_cost(plan, chance) <= 0.03 * naive_cost(predicates)


def test_vca_and_vcb_cost_the_same_on_keywords():
    predicates = keyword_predicates(300, WORDS, np.random.default_rng(2))
    chance = independent(WORDS)
    assert plan_cost(vca(predicates, chance), chance) == pytest.approx(plan_cost(vcb(predicates, chance), chance))

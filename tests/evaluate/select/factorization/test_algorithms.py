"""Whatever the algorithm: plans are valid, mean what the predicates mean, and cost no more than naive."""

from __future__ import annotations

import pytest
from hypothesis import given

from fishweir.evaluate.select.factorization.cost import naive_cost, plan_cost
from fishweir.evaluate.select.factorization.plan import ROOT, evaluate
from fishweir.evaluate.select.factorization.vcb import vcb
from fishweir.papers.roses.naive import naive_plan
from fishweir.papers.roses.sta import sta
from fishweir.papers.roses.subsumption import subsumption_graph
from fishweir.papers.roses.vca import vca
from tests import strategies as st
from tests.evaluate.select.factorization.strategies import predicates, selectivities, truths

SLACK = 1e-9


def sound(plan, given_, chance, facts):
    plan.check(given_)
    assert evaluate(plan, facts) == {i for i, p in enumerate(given_) if p <= facts}
    assert plan_cost(plan, chance) <= naive_cost(set(given_)) + SLACK


@st.examples(80)
@given(predicates(20), selectivities, truths)
def test_vca_and_vcb_are_sound_and_choose_alike(given_, chance, facts):
    slow, fast = vca(given_, chance), vcb(given_, chance)
    sound(slow, given_, chance, facts)
    sound(fast, given_, chance, facts)
    edges = [{(p.atoms[n], p.atoms[p.parent[n]]) for n in p.nodes() if n != ROOT} for p in (slow, fast)]
    assert edges[0] == edges[1]


@st.examples(60)
@given(predicates(6, longest=3, atoms=5), selectivities, truths)
def test_sta_is_sound(given_, chance, facts):
    sound(sta(given_, chance), given_, chance, facts)


@st.examples(60)
@given(predicates(20, longest=7), selectivities, truths, st.integers(1, 4))
def test_vcb_is_sound_with_bounded_subsets(given_, chance, facts, width):
    sound(vcb(given_, chance, width), given_, chance, facts)


@st.examples(60)
@given(predicates(15), truths, st.randoms(use_true_random=False))
def test_a_selectivity_that_is_not_monotone_still_gives_a_sound_plan(given_, facts, random):
    known: dict[frozenset[int], float] = {frozenset(): 1.0}

    def chance(predicate):
        return known.setdefault(predicate, random.random())

    sound(vca(given_, chance), given_, chance, facts)
    sound(vcb(given_, chance), given_, chance, facts)


@pytest.mark.parametrize("algorithm", [sta, vca, vcb, lambda given_, _: naive_plan(given_)])
def test_no_predicates_and_true_alone(algorithm):
    assert len(algorithm([], lambda p: 0.1)) == 1
    plan = algorithm([frozenset(), frozenset()], lambda p: 0.1)
    assert evaluate(plan, frozenset()) == {0, 1}
    assert plan_cost(plan, lambda p: 0.1) == 0


def test_equal_predicates_are_one_node():
    plan = vcb([frozenset({1, 2}), frozenset({2, 1})], lambda p: 0.1)
    assert len(plan) == 2
    assert plan.ends[plan.node_of[frozenset({1, 2})]] == {0, 1}


def test_order_of_input_does_not_matter():
    given_ = [frozenset({i % 5, (i * 7) % 5 + 5, (i * 3) % 4 + 10}) for i in range(30)]
    first, second = (vcb(p, lambda p: 0.3 ** len(p)) for p in (given_, given_[::-1]))
    edges = [{(p.atoms[n], p.atoms[p.parent[n]]) for n in p.nodes() if n != ROOT} for p in (first, second)]
    assert edges[0] == edges[1]


def test_graph_refuses_long_predicates():
    with pytest.raises(ValueError, match="use vcb"):
        subsumption_graph([frozenset(range(30))], lambda p: 0.1)


def test_vcb_takes_long_predicates():
    common = set(range(20))
    given_ = [frozenset(common | {100 + i}) for i in range(50)] + [frozenset({3, 17})]
    plan = vcb(given_, lambda p: 0.5 ** len(p))
    plan.check(given_)
    assert plan_cost(plan, lambda p: 0.5 ** len(p)) < 3

"""Predicates are added to a plan and removed; it stays valid and equivalent to its predicates."""

from __future__ import annotations

import pytest
from hypothesis import given

from fishweir.evaluate.select.factorization.plan import ROOT, FilterPlan, evaluate, plan_of
from fishweir.evaluate.select.factorization.vcb import vcb
from fishweir.papers.roses.naive import naive_plan
from tests import strategies as st
from tests.evaluate.select.factorization.strategies import predicates, selectivities, truths


def conj(*atoms):
    return frozenset(atoms)


@st.examples(60)
@given(predicates(12), predicates(12), st.randoms(use_true_random=False), selectivities, truths, st.booleans())
def test_add_and_remove_keep_the_plan_valid(first, later, random, chance, facts, by_chance):
    plan = vcb(first, chance)
    live = dict(enumerate(first))
    for number, predicate in enumerate(later, len(first)):
        if live and random.random() < 0.6:
            gone = random.choice(sorted(live))
            del live[gone]
            plan.remove(gone)
            plan.check(live)
        node = plan.add(number, predicate, chance if by_chance else None)
        live[number] = predicate
        assert plan.atoms[node] == predicate
        plan.check(live)
        assert evaluate(plan, facts) == {n for n, p in live.items() if p <= facts}
    for number in sorted(live):
        plan.remove(number)
    assert len(plan) == 1


def test_a_new_predicate_is_added_below_the_deepest_subsuming_node():
    plan = plan_of({conj(1): conj(), conj(1, 2): conj(1)}, [conj(1, 2), conj(1)])
    node = plan.add(2, conj(1, 2, 3))
    assert plan.atoms[plan.parent[node]] == conj(1, 2)
    assert plan.extra(node) == conj(3)
    assert plan.parent[plan.add(3, conj(3))] == ROOT


def test_with_selectivities_it_is_added_below_the_most_selective_node():
    plan = naive_plan([conj(1, 2), conj(3)])
    chance = {conj(): 1.0, conj(1, 2): 0.5, conj(3): 0.1}.__getitem__
    node = plan.add(2, conj(1, 2, 3), chance)
    assert plan.atoms[plan.parent[node]] == conj(3)


def test_others_stay_where_they_are():
    given_ = [conj(1, 2), conj(1, 3), conj(1, 4)]
    plan = vcb(given_, lambda p: 0.1 ** len(p))
    before = [(plan.end_of[n], plan.parent[plan.end_of[n]]) for n in range(3)]
    plan.add(3, conj(1))
    plan.add(4, conj(1, 3, 5))
    plan.remove(3)
    plan.remove(4)
    assert [(plan.end_of[n], plan.parent[plan.end_of[n]]) for n in range(3)] == before


def test_a_shared_filter_with_one_child_left_is_removed():
    plan = vcb([conj(1, 2), conj(1, 3)], lambda p: 0.1 ** len(p))
    assert conj(1) in plan.node_of
    plan.remove(0)
    assert set(plan.node_of) == {conj(), conj(1, 3)}
    assert plan.extra(plan.end_of[1]) == conj(1, 3)


def test_numbers_are_unique_and_known():
    plan = FilterPlan()
    plan.add(7, conj(1))
    with pytest.raises(ValueError, match="already"):
        plan.add(7, conj(2))
    with pytest.raises(ValueError, match="not in the plan"):
        plan.remove(8)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda plan: plan.ends[1].clear(), "does not represent"),
        (lambda plan: plan.atoms.__setitem__(1, conj(9)), "does not contain|cannot be reached"),
        (lambda plan: plan.parent.__setitem__(2, ROOT), "another parent"),
        (lambda plan: plan.hang(conj(5), ROOT), "serves no predicate"),
        (lambda plan: plan.children[1].clear(), "cannot be reached"),
    ],
)
def test_check_detects_invalid_plans(spoil, message):
    given_ = [conj(1), conj(1, 2)]
    plan = vcb(given_, lambda p: 0.1 ** len(p))
    plan.check(given_)
    spoil(plan)
    with pytest.raises(ValueError, match=message):
        plan.check(given_)

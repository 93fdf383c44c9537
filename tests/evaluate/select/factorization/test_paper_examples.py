"""The worked examples of the RoSeS paper: figures 3 to 5 (source s2) and figure 6 (VCB)."""

from __future__ import annotations

import pytest

from fishweir.evaluate.select.factorization.cost import TRUE, benefit, independent, naive_cost, plan_cost
from fishweir.evaluate.select.factorization.plan import ROOT
from fishweir.evaluate.select.factorization.vcb import VeryCleverBorder, vcb
from fishweir.papers.roses.sta import sta
from fishweir.papers.roses.subsumption import subsumption_graph
from fishweir.papers.roses.vca import vca

A, B, C, D, E, F = range(6)


def conj(text):
    return frozenset("abcdef".index(letter) for letter in text)


def parents(plan):
    return {plan.atoms[n]: plan.atoms[plan.parent[n]] for n in plan.nodes() if n != ROOT}


S2 = [conj("ab"), conj("ac"), conj("acd")]
TENTH = independent([0.1] * 6)


def test_figure_5_subsumption_graph():
    graph = subsumption_graph(S2, TENTH)
    assert set(graph.nodes) == {TRUE, *map(conj, ("a", "b", "c", "d", "ab", "ac", "ad", "cd", "acd"))}
    edges = {(p, q): weight for p, q, weight in graph.edges()}
    assert all(p < q for p, q in edges)
    assert edges[conj("a"), conj("ab")] == edges[conj("a"), conj("acd")] == pytest.approx(0.1)
    assert edges[TRUE, conj("acd")] == 1.0
    assert edges[conj("ac"), conj("acd")] == pytest.approx(0.01)


@pytest.mark.parametrize("algorithm", [sta, vca, vcb])
def test_figure_5_inserts_a(algorithm):
    plan = algorithm(S2, TENTH)
    plan.check(S2)
    a = conj("a")
    assert parents(plan) == {a: TRUE, conj("ab"): a, conj("ac"): a, conj("acd"): conj("ac")}
    assert {tuple(plan.extra(plan.node_of[p])) for p in S2} == {(B,), (C,), (D,)}
    rate = 50.0
    assert naive_cost(S2, rate) == 3 * rate
    assert plan_cost(plan, TENTH, rate) == pytest.approx(rate * (1 + 2 * 0.1 + 0.01))


def test_cost_is_about_half_of_the_plan_of_figure_3():
    """There a∧b and a∧c read the whole source and d reads what a∧c lets pass: about twice the rate."""
    figure_3 = 1 + 1 + TENTH(conj("ac"))
    assert plan_cost(vca(S2, TENTH), TENTH) / figure_3 == pytest.approx(0.6, abs=0.01)


def test_figure_6_border_step_by_step():
    s1, s2, s3, s4 = map(conj, ("abc", "bcd", "ae", "ef"))
    chance = independent({A: 0.1, B: 0.25, C: 0.25, D: 0.5, E: 0.2, F: 0.5})
    assert chance(conj("bc")) < chance(conj("a")) < chance(conj("e"))
    border = VeryCleverBorder([s1, s2, s3, s4], chance)
    assert border.best_candidate(s1) == border.best_candidate(s2) == conj("bc")
    assert border.best_candidate(s3) == conj("a")
    assert border.best_candidate(s4) == conj("e")
    assert border.siblings(s1) == {s1, s2, s3}

    assert border.step() == conj("bc")
    assert border.tree.children[TRUE] == {conj("bc"), s3, s4}
    assert border.best_candidate(s3) == conj("e")
    assert border.best_candidate(conj("bc")) is None

    assert border.step() == conj("e")
    assert border.step() is None
    assert border.tree.parents == {
        conj("bc"): TRUE,
        s1: conj("bc"),
        s2: conj("bc"),
        conj("e"): TRUE,
        s3: conj("e"),
        s4: conj("e"),
    }


@pytest.mark.parametrize("algorithm", [vca, vcb])
def test_reduce_removes_a_node_close_to_its_new_parent(algorithm):
    """b∧c pays at the root; once c is inserted, it saves nothing."""
    chance = independent({A: 0.1, B: 0.99, C: 0.4, D: 0.1, E: 0.1, F: 0.1})
    given = [conj("abc"), conj("bcd"), conj("ce"), conj("cf")]
    assert benefit(2, 1.0, chance(conj("bc"))) > 0 > benefit(2, chance(conj("c")), chance(conj("bc")))
    assert parents(algorithm(given, chance)) == {conj("c"): TRUE, **dict.fromkeys(given, conj("c"))}


@pytest.mark.parametrize("algorithm", [vca, vcb])
def test_a_candidate_that_does_not_pay_is_skipped(algorithm):
    chance = independent([0.5] * 6)
    given = [conj("ab"), conj("ac")]
    assert parents(algorithm(given, chance)) == dict.fromkeys(given, TRUE)


@pytest.mark.parametrize("algorithm", [sta, vca, vcb])
def test_predicate_in_the_border_takes_over_what_it_subsumes(algorithm):
    """The node exists anyway, so even a weak filter pays."""
    chance = independent([0.9] * 6)
    assert parents(algorithm([conj("a"), conj("ab")], chance)) == {conj("a"): TRUE, conj("ab"): conj("a")}

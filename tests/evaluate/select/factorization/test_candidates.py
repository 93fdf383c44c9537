"""The candidate lists compared with all subsets, counted one by one."""

from __future__ import annotations

from hypothesis import given

from fishweir.evaluate.select.factorization.candidates import find_candidates
from fishweir.evaluate.select.factorization.cost import independent, order_key
from fishweir.papers.roses.subsumption import proper_subsets
from tests import strategies as st
from tests.evaluate.select.factorization.strategies import predicates, selectivities


@st.examples(80)
@given(predicates(15, longest=6), selectivities)
def test_exactly_the_conjunctions_in_two_predicates_or_more_in_order(given_, chance):
    border = [p for p in dict.fromkeys(given_) if p]
    found = find_candidates(border, chance)
    every = {s for p in border for s in (p, *proper_subsets(p)) if s}
    expected = sorted((s for s in every if sum(s <= p for p in border) > 1), key=lambda s: order_key(s, chance))
    assert found.sets == expected
    assert found.selectivity == [chance(s) for s in expected]
    assert found.lists == [[i for i, s in enumerate(expected) if s <= p] for p in border]
    assert found.below == [[i for i, p in enumerate(border) if s <= p] for s in expected]


@st.examples(60)
@given(predicates(15, longest=7), selectivities)
def test_bounded_lists_are_part_of_the_whole_and_keep_single_atoms_and_predicates(given_, chance):
    border = [p for p in dict.fromkeys(given_) if p]
    whole, bounded = find_candidates(border, chance), find_candidates(border, chance, width=2)
    for p, full, part in zip(border, whole.lists, bounded.lists, strict=True):
        full, part = {whole.sets[i] for i in full}, {bounded.sets[i] for i in part}
        assert part <= full
        assert {s for s in full if len(s) == 1} <= part
        assert {q for q in border if q < p} <= part


def test_bound_takes_the_most_selective_atoms():
    chance = independent({0: 0.9, 1: 0.1, 2: 0.8, 3: 0.2})
    rows = [frozenset({0, 1, 2, 3, 8}), frozenset({0, 1, 2, 3, 9})]
    found = find_candidates(rows, chance, width=2)
    assert found.sets == [frozenset({1, 3}), *map(frozenset, ({1}, {3}, {2}, {0}))]

"""Evaluating a batch of documents on the arrays agrees with evaluating the plan document by document."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from fishweir.evaluate.select.factorization.cost import independent
from fishweir.evaluate.select.factorization.flat import flat_layout
from fishweir.evaluate.select.factorization.layout import run, to_layout, to_units
from fishweir.evaluate.select.factorization.plan import evaluate
from fishweir.evaluate.select.factorization.vcb import vcb
from fishweir.papers.roses.naive import naive_plan
from tests import strategies as st
from tests.evaluate.select.factorization.strategies import predicates

ATOMS = 10
documents = st.lists(st.frozensets(st.integers(0, ATOMS - 1)), max_size=30)
chances = st.lists(st.sampled_from([0.01, 0.1, 0.5, 0.9]), min_size=ATOMS, max_size=ATOMS).map(np.array)
literals = st.tuples(st.integers(0, ATOMS - 1), st.booleans())
disjunctions = st.lists(st.lists(literals, min_size=1, max_size=3, unique=True).map(tuple), max_size=4)


def batch_of(facts):
    offsets = np.cumsum([0, *map(len, facts)])
    return offsets, np.array([atom for some in facts for atom in sorted(some)], np.int64)


@st.examples(80)
@given(predicates(15), chances, disjunctions, documents, st.booleans(), st.data())
def test_run_equals_evaluate(given_, chance, more, batch, shared, data):
    units = to_units(ATOMS, more)
    extra = st.frozensets(st.integers(ATOMS, len(units) - 1), max_size=2) if more else st.just(frozenset())
    given_ = [predicate | data.draw(extra) for predicate in given_]
    of_units = units.chances(chance)
    plan = vcb(given_, independent(of_units)) if shared else naive_plan(given_)
    for number in data.draw(st.sets(st.sampled_from(range(len(given_)))) if given_ else st.just(())):
        plan.remove(number)
    layout = to_layout(plan, units, of_units)
    assert len(layout) == len(plan)
    ends, nodes, checked = run(layout, *batch_of(batch))
    assert checked >= 0
    found = []
    for document in range(len(batch)):
        for node in nodes[ends[document] : ends[document + 1]]:
            found += [(document, int(n)) for n in layout.ends[layout.end_offsets[node] : layout.end_offsets[node + 1]]]
    assert len(found) == len(set(found))
    true = [
        facts | {u for u in range(ATOMS, len(units)) if any((a in facts) == sign for a, sign in units.of(u))}
        for facts in batch
    ]
    assert set(found) == {(d, number) for d, facts in enumerate(true) for number in evaluate(plan, facts)}


@st.examples(60)
@given(predicates(15), chances, disjunctions, documents, st.data())
def test_the_flat_layout_is_that_of_the_naive_plan(given_, chance, more, batch, data):
    units = to_units(ATOMS, more)
    extra = st.frozensets(st.integers(ATOMS, len(units) - 1), max_size=2) if more else st.just(frozenset())
    given_ = [predicate | data.draw(extra) for predicate in given_]
    of_units = units.chances(chance)
    flat, naive = flat_layout(given_, units, of_units), to_layout(naive_plan(given_), units, of_units)
    assert flat.cost(of_units) == pytest.approx(naive.cost(of_units))
    assert [array.dtype for array in vars(flat).values() if isinstance(array, np.ndarray)] == [
        array.dtype for array in vars(naive).values() if isinstance(array, np.ndarray)
    ]
    assert fired(flat, batch) == fired(naive, batch)
    for node in range(len(flat)):
        for number in flat.ends[flat.end_offsets[node] : flat.end_offsets[node + 1]]:
            assert flat.units_of(node) == given_[number]


def fired(layout, batch):
    ends, nodes, _ = run(layout, *batch_of(batch))
    return [
        sorted(
            int(n)
            for node in nodes[ends[document] : ends[document + 1]]
            for n in layout.ends[layout.end_offsets[node] : layout.end_offsets[node + 1]]
        )
        for document in range(len(batch))
    ]


@st.examples(40)
@given(predicates(15), chances)
def test_a_node_stands_for_its_conjunction(given_, chance):
    units = to_units(ATOMS, [])
    layout = to_layout(vcb(given_, independent(chance)), units, units.chances(chance))
    for node in range(len(layout)):
        for number in layout.ends[layout.end_offsets[node] : layout.end_offsets[node + 1]]:
            assert layout.units_of(node) == given_[number]

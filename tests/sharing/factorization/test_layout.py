"""A batch of documents run through the arrays gives what the plan gives document by document."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from fishweir.sharing.factorization.layout import match, to_batch, to_layout
from fishweir.sharing.factorization.plan import evaluate, naive_plan
from fishweir.sharing.factorization.vcb import vcb
from tests.sharing.factorization.strategies import predicates, selectivities

documents = st.lists(st.frozensets(st.integers(0, 9)), max_size=150)


@settings(max_examples=150, deadline=None)
@given(predicates(15), selectivities, documents, st.integers(1, 3), st.booleans(), st.data())
def test_match_equals_evaluate(given_, chance, batch, words, shared, data):
    plan = vcb(given_, chance) if shared else naive_plan(given_)
    for number in data.draw(st.sets(st.sampled_from(range(len(given_)))) if given_ else st.just(())):
        plan.remove(number)
    layout = to_layout(plan, chance)
    assert len(layout) == len(plan)
    found, nodes = match(layout, *to_batch(layout, batch), words)
    assert (found[1:] >= found[:-1]).all()
    pairs = [
        (int(d), int(number))
        for d, n in zip(found, nodes, strict=True)
        for number in layout.ends[layout.end_offsets[n] : layout.end_offsets[n + 1]]
    ]
    assert len(pairs) == len(set(pairs))
    assert set(pairs) == {(d, number) for d, facts in enumerate(batch) for number in evaluate(plan, facts)}

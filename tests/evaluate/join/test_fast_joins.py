"""The fast strategy equals the oracle: repeated nodes, equal times, empty values, both orders, windows to the end."""

from __future__ import annotations

import numpy as np
from hypothesis import given

from fishweir.evaluate.join.value_views import words_to_keys
from tests import strategies as st
from tests.evaluate.join.runs_support import expected, joined, parsed
from tests.generators import feed_items, joins

times = st.sampled_from([0.0, 0.0, 1.0, 2.0, 3.0, 5.0, 8.0])


@st.composite
def streams(draw, names=("S",), size=7):
    texts = draw(st.lists(st.tuples(st.sampled_from(names), feed_items(), times), min_size=2, max_size=size))
    cuts = sorted(draw(st.sets(st.integers(1, len(texts)), max_size=3)))
    return texts, cuts


def batches_of(docs, cuts):
    return [docs[a:b] for a, b in zip([0, *cuts], [*cuts, len(docs)], strict=True) if a < b]


@st.examples(60)
@given(
    st.booleans().flatmap(lambda deep: st.lists(joins(deep=deep), min_size=1, max_size=6)),
    streams(),
    st.sampled_from([1, 3]),
)
def test_runs_equal_oracle(queries, stream, parts):
    texts, cuts = stream
    docs = parsed(texts)
    assert joined(queries, batches_of(docs, cuts), parts) == expected(queries, docs)


@st.examples(40)
@given(st.lists(joins(("S", "T")), min_size=1, max_size=5), streams(("S", "T"), 9))
def test_two_streams_and_merged_runs(queries, stream):
    texts, cuts = stream
    docs = parsed(texts)

    def merge(stage, runs):
        return [stage.merged(runs)] if len(runs) > 1 else runs

    assert joined(queries, batches_of(docs, cuts), merge=merge) == expected(queries, docs)


@st.examples(40)
@given(st.lists(joins(("S", "T")), min_size=1, max_size=5), streams(("S", "T"), 9), st.sampled_from([1, 3]))
def test_constants_checked_on_pairs(queries, stream, parts):
    texts, cuts = stream
    docs = parsed(texts)
    assert joined(queries, batches_of(docs, cuts), parts, above=True) == expected(queries, docs)


def test_sets_of_different_anchors_are_distinguished():
    words = np.arange(8, dtype=np.uint64)[:, None]
    keys = [int(k) for a in range(4) for k in words_to_keys(np.full(8, a), words)]
    assert len(set(keys)) == 32

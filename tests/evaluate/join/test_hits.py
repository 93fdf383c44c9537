"""The compiled passes over candidate pairs: ranges of sorted keys, sets of more than 64 edges, rows of results."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given

from fishweir.evaluate.join.hits import key_ranges, row_starts
from fishweir.papers.mmqjp.experiment.work import draw_queries, two_level_stream
from tests import strategies as st
from tests.evaluate.join.runs_support import expected, joined


@st.examples(40)
@given(st.lists(st.integers(0, 6)), st.lists(st.integers(0, 8)))
def test_ranges_match_a_binary_search(there, wanted):
    keys, looked_up = np.sort(np.array(there, np.uint64)), np.array(wanted, np.uint64)
    lo, hi = key_ranges(keys, looked_up)
    low, high = (np.searchsorted(keys, looked_up, side) for side in ("left", "right"))
    assert (hi - lo).tolist() == (high - low).tolist()
    assert lo[hi > lo].tolist() == low[high > low].tolist()


def test_more_edges_than_a_word_has_bits():
    """Nine leaves have 81 edges, three values make many sets of them."""
    places = [(f"leaf{i}",) for i in range(9)]
    singles = {tuple(q[0].conditions): q for q in draw_queries(places, 2_000, 1, 0.8, 1)}
    queries = [*singles.values(), *draw_queries(places, 20, 3, 0.0, 2)]
    assert len(singles) == 81
    docs = [("S", document) for _, document in two_level_stream(12, leaves=9, values=3).arrivals]
    found = joined(queries, [docs[:5], docs[5:9], docs[9:]], parts=2)
    assert len(found) > 1_000
    assert found == expected(queries, docs)


@st.examples(40)
@given(st.lists(st.tuples(*[st.integers(0, 1)] * 3), max_size=12), st.lists(st.integers(0, 2), min_size=8, max_size=8))
def test_a_row_has_one_document_count_stream_version_and_time(pairs, drawn):
    ours, theirs, counts = (np.array([pair[i] for pair in pairs], np.int64) for i in range(3))
    own_times, times = np.array(drawn[:2], float), np.array(drawn[2:4], float)
    own_since, since, streams = (np.array(drawn[i : i + 2]) for i in (4, 5, 6))
    starts = row_starts(ours, theirs, counts, own_times, times, own_since, since, streams).tolist()

    def alike(i):
        a, b = own_times[ours[i]], times[theirs[i]]
        version = min(own_since[ours[i]], since[theirs[i]])
        return ours[i], counts[i], version, streams[theirs[i]], max(a, b), np.sign(a - b)

    assert (starts[0], starts[-1]) == (0, len(pairs))
    assert all(len({alike(i) for i in range(a, b)}) == 1 for a, b in pairwise(starts))
    assert all(alike(i - 1) != alike(i) for i in starts[1:-1])

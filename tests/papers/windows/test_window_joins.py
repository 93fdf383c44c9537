"""Every strategy agrees with the naive join: NULLs, equal and late times, both orders, all kinds of windows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given

from fishweir.evaluate.select.boxes import Boxes
from fishweir.papers.spatialjoin.windows import (
    ALL_ROWS,
    IBSJS,
    LEFT,
    RIGHT,
    Arrivals,
    Comparisons,
    JoinQueries,
    SJJoin,
    SlidingJoin,
    Triples,
)
from fishweir.papers.spatialjoin.windows.oracle import NaiveJoin
from tests import strategies as st
from tests.papers.windows.support import Work, sample_queries, works

Make = Callable[..., SlidingJoin]
MAKERS: dict[str, Make] = {
    "sj-join": SJJoin,
    "sj-join, pairs alone": lambda *a, **k: SJJoin(*a, **k, pieces=2, cluster_size=1),
    "sj-join, clusters of 3": lambda *a, **k: SJJoin(*a, **k, pieces=7, cluster_size=3),
    "ibs-js": IBSJS,
}


def listed(triples: Triples) -> list[tuple[int, int, int]]:
    query, left, right = (column.tolist() for column in triples.expanded())
    return sorted(zip(query, left, right, strict=True))


@pytest.mark.parametrize("name", MAKERS)
@given(work=works())
@st.examples(40)
def test_strategies_equal_the_naive_join(name: str, work: Work):
    join, naive = MAKERS[name](work.queries, lateness=work.lateness), NaiveJoin(work.queries, work.lateness)
    counted = MAKERS[name](work.queries, lateness=work.lateness)
    for left, right in work.batches:
        expected = naive.process_both(left, right)
        assert listed(join.process_both(left, right)) == expected
        numbers = [query for query, _, _ in expected]
        assert counted.count(left, right).tolist() == np.bincount(numbers, minlength=work.queries.count).tolist()
        assert join.state_size() == sum(len(rows) for rows in naive.kept)


@pytest.mark.parametrize("name", ["sj-join", "ibs-js"])
@given(work=works(late=False))
@st.examples(30)
def test_the_division_into_batches_does_not_matter(name: str, work: Work):
    """All in one batch, or in several: batches never split tuples of equal times."""
    join, at_once = MAKERS[name](work.queries), MAKERS[name](work.queries)
    found = [triple for batch in work.batches for triple in listed(join.process_both(*batch))]
    whole = [
        Arrivals.of(
            np.concatenate([b[side].times for b in work.batches]),
            np.concatenate([b[side].columns for b in work.batches]),
        )
        for side in (LEFT, RIGHT)
    ]
    assert sorted(found) == listed(at_once.process_both(*whole))


def one_query(operator: str = "=", seconds: object = np.inf, rows: object = ALL_ROWS) -> JoinQueries:
    free = Boxes.from_ranges([[-np.inf]], [[np.inf]])
    return JoinQueries.of(free, free, Comparisons.of([0], [0], [operator], [0]), seconds, rows)


@pytest.mark.parametrize("name", MAKERS)
def test_a_window_ends_exactly_at_its_range(name: str):
    join = MAKERS[name](one_query(seconds=[[10.0, 2.0]]))
    assert listed(join.process(LEFT, [0.0, 1.0], [[5.0], [5.0]])) == []
    assert listed(join.process(RIGHT, [10.0], [[5.0]])) == [(0, 0, 0), (0, 1, 0)]
    assert listed(join.process(RIGHT, [11.0], [[5.0]])) == [(0, 1, 1)]
    assert listed(join.process(LEFT, [13.0, 13.5], [[5.0], [5.0]])) == [(0, 2, 1)]


@pytest.mark.parametrize("name", MAKERS)
def test_rows_count_tuples_that_do_not_match(name: str):
    join = MAKERS[name](one_query("<", rows=[[2, 1]]))
    join.process(LEFT, [0.0, 1.0, 2.0], [[1.0], [1.0], [9.0]])
    assert listed(join.process(RIGHT, [3.0], [[5.0]])) == [(0, 1, 0)]
    assert join.state_size() == 3


@pytest.mark.parametrize("name", MAKERS)
def test_state_stays_bounded(name: str):
    queries = sample_queries(20, 5, seconds=np.tile([[30.0, 10.0]], (20, 1)))
    join, draw = MAKERS[name](queries), np.random.default_rng(1)
    sizes, capacities = [], []
    for step in range(60):
        for side in (LEFT, RIGHT):
            join.process(side, step * 10 + np.arange(10), draw.random((10, 2)))
        sizes.append(join.state_size())
        capacities.append(sum(side.capacity for side in join.sides))
    assert set(sizes[5:]) == {31 + 11}
    assert capacities[-1] == capacities[5] <= 200


@pytest.mark.parametrize("name", MAKERS)
def test_larger_sets_agree_with_each_other(name: str):
    """More queries than a word or a page has, windows of many lengths, several batches."""
    draw = np.random.default_rng(3)
    rows = np.where(draw.random((500, 2)) < 0.5, draw.integers(1, 60, (500, 2)), ALL_ROWS)
    seconds = np.where(rows < ALL_ROWS, np.inf, draw.integers(0, 60, (500, 2)))
    queries = sample_queries(500, 4, rows, seconds)
    join, other = MAKERS[name](queries), SJJoin(queries, cluster_size=16)
    total = 0
    for step in range(4):
        both = [Arrivals.of(step * 25 + np.arange(25), np.round(draw.random((25, 2)), 2)) for _ in range(2)]
        found = listed(join.process_both(both[0], both[1]))
        assert found == listed(other.process_both(both[0], both[1]))
        total += len(found)
    assert total > 1_000


@pytest.mark.parametrize("name", ["sj-join", "ibs-js"])
@given(work=works())
@st.examples(30)
def test_restored_state_continues(name: str, work: Work):
    """A join that is restored before each batch agrees with the uninterrupted one."""
    join, other = MAKERS[name](work.queries), MAKERS[name](work.queries)
    for left, right in work.batches:
        state, other = other.state(), MAKERS[name](work.queries)
        other.restore(state)
        assert listed(other.process_both(left, right)) == listed(join.process_both(left, right))


def test_invalid_batches_are_refused():
    join = SJJoin(one_query())
    with pytest.raises(ValueError, match="shape"):
        join.process(LEFT, [0.0], [[1.0, 2.0]])
    with pytest.raises(ValueError, match="without a time"):
        join.process(LEFT, [np.nan], [[1.0]])
    with pytest.raises(ValueError, match="ascend"):
        join.process(LEFT, [0.0, 1.0], [[1.0], [1.0]], numbers=[3, 2])
    with pytest.raises(ValueError, match="at least one row"):
        one_query(rows=0)


@pytest.mark.parametrize("name", MAKERS)
def test_without_queries_nothing_is_kept(name: str):
    free = Boxes.from_ranges(np.empty((0, 2)), np.empty((0, 2)))
    join = MAKERS[name](JoinQueries.of(free, free, Comparisons.of([], [], [], [])))
    both = Arrivals.of([0.0, 1.0], np.zeros((2, 2)))
    assert len(join.process_both(both, both)) == 0
    assert join.state_size() == 0

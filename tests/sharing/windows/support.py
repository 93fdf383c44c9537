"""Random window joins: queries, and a stream of batches of both sides."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from fishweir.sharing.boxes import Boxes
from fishweir.sharing.windows import ALL_ROWS, OPERATORS, Arrivals, Comparisons, JoinQueries

INF = math.inf
VALUES = [-INF, -1.0, -0.0, 0.0, 0.5, 1.0, 1.0 + 2**-52, 2.0, INF, math.nan]
Batch = tuple[Arrivals, Arrivals]


@dataclass(frozen=True)
class Work:
    queries: JoinQueries
    batches: list[Batch]
    lateness: float


values = st.sampled_from(VALUES) | st.floats(-3, 3)
constants = st.sampled_from([v for v in VALUES if not math.isnan(v)])
ends = st.one_of(
    st.just((-INF, INF)),
    st.tuples(constants, constants),
    constants.map(lambda c: (c, INF)),
    constants.map(lambda c: (-INF, c)),
)
bands = st.sampled_from(list(OPERATORS.values())) | st.tuples(
    st.sampled_from([-INF, -1.0, -0.5, 0.0]), st.sampled_from([0.0, 0.5, 1.0, INF])
)
windows = st.one_of(
    st.tuples(st.sampled_from([0.0, 1.0, 2.0, 2.5, 4.0]), st.just(ALL_ROWS)),
    st.tuples(st.just(INF), st.sampled_from([1, 2, 3, 7])),
    st.tuples(st.sampled_from([1.0, 3.0]), st.sampled_from([1, 3])),
    st.just((-1.0, ALL_ROWS)),
    st.just((INF, ALL_ROWS)),
)


@st.composite
def join_queries(draw: st.DrawFn, attributes: tuple[int, int]) -> JoinQueries:
    count = draw(st.integers(1, 6))
    some = st.lists(windows, min_size=2, max_size=2)
    one_window = draw(st.booleans())
    each = [draw(some)] * count if one_window else [draw(some) for _ in range(count)]
    sides = []
    for number in attributes:
        ranges = np.array([[draw(ends) for _ in range(number)] for _ in range(count)]).reshape(count, number, 2)
        sides.append(Boxes.from_ranges(ranges[:, :, 0], ranges[:, :, 1], draw(st.booleans()), draw(st.booleans())))
    few = draw(st.lists(st.tuples(*(st.integers(0, n - 1) for n in attributes), bands), min_size=1, max_size=3))
    compared = [
        (query, *one) for query in range(count) for one in draw(st.lists(st.sampled_from(few), max_size=2, unique=True))
    ]
    columns = [[c[i] for c in compared] for i in range(3)]
    comparisons = Comparisons.bands(*columns, [c[3][0] for c in compared], [c[3][1] for c in compared])
    return JoinQueries.of(
        sides[0], sides[1], comparisons,
        seconds=[[w[0] for w in pair] for pair in each], rows=[[w[1] for w in pair] for pair in each],
    )  # fmt: skip


@st.composite
def works(draw: st.DrawFn, late: bool = True) -> Work:
    """Batches of either side; times ascend, with many equal ones, or come as they like."""
    attributes = draw(st.sampled_from([(1, 1), (2, 1), (2, 3)]))
    queries = draw(join_queries(attributes))
    clock, batches = 0.0, []
    for _ in range(draw(st.integers(1, 5))):
        both = []
        began = clock
        for number in attributes:
            rows = draw(st.lists(st.lists(values, min_size=number, max_size=number), max_size=4))
            steps = [draw(st.sampled_from([0.0, 0.0, 1.0, 2.0])) for _ in rows]
            times = [began + sum(steps[: i + 1]) for i in range(len(rows))]
            if late:
                times = [max(0.0, time - draw(st.sampled_from([0.0, 0.0, 0.0, 2.0, 5.0]))) for time in times]
            clock = max([clock, *times])
            both.append(Arrivals.of(times, np.array(rows).reshape(-1, number)))
        batches.append((both[0], both[1]))
        clock += draw(st.sampled_from([0.0, 1.0, 3.0])) if late else 1.0
    return Work(queries, batches, draw(st.sampled_from([0.0, 0.0, 2.0])))


def sample_queries(count: int, seed: int, rows: object = ALL_ROWS, seconds: object = INF) -> JoinQueries:
    """Two attributes a side, one range on each, one comparison of the first ones."""
    draw = np.random.default_rng(seed)
    least = np.sort(draw.random((2, count, 2, 2)), axis=3)
    sides = [Boxes.from_ranges(side[:, :, 0], side[:, :, 1]) for side in least]
    compared = Comparisons.of(np.arange(count), np.zeros(count), draw.choice(list(OPERATORS), count), np.zeros(count))
    return JoinQueries.of(sides[0], sides[1], compared, seconds=seconds, rows=rows)

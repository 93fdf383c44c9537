"""Random window joins: queries, and a stream of batches of both sides."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fishweir.evaluate.select.boxes import Boxes
from fishweir.papers.spatialjoin.windows import ALL_ROWS, OPERATORS, Arrivals, Comparisons, JoinQueries
from tests import strategies as st

INF = math.inf
VALUES = [-INF, -1.0, -0.0, 0.0, 0.5, 1.0, 1.0 + 2**-52, 2.0, INF, math.nan]
"""NULL comes last."""
Batch = tuple[Arrivals, Arrivals]


@dataclass(frozen=True)
class Work:
    queries: JoinQueries
    batches: list[Batch]
    lateness: float


BANDS = [*OPERATORS.values(), (-1.0, 1.0), (-0.5, 0.5), (0.0, 1.0), (-INF, 0.5), (-INF, INF)]
WINDOWS = [
    *((seconds, ALL_ROWS) for seconds in (0.0, 1.0, 2.0, 2.5, 4.0, INF, -1.0)),
    *((INF, rows) for rows in (1, 2, 3, 7)),
    (1.0, 3),
    (3.0, 2),
]


def drawn_queries(draw: np.random.Generator, attributes: tuple[int, int]) -> JoinQueries:
    """Most ranges are wide, and many queries share few comparisons, so that there are many results."""
    count = int(draw.integers(1, 9))
    sides = []
    for number in attributes:
        ends = np.sort(draw.choice(VALUES[:-1], (count, number, 2)), axis=2)
        ends[draw.random((count, number)) < 0.6] = (-INF, INF)
        opened = draw.random((2, count, number)) < 0.3
        sides.append(Boxes.from_ranges(ends[:, :, 0], ends[:, :, 1], opened[0], opened[1]))
    few = [(*(int(draw.integers(n)) for n in attributes), *BANDS[draw.integers(len(BANDS))]) for _ in range(3)]
    compared = [(query, *few[i]) for query in range(count) for i in draw.permutation(3)[: draw.integers(3)]]
    columns = [[row[i] for row in compared] for i in range(5)]
    windows = np.array([WINDOWS[i] for i in draw.integers(len(WINDOWS), size=2 * count)]).reshape(count, 2, 2)
    if draw.random() < 0.4:
        windows[:] = windows[0]
    return JoinQueries.of(
        sides[0], sides[1], Comparisons.bands(*columns), windows[:, :, 0], windows[:, :, 1].astype(np.int64)
    )


@st.composite
def works(draw: st.DrawFn, late: bool = True) -> Work:
    """Batches of both sides, from a seed: times ascend, with many equal ones; if `late`, some are earlier."""
    random = np.random.default_rng(draw(st.integers(0, 1 << 30)))
    attributes = draw(st.sampled_from([(1, 1), (2, 1), (2, 3)]))
    clock, batches = 0.0, []
    for _ in range(draw(st.integers(1, 5))):
        both, began = [], clock
        for number in attributes:
            count = int(random.integers(0, 8))
            times = began + np.cumsum(random.choice([0.0, 0.0, 1.0, 2.0], count))
            if late:
                times = np.maximum(0.0, times - random.choice([0.0, 0.0, 0.0, 2.0, 5.0], count))
            clock = max([clock, *times])
            both.append(Arrivals.of(times, random.choice(VALUES, (count, number))))
        batches.append((both[0], both[1]))
        clock += random.choice([0.0, 1.0, 3.0]) if late else 1.0
    return Work(drawn_queries(random, attributes), batches, float(random.choice([0.0, 0.0, 2.0])))


def sample_queries(count: int, seed: int, rows: object = ALL_ROWS, seconds: object = INF) -> JoinQueries:
    """Two attributes per side, one range on each, one comparison of the first attributes."""
    draw = np.random.default_rng(seed)
    least = np.sort(draw.random((2, count, 2, 2)), axis=3)
    sides = [Boxes.from_ranges(side[:, :, 0], side[:, :, 1]) for side in least]
    compared = Comparisons.of(np.arange(count), np.zeros(count), draw.choice(list(OPERATORS), count), np.zeros(count))
    return JoinQueries.of(sides[0], sides[1], compared, seconds=seconds, rows=rows)

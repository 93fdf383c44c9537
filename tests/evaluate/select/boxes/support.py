"""Random query regions and tuples, and a naive evaluation with which every strategy is compared."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fishweir.evaluate.select.boxes import Boxes, Matches
from tests import strategies as st

INF = math.inf
FEW = [-INF, -2.0, -1.0, -0.0, 0.0, 0.5, 1.0, 1.0 + 2**-52, 2.0, 1e308, 5e-324, INF]


@dataclass(frozen=True)
class Range:
    lo: float = -INF
    hi: float = INF
    lo_open: bool = False
    hi_open: bool = False

    def holds(self, value: float) -> bool:
        if self.lo == -INF and self.hi == INF:
            return True
        above = self.lo == -INF or (value > self.lo if self.lo_open else value >= self.lo)
        below = self.hi == INF or (value < self.hi if self.hi_open else value <= self.hi)
        return above and below and not math.isnan(value)


Query = list[Range]


def boxes_of(queries: list[Query], attributes: int) -> Boxes:
    def matrix(name: str) -> np.ndarray:
        rows = [[getattr(part, name) for part in query] for query in queries]
        return np.array(rows, dtype=float).reshape(len(queries), attributes)

    return Boxes.from_ranges(matrix("lo"), matrix("hi"), matrix("lo_open").astype(bool), matrix("hi_open").astype(bool))


def brute_force(queries: list[Query], tuples: list[list[float]]) -> list[list[int]]:
    return [
        [n for n, query in enumerate(queries) if all(part.holds(v) for part, v in zip(query, row, strict=True))]
        for row in tuples
    ]


def as_lists(matches: Matches) -> list[list[int]]:
    ascending = matches.ascending()
    return [ascending.of(row).tolist() for row in range(len(ascending))]


constants = st.sampled_from(FEW) | st.floats(allow_nan=False)
ranges = st.one_of(
    st.just(Range()),
    st.builds(Range, constants, constants, st.booleans(), st.booleans()),
    st.builds(lambda a, b, x, y: Range(min(a, b), max(a, b), x, y), constants, constants, st.booleans(), st.booleans()),
    constants.map(lambda c: Range(c, c)),
    st.builds(lambda c, o: Range(lo=c, lo_open=o), constants, st.booleans()),
    st.builds(lambda c, o: Range(hi=c, hi_open=o), constants, st.booleans()),
)
values = st.sampled_from([*FEW, math.nan]) | st.floats(allow_nan=True)


@st.composite
def workloads(draw: st.DrawFn) -> tuple[int, list[Query], list[list[float]]]:
    """(attributes, queries, tuples); a few of the queries and tuples occur several times."""
    attributes = draw(st.sampled_from([1, 1, 2, 3, 4, 8, 20]))
    query = st.lists(ranges, min_size=attributes, max_size=attributes)
    queries = draw(st.lists(query, max_size=12))
    queries = queries * draw(st.sampled_from([1, 1, 2, 7]))
    row = st.lists(values, min_size=attributes, max_size=attributes)
    tuples = draw(st.lists(row, max_size=8))
    ends = [[draw(st.sampled_from([part.lo, part.hi])) for part in q] for q in queries[:3]]
    return attributes, queries, tuples + ends


def random_boxes(random: np.random.Generator, queries: int, attributes: int, width: float) -> Boxes:
    """Many regions, some of them unconstrained on some attributes, equal or empty, and some with integral ends."""
    lo = random.random((queries, attributes))
    hi = lo + width * random.random((queries, attributes))
    lo = np.where(random.random(lo.shape) < 0.1, np.round(lo, 1), lo)
    hi = np.where(random.random(lo.shape) < 0.1, 1, hi)
    hi = np.where(random.random(lo.shape) < 0.02, lo, hi)
    free = random.random(lo.shape) < 0.3
    lo, hi = np.where(free | (random.random(lo.shape) < 0.1), -INF, lo), np.where(free, INF, hi)
    return Boxes.from_ranges(lo, hi, random.random(lo.shape) < 0.5, random.random(lo.shape) < 0.5)


def random_tuples(random: np.random.Generator, tuples: int, attributes: int) -> np.ndarray:
    values = random.random((tuples, attributes))
    values = np.where(random.random(values.shape) < 0.2, np.round(values, 1), values)
    return np.where(random.random(values.shape) < 0.05, np.nan, values)

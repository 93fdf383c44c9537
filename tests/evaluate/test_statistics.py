"""Statistics: they merge in any order, and the estimates are close to the true values."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from fishweir.evaluate.statistics import SAMPLE, SKETCH, PathStatistics, count_values
from fishweir.evaluate.witnesses.path_tables import PathTable
from tests import strategies as st


def counted(texts: list[str]) -> PathStatistics:
    return count_values(
        PathTable(np.arange(len(texts)), np.zeros((len(texts), 1), np.int64), pa.array(texts, pa.large_string()))
    )


@pytest.mark.parametrize("distinct", [1, 2, SKETCH - 1, SKETCH, 1_000, 20_000])
def test_distinct_within_a_fifth(distinct: int) -> None:
    values = [f"value {i % distinct}" for i in range(max(distinct, 2_000))]
    statistics = PathStatistics()
    for start in range(0, len(values), 700):
        statistics = statistics.merge(counted(values[start : start + 700]))
    assert statistics.count == len(values)
    assert statistics.distinct == pytest.approx(distinct, rel=0.2 if distinct >= SKETCH else 0)


@given(st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=5), max_size=5))
def test_counters_merge_in_any_order(parts: list[list[str]]) -> None:
    forth, back = PathStatistics(), PathStatistics()
    for part in parts:
        forth = forth.merge(counted(part))
    for part in reversed(parts):
        back = counted(part).merge(back)
    whole = counted([text for part in parts for text in part])
    assert (forth.count, forth.smallest) == (back.count, back.smallest) == (whole.count, whole.smallest)


def test_the_sample_is_spread_and_bounded() -> None:
    statistics = PathStatistics()
    for batch in range(10):
        statistics = statistics.merge(counted([str(batch * 1000 + i) for i in range(1000)]))
    sample = [int(text) for text in statistics.sample]
    assert len(sample) == SAMPLE
    assert min(sample) >= 6000, "older batches are displaced"
    newest = [value for value in sample if value >= 9000]
    assert min(newest) < 9100
    assert max(newest) > 9900


@pytest.mark.parametrize(
    ("op", "constants", "share"),
    [("<", [250.0], 0.25), (">=", [900.0], 0.1), ("=", [1.0], 0.0), ("!=", [1.0], 1.0), (">", [0.0, 1000.0], 0.5)],
)
def test_fractions(op: str, constants: list[float], share: float) -> None:
    statistics = counted([str(i) for i in range(1000)])
    assert statistics.fraction(op, constants) == pytest.approx(share, abs=0.05)


def test_fractions_of_texts() -> None:
    statistics = counted(["a", "b", "c", "d"] * 20)
    assert statistics.fraction("<", ["c"]) == pytest.approx(0.5, abs=0.05)


def test_without_counts_fractions_are_not_extreme() -> None:
    assert PathStatistics().distinct == 1
    assert 0 < PathStatistics().fraction("=", ["x"]) < 1
    assert counted([]).count == 0

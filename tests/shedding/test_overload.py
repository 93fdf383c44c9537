"""When the job sheds and how much; which documents are kept."""

from __future__ import annotations

import numpy as np
import pytest

from fishweir.algebra.preferences import Preference, Score, ValueCondition
from fishweir.shedding.decision import StreamShed, Wish, kept, may_shed, valued_by, worth
from fishweir.shedding.overload import Overload

LARGE = Preference((Score((), 1.0, ValueCondition(("price",), ">", 1000.0)),))
RANKED = Preference(ranking=(("name",), ("tel",)))


def test_nothing_is_shed_before_the_speed_is_known() -> None:
    overload = Overload(5.0)
    assert overload.share(10**9) == 1
    overload.took(5_000, 60.0)  # compiles
    assert overload.share(10**9) == 1
    overload.took(10, 0.5)  # small, and in time: says nothing
    assert overload.share(10**9) == 1


def test_hysteresis_and_recovery() -> None:
    overload = Overload(5.0)
    overload.took(1, 1.0)
    overload.took(10_000, 10.0)  # a millisecond each: 5,000 fit
    assert overload.share(5_000) == 1
    assert overload.share(20_000) == pytest.approx(0.2)
    assert overload.shedding
    assert overload.share(4_500) == pytest.approx(4_000 / 4_500)
    assert overload.share(3_000) == 1  # still shedding, but all fits
    assert overload.shedding
    assert overload.share(2_000) == 1
    assert not overload.shedding
    assert overload.share(4_500) == 1


def test_leaving_out_is_not_free() -> None:
    overload = Overload(5.0)
    overload.took(1, 1.0)
    overload.took(10_000, 10.0)
    assert overload.share(20_000) == pytest.approx(0.2)
    overload.took(1_000, 3.0, 20_000)  # a tenth of a millisecond for each that was left out
    assert overload.share(20_000) == pytest.approx((4 / 20_000 - 1e-4) / (1e-3 - 1e-4))
    assert overload.share(10**9) == 0.01


def test_queries_without_preference_are_spared_unless_the_stream_allows_it() -> None:
    assert may_shed(True, [Wish(None, 1)])
    assert not may_shed(False, [Wish(RANKED, 5), Wish(None, 1)])
    assert may_shed(False, [Wish(RANKED, 5), Wish(LARGE, 1)])
    assert not may_shed(False, [])


def test_values_are_weighted_by_subscribers() -> None:
    cheap = Preference((Score((), 1.0, ValueCondition(("price",), "<", 10.0)),))
    shed = StreamShed(0.5, valued_by([Wish(LARGE, 1), Wish(cheap, 3), Wish(RANKED, 100)]))
    assert StreamShed.from_json(shed.to_json()) == shed
    values = {price: worth(shed, lambda _, price=price: [price]) for price in ("2000", "5", "50")}
    assert values == {"2000": 1 + 3 * 0.5, "5": 3 + 0.5, "50": 0.5 + 3 * 0.5}


def test_those_worth_most_are_kept_and_equals_by_a_hash() -> None:
    numbers = np.arange(1, 1001)
    worths = (numbers % 10 == 0).astype(np.float64)
    chosen = kept(numbers, worths, 0.25)
    assert chosen.sum() == 250
    assert chosen[worths == 1].all()
    assert 0.1 < chosen[:500].mean() < 0.4
    assert np.array_equal(chosen, kept(numbers, worths, 0.25))

"""The refresh strategy: urgency, choice, budget, learned rates."""

from __future__ import annotations

import numpy as np
import pytest

from fishweir.intake.sources.refresh import EACH, SHORTEST, Rates, Refresh, chosen, overflow, urgency

HOUR, DAY = 3600.0, 86_400.0


def test_overflow_is_the_tail_of_a_poisson_variable() -> None:
    rng = np.random.default_rng(1)
    for expected in (0.5, 3.0, 9.0, 15.0, 40.0):
        for shown in (1.0, 10.0, 30.0):
            drawn = (rng.poisson(expected, 200_000) > shown).mean()
            assert overflow(np.array([expected]), np.array([shown]))[0] == pytest.approx(drawn, abs=0.02)


def test_more_items_longer_waits_and_shorter_feeds_are_more_urgent() -> None:
    rates, shown, waited = np.array([1.0, 2.0, 1.0, 1.0]) / HOUR, np.array([10, 10, 10, 3.0]), np.full(4, 4 * HOUR)
    waited[2] *= 2
    urgent = urgency(rates, shown, waited)
    assert urgent[0] == urgent.min()
    assert np.all(urgent[1:] > urgent[0])


def test_the_most_urgent_are_chosen_but_none_too_often() -> None:
    urgent, waited = np.array([5.0, 9.0, 7.0, 8.0]), np.array([600.0, SHORTEST - 1, 600.0, 600.0])
    assert chosen(urgent, waited, 2).tolist() == [3, 2]
    assert chosen(urgent, waited, 9).tolist() == [3, 2, 0]


def test_rates_are_learned_from_the_times_of_items() -> None:
    rates = Rates(2)
    rates.observe(0, 30 * DAY, [30 * DAY - HOUR * n for n in range(1, 21)], 20, 20)
    rates.observe(1, 30 * DAY, [30 * DAY - DAY * n for n in range(1, 21)], 20, 20)
    busy, calm = rates.rates(30 * DAY + HOUR)
    assert 8 < busy / calm < 40
    for n in range(1, 200):
        rates.observe(1, 30 * DAY + n * HOUR, [], 20, 2)
    assert rates.rates(39 * DAY)[1] == pytest.approx(2 / HOUR, rel=0.3), "without times, by what fetches bring"


def test_the_budget_is_kept_and_goes_where_items_are() -> None:
    refresh, fetches = Refresh(per_hour=10.0), {"busy": 0, "calm": 0, "idle": 0}
    gap = {"busy": HOUR / 4, "calm": 12 * HOUR, "idle": 30 * DAY}
    begin = 100 * DAY
    for name in fetches:
        assert refresh.granted(name, begin), "the first fetch needs no grant"
        refresh.observe(name, begin, [begin - gap[name] * n for n in range(1, 16)], 15)
    for minute in range(1, 24 * 60):
        now = begin + 60.0 * minute
        for name in fetches:
            if refresh.granted(name, now):
                fetches[name] += 1
                refresh.observe(name, now, [now - gap[name] * n for n in range(1, 16)], 1 if name == "busy" else 0)
    assert sum(fetches.values()) == pytest.approx(240, abs=3)
    assert fetches["busy"] > 2 * fetches["calm"] > 2 * fetches["idle"] > 0


def test_without_a_budget_each_feed_has_its_share() -> None:
    refresh = Refresh()
    for name in "ab":
        refresh.observe(name, 0.0, [], 0)
    granted = sum(refresh.granted(name, 60.0 * m) for m in range(1, 601) for name in "ab")
    assert granted == pytest.approx(2 * EACH * 10, abs=2)
    refresh.forget("a")
    assert refresh.granted("a", 40_000.0), "as if it were new"

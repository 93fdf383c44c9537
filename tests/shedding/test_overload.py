"""When the job sheds and how much; which documents are kept."""

from __future__ import annotations

import numpy as np
import pytest

from fishweir.algebra.preferences import Preference, Score, ValueCondition
from fishweir.shedding.decision import LEFT_OUT, Level, StreamShed, levels_for, levels_of, may_shed, valued_by, worth
from fishweir.shedding.overload import REALIZED, Overload
from fishweir.shedding.suspension import PreferenceGroup, Variant

TARGET = 10.0
"""Seconds of which the shedder uses two fifths: four."""
LARGE = Preference((Score((), 1.0, ValueCondition(("price",), ">", 1000.0)),))
ALL = (Variant(),)
RANKED = Preference(ranking=(("name",), ("tel",)))


def test_nothing_is_shed_before_the_speed_is_known() -> None:
    overload = Overload(TARGET)
    assert overload.budget(10**9) is None
    overload.took(5_000, 60.0)  # compiles
    assert overload.budget(10**9) is None
    overload.took(10, 0.5)  # small, and in time: not informative
    assert overload.budget(10**9) is None


def kept_of(overload: Overload, waiting: int) -> float:
    """The share that is kept if only whole documents can be left out."""
    budget = overload.budget(waiting)
    return 1.0 if budget is None else StreamShed(levels_for(ALL, waiting, budget.seconds, budget, True)).keep


def test_hysteresis_and_recovery() -> None:
    overload = Overload(TARGET)
    overload.took(1, 1.0)
    overload.took(10_000, 10.0)  # a millisecond each: 5,000 fit
    assert kept_of(overload, 5_000) == 1
    assert kept_of(overload, 20_000) == pytest.approx(0.2)
    assert overload.shedding
    assert kept_of(overload, 4_500) == pytest.approx(4_000 / 4_500)
    assert kept_of(overload, 3_000) == 1  # still shedding, but all fits
    assert overload.shedding
    assert kept_of(overload, 2_000) == 1
    assert not overload.shedding
    assert kept_of(overload, 4_500) == 1


def test_leaving_documents_out_costs_time() -> None:
    overload = Overload(TARGET)
    overload.took(1, 1.0)
    overload.took(10_000, 10.0)
    assert kept_of(overload, 20_000) == pytest.approx(0.2)
    overload.took(1_000, 3.0, 20_000)  # a tenth of a millisecond for each that was left out
    assert kept_of(overload, 20_000) == pytest.approx((4 / 20_000 - 1e-4) / (1e-3 - 1e-4), abs=1e-3)
    assert kept_of(overload, 10**9) == 0.01


def test_outputs_and_documents_waiting_for_them_count() -> None:
    overload = Overload(TARGET)
    overload.took(1, 1.0)
    overload.took(10_000, 10.0)
    overload.constructed(1_000, 1.0)
    budget = overload.budget(10_000)
    assert budget is not None
    assert (budget.matching, budget.constructing, budget.seconds) == (1e-3, 1e-3, 4.0)
    behind = overload.budget(10_000, 1_500)
    assert behind is not None
    assert behind.seconds == 2.5


def test_while_outputs_wait_a_micro_batch_gets_the_time_that_passes() -> None:
    overload = Overload(10.0)
    overload.took(1, 1.0)
    overload.took(10_000, 10.0)
    overload.constructed(1_000, 1.0)
    shares = []
    for behind in (3_000, 4_000, 5_000, 9_000):
        budget = overload.budget(10_000, behind, passed=0.5)
        assert budget is not None
        shares.append(budget.seconds)
    assert shares == pytest.approx([1.0, 0.5, 0.375, 0.0]), "up to two fifths of the target, then what passes or less"
    few = overload.budget(10_000)
    assert few is not None
    assert few.seconds == 4.0


def test_few_outputs_do_not_determine_the_cost() -> None:
    overload = Overload(10.0)
    overload.took(1, 1.0)
    overload.took(10_000, 10.0)
    overload.constructed(20, 0.02)
    budget = overload.budget(20_000)
    assert budget is not None
    assert budget.constructing == 0


def test_the_speed_is_measured_while_patterns_are_left_out() -> None:
    overload = Overload(TARGET)
    overload.took(1, 1.0)
    overload.took(10_000, 5.0, part=0.5)
    overload.constructed(10_000, 2.0, part=0.2)
    budget = overload.budget(10**6)
    assert budget is not None
    assert (budget.matching, budget.constructing) == (1e-3, 1e-3)


def test_savings_that_are_not_realized_correct_the_predictions() -> None:
    overload = Overload(TARGET)
    overload.took(1, 1.0)
    overload.took(10_000, 10.0)
    overload.constructed(1_000, 1.0)
    overload.constructed(1_000, 0.9, part=0.2)
    assert overload.realized == REALIZED, "a single measurement may be wrong"
    for _ in range(10):
        overload.constructed(1_000, 0.6, part=0.2)
    budget = overload.budget(10**6)
    assert budget is not None
    assert budget.constructing == 1e-3, "the cost of complete outputs is that of complete outputs"
    assert budget.realized == pytest.approx(0.5)
    assert budget.cost(1.0, 0.2) == pytest.approx(1e-3 + 0.6e-3)
    assert budget.cost(1.0, 1.0) == pytest.approx(2e-3)
    half = levels_for((Variant(), Variant(0.9, 1.0, 0.2)), 10_000, 16.0, budget, True)
    assert [level.share for level in half] == [1.0], "the cheaper one, for all"


def test_slower_reduced_outputs_mean_that_all_outputs_became_slower() -> None:
    overload = Overload(TARGET)
    overload.took(1, 1.0)
    overload.took(10_000, 10.0)
    overload.constructed(1_000, 1.0)
    for _ in range(20):
        overload.constructed(1_000, 3.0, part=0.5)
    budget = overload.budget(10**6)
    assert budget is not None
    assert budget.constructing == pytest.approx(3e-3)


def test_queries_without_preference_are_spared_unless_the_stream_allows_it() -> None:
    assert may_shed(True, [PreferenceGroup(None, 1)])
    assert not may_shed(False, [PreferenceGroup(RANKED, 5), PreferenceGroup(None, 1)])
    assert may_shed(False, [PreferenceGroup(RANKED, 5), PreferenceGroup(LARGE, 1)])
    assert not may_shed(False, [])


def test_values_are_weighted_by_subscribers() -> None:
    cheap = Preference((Score((), 1.0, ValueCondition(("price",), "<", 10.0)),))
    shed = StreamShed(
        (Level(0.5),), valued_by([PreferenceGroup(LARGE, 1), PreferenceGroup(cheap, 3), PreferenceGroup(RANKED, 100)])
    )
    assert StreamShed.from_json(shed.to_json()) == shed
    values = {price: worth(shed, lambda _, price=price: [price]) for price in ("2000", "5", "50")}
    assert values == {"2000": 1 + 3 * 0.5, "5": 3 + 0.5, "50": 0.5 + 3 * 0.5}


def test_the_most_valuable_are_kept_with_equal_values_ordered_by_a_hash() -> None:
    numbers = np.arange(1, 1001)
    worths = (numbers % 10 == 0).astype(np.float64)
    levels = levels_of(numbers, worths, [Level(0.05), Level(0.2, ("x",))])
    assert [int((levels == one).sum()) for one in (0, 1, LEFT_OUT)] == [50, 200, 750]
    assert (levels[worths == 1] != LEFT_OUT).all()
    assert (worths[levels == 0] == 1).all()
    assert 0.1 < (levels[:500] >= 0).mean() < 0.4
    assert np.array_equal(levels, levels_of(numbers, worths, [Level(0.05), Level(0.2, ("x",))]))
    assert (levels_of(numbers, worths, [Level(1.0)]) == 0).all()

"""The number of tasks of a micro-batch."""

from __future__ import annotations

from fishweir import testing
from fishweir.pipeline.parts import FEWEST, GAIN, KNOWN, SURE, TRIAL, WORTH, Parts


def test_before_anything_is_measured_all_tasks_are_used() -> None:
    parts = Parts()
    assert parts.count(10 * FEWEST, 4) == 4
    assert parts.count(2 * FEWEST, 4) == 2
    assert parts.count(1, 4) == 1


def test_cheap_entries_stay_together_and_expensive_ones_do_not() -> None:
    parts = Parts()
    parts.took(1000, WORTH, WORTH, 1)
    assert parts.count(1000, 4) == 1
    assert parts.count(3000, 4) == 3
    assert parts.count(100_000, 4) == 4


def test_small_micro_batches_change_the_estimate_slowly() -> None:
    parts = Parts()
    parts.took(1000, WORTH, WORTH, 1)
    parts.took(1, WORTH, WORTH, 1)
    assert parts.count(1000, 4) == 1
    for _ in range(10):
        parts.took(1000, 4 * WORTH, 4 * WORTH, 1)
    assert parts.count(1000, 4) == 4


def measured(one: float, several: float) -> Parts:
    """After some micro-batches of 1,000 entries, with the time that the driver waited for one task and for two."""
    parts = Parts()
    for _ in range(SURE):
        parts.took(1000, 2 * several, several, 2)
    for _ in range(SURE):
        parts.took(1000, one, one, 1)
    return parts


def test_several_tasks_must_pay_off() -> None:
    one = 4 * WORTH
    assert measured(one, GAIN * one * 0.99).count(1000, 2) == 2
    assert measured(one, GAIN * one * 1.01).count(1000, 2) == 1


def test_several_tasks_are_measured_more_than_once_since_the_first_micro_batch_loads_the_plan() -> None:
    parts = Parts()
    parts.took(1000, 1000 * WORTH, 500 * WORTH, 2)
    parts.took(1000, 4 * WORTH, 4 * WORTH, 1)
    assert parts.count(1000, 2) == 2


def test_only_micro_batches_of_similar_size_are_compared() -> None:
    """Most of the time of small ones does not depend on their entries."""
    parts = measured(4 * WORTH, 2 * WORTH)
    for _ in range(SURE):
        parts.took(100_000, 80 * WORTH, 40 * WORTH, 2)
    for _ in range(SURE):
        parts.took(100_000, 30 * WORTH, 30 * WORTH, 1)
    assert parts.count(100_000, 2) == 1


def test_what_did_not_pay_off_is_tried_again_after_a_while() -> None:
    parts = measured(4 * WORTH, 40 * WORTH)
    for _ in range(KNOWN - SURE + 1):
        assert parts.count(1000, 2) == 1
        parts.took(1000, 4 * WORTH, 4 * WORTH, 1)
    assert parts.count(1000, 2) == 2


def test_a_single_task_is_tried_if_it_does_not_take_long() -> None:
    parts = Parts()
    for _ in range(SURE):
        parts.took(1000, TRIAL / 2, TRIAL / 4, 2)
    assert parts.count(1000, 2) == 1
    assert parts.count(3000, 2) == 2


def test_results_are_the_same_in_any_number_of_parts(tmp_path) -> None:
    query = "create query q as select l.x from R [rows 2] l, R [rows 2] r where l.x = r.x"
    found = []
    for parallelism in (1, 3):
        with testing.open(tmp_path / str(parallelism), parallelism=parallelism) as weir:
            weir.execute(f"create stream R (x int); {query}")
            for _ in range(3):
                weir.publish("R", [{"x": i // 2} for i in range(200)])
                weir.step()
            found.append(sorted(tuple(result.documents) for result in weir.results("q")))
    assert found[0] == found[1] != []

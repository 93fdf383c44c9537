"""The number of tasks of a micro-batch."""

from __future__ import annotations

from fishweir import testing
from fishweir.pipeline.parts import FEWEST, WORTH, Parts


def test_before_anything_is_measured_all_tasks_are_used() -> None:
    parts = Parts()
    assert parts.count(10 * FEWEST, 4) == 4
    assert parts.count(2 * FEWEST, 4) == 2
    assert parts.count(1, 4) == 1


def test_cheap_entries_stay_together_and_expensive_ones_do_not() -> None:
    parts = Parts()
    parts.took(1000, WORTH)
    assert parts.count(1000, 4) == 1
    assert parts.count(3000, 4) == 3
    assert parts.count(100_000, 4) == 4


def test_small_micro_batches_change_the_estimate_slowly() -> None:
    parts = Parts()
    parts.took(1000, WORTH)
    parts.took(1, WORTH)
    assert parts.count(1000, 4) == 1
    for _ in range(10):
        parts.took(1000, 4 * WORTH)
    assert parts.count(1000, 4) == 4


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

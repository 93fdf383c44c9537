"""Summaries of tasks: what they add up to, and how they are sent."""

from __future__ import annotations

import pickle

import numpy as np

from fishweir.evaluate.witnesses.counters import StreamCounters, to_counts
from fishweir.pipeline.lateness import RECENT, Lateness, observe
from fishweir.pipeline.summary import Summary


def late(lateness: float) -> Lateness:
    """Items of which the last is late."""
    times = np.append(np.arange(RECENT, dtype=np.float64), RECENT - lateness)
    return observe(times, times, -np.inf, -np.inf)


def test_the_greatest_lateness_of_a_large_micro_batch_is_known() -> None:
    total = Summary()
    for _ in range(2):  # a task and the driver add up
        part, total = total, Summary()
        part = Summary(lateness={"1": late(500.0)}) if not part.lateness else part
        total.add(part)
    learned = Lateness().added(total.lateness["1"])
    assert learned.allowance() >= 500.0


def test_counters_add_up_and_are_sent() -> None:
    counted = StreamCounters(3, 5, 1, 2, to_counts([7, 4], [1, 2], [3, 4]), bytes=9)
    total = Summary()
    for _ in range(2):
        total.add(Summary(walked={"1": pickle.loads(pickle.dumps(counted))}))
    found = total.walked["1"]
    assert found.reached.tolist() == [[4, 4, 8], [7, 2, 6]]
    assert (found.documents, found.elements, found.skipped, found.paths, found.bytes) == (6, 10, 2, 2, 18)
    assert found.below.shape == (0, 3)

"""The two stages of a micro-batch, match and probe, on whatever executes their tasks.

A micro-batch that is one part is one task: what the first stage keeps stays in memory for the second, and one answer
goes to the driver. With several parts the second stage begins when the first has ended everywhere, since each part
probes what all of them have kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol

from fishweir.pipeline.offsets import LogSlice
from fishweir.pipeline.parts import Timed
from fishweir.pipeline.probe import ProbeTask
from fishweir.pipeline.summary import Summary
from fishweir.pipeline.worker import MatchTask

COUNTED, COUNT_EVERY = 10, 1.0
"""Micro-batches of a run in all of which values are counted; after them it is one every so many seconds. Plans need to
know how values are distributed, not how many there were."""

Call = Callable[[], Summary]


class Executor(Protocol):
    """Runs the tasks of micro-batches."""

    parallelism: int

    def run(self, calls: Sequence[Call]) -> Iterable[Summary]:
        """What each call returns, in any order."""


class InlineExecutor:
    """Runs tasks where it is called, one after the other."""

    def __init__(self, parallelism: int = 1) -> None:
        self.parallelism = parallelism

    def run(self, calls: Sequence[Call]) -> Iterable[Summary]:
        return [call() for call in calls]


def run_stages(
    executor: Executor,
    match: MatchTask,
    probe: ProbeTask,
    parts: Sequence[Sequence[LogSlice]],
    check: Callable[[Summary], None],
) -> Summary:
    """What the tasks found; `check` raises where the driver does not see what they wrote."""
    calls: list[Call] = [partial(match, number, part) for number, part in enumerate(parts)]
    is_one = len(calls) == 1
    summary = _sum(executor, [partial(probe.behind, calls[0])] if is_one else calls)
    check(summary)
    if summary.states and not is_one:
        probe = replace(probe, new=tuple(sorted(summary.states)), parts=len(parts))
        summary.add(_sum(executor, [partial(probe, part) for part in range(len(parts))]))
        check(summary)
    return summary


def _sum(executor: Executor, calls: Sequence[Call]) -> Summary:
    summary = Summary()
    for done in executor.run([Timed(call) for call in calls]):
        summary.add(done)
    return summary


class Counting:
    """Whether the values of the next micro-batch are counted."""

    def __init__(self) -> None:
        self._asked, self._last = 0, time.monotonic()

    def __call__(self) -> bool:
        self._asked += 1
        now = time.monotonic()
        if self._asked > COUNTED and now < self._last + COUNT_EVERY:
            return False
        self._last = now
        return True

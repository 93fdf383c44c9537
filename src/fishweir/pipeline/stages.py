"""The two stages of a micro-batch, match and probe, on any executor.

A micro-batch with a single part is one task: the state of the first stage stays in memory for the second, and the
driver gets one answer. With several parts, the second stage begins when the first has ended in all of them, since each
part probes the state of all parts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol

from fishweir.pipeline.offsets import LogSlice
from fishweir.pipeline.parts import TimedCall
from fishweir.pipeline.probe import ProbeTask
from fishweir.pipeline.states import sealed_names
from fishweir.pipeline.summary import Summary
from fishweir.pipeline.worker import MatchTask

COUNTED, COUNT_EVERY = 10, 1.0
"""The number of first micro-batches of a run in which all values are counted, and the seconds between counts after
that. Plans depend on the distribution of values, not on their number.
"""

Call = Callable[[], Summary]


class Executor(Protocol):
    """Runs the tasks of micro-batches."""

    parallelism: int

    def run(self, calls: Sequence[Call]) -> Iterable[Summary]:
        """The return values of the calls, in any order."""


class InlineExecutor:
    """Runs tasks in the calling thread, one after another."""

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
    """The sum of the tasks' summaries; `check` raises an error if the driver does not see the files that they wrote."""
    calls: list[Call] = [partial(match, number, part) for number, part in enumerate(parts)]
    is_one = len(calls) == 1
    summary = _sum(executor, [partial(probe.behind, calls[0])] if is_one else calls)
    check(summary)
    if summary.states and not is_one:
        probe = replace(probe, new=sealed_names(summary.state_files), parts=len(parts))
        summary.add(_sum(executor, [partial(probe, part) for part in range(len(parts))]))
        check(summary)
    return summary


def _sum(executor: Executor, calls: Sequence[Call]) -> Summary:
    summary = Summary()
    for done in executor.run([TimedCall(call) for call in calls]):
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

"""What happens while the planner merges the segments of many queries: micro-batches and one more query do not wait.

More queries are registered in bulk. Then single queries and documents follow one another until the planner has merged
all segments into one. A query is timed from the call that registers it until its action has been called with a document
that was published right after it. The single queries are dropped in the end.
"""

from __future__ import annotations

import statistics
import threading
import time
from dataclasses import dataclass
from typing import Any

from fishweir.delivery.payload import NotRewindable, Payload
from fishweir.engine.weir import Weir
from fishweir.evaluate.plan.manifest import load_manifest
from fishweir.papers.way.part import PATIENCE
from fishweir.papers.way.work import SIDE, STREAM, Work
from fishweir.pipeline.batch import MicroBatches, PlanInForce

FEWEST = 10
"""Number of queries that are registered at least."""


@dataclass(frozen=True)
class WhileMerging:
    """Wall times in seconds."""

    usual: float
    """The median of the micro-batches without the merged segment."""
    first: float | None
    """The first micro-batch with it; None if the merge took longer than the experiment waits."""
    one_more: float
    one_more_longest: float


class Watched:
    """Records the plan and the time of each micro-batch."""

    def __init__(self, batches: MicroBatches) -> None:
        self.steps: list[tuple[tuple[str, ...], float]] = []
        self._newest, self._step, self._segments = batches.newest, batches.step, tuple[str, ...]()
        batches.newest = self._plan
        vars(batches)["step"] = self._timed

    def _plan(self, statistics: Any) -> PlanInForce:
        plan = self._newest(statistics)
        self._segments = plan.segments
        return plan

    def _timed(self, *given: Any) -> bool:
        began = time.perf_counter()
        evaluated = self._step(*given)
        if evaluated:
            self.steps.append((self._segments, time.perf_counter() - began))
        return evaluated


def while_merging(weir: Weir, work: Work, queries: int, there: int) -> WhileMerging:
    """`there` is the number of queries that the job already has."""
    called, names, more = threading.Event(), list[str](), list[float]()

    class Ping(NotRewindable):
        def deliver(self, results: Payload) -> None:
            called.set()

    weir.register_action("ping", Ping)
    weir.register_many(work.template, work.rows(queries)[there:])
    assert weir._runner is not None
    watched, ends = Watched(weir._runner.batches), time.monotonic() + PATIENCE
    while len(more) < FEWEST or (not segments(weir, queries) and time.monotonic() < ends):
        names.append(f"more{len(names)}")
        more.append(one_more(weir, names[-1], SIDE + len(names), called))
    merged, steps = set(segments(weir, queries)), watched.steps
    after = [seconds for ids, seconds in steps if merged.intersection(ids)]
    others = [seconds for ids, seconds in steps if not merged.intersection(ids)]
    weir.drop_many(names)
    usual = statistics.median(others or after)  # few queries are merged at once
    return WhileMerging(usual, after[0] if after else None, statistics.median(more), max(more))


def one_more(weir: Weir, name: str, place: int, called: threading.Event) -> float:
    """Seconds until a query on a region of its own has called its action."""
    called.clear()
    began = time.perf_counter()
    weir.execute(f"create query {name} as select * from {STREAM} where x >= {place} and x < {place + 1} do ping")
    weir.publish(STREAM, [{"x": place, "y": 0}])
    if not called.wait(PATIENCE):
        raise RuntimeError("the action of a new query was not called")
    return time.perf_counter() - began


def segments(weir: Weir, queries: int) -> list[str]:
    """The segments in force that have all queries."""
    return [piece.id for piece in load_manifest(weir.home.plan / "current.json").pieces if piece.size >= queries]

"""One backfill run: evaluates queries over the logs since their start, with its own state.

In: entries of the logs, in the order of their arrival. Out: result rows in a folder of the run, which are moved into
the results table at the commit. The run has its own segment, state and view of event time, so it affects neither the
job nor other queries. Its state is temporary: after a restart, a run evaluates the committed part again to rebuild its
state, without searching for results.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path

from fishweir.algebra.nodes import StreamDefinition
from fishweir.engine.handover import load
from fishweir.evaluate.plan.plan import cached_plan
from fishweir.pipeline.batch import MicroBatches
from fishweir.pipeline.commits import Commit
from fishweir.pipeline.event_time import EventTime, Published
from fishweir.pipeline.home import Home
from fishweir.pipeline.lateness import Lateness
from fishweir.pipeline.offsets import Offsets, first_arrived, slices_between
from fishweir.pipeline.probe import ProbeTask
from fishweir.pipeline.retained import Retained
from fishweir.pipeline.states import SealedNames, StateFile, sealed_names
from fishweir.pipeline.summary import Summary
from fishweir.pipeline.worker import MatchTask
from fishweir.records import dataclass

ENTRIES_PER_STEP = 20_000
"""The number of entries that are evaluated and committed per step."""


class BackfillEventTime(EventTime):
    """The event time of a run, which may be far behind the job."""

    def of(self, stream: int) -> Lateness:
        return self.known.get(stream, Lateness())

    def add(self, observed: Mapping[str, Lateness]) -> None:
        self.known |= {int(id): self.of(int(id)).added(lateness) for id, lateness in observed.items()}


@dataclass(frozen=True)
class JobSnapshot:
    """The state of the job between two micro-batches, as needed by a step."""

    offsets: Mapping[str, int]
    published: Mapping[int, Published]
    last: Commit
    troubled: Mapping[int, str]
    now: float
    segments: tuple[str, ...] = ()

    @classmethod
    def of(cls, batches: MicroBatches, version: int, with_plan: bool = False) -> JobSnapshot:
        """The catalog may have a newer version than the last micro-batch."""
        offsets, troubled, segments = dict(batches.offsets), dict(batches.troubled), tuple[str, ...]()
        if with_plan:
            plan = batches.newest(batches.statistics)
            version, segments = plan.version, plan.segments
        return cls(offsets, batches.published(version), batches.last, troubled, batches.clock(), segments)


@dataclass
class BackfillRun:
    """Queries with the same part of the logs to evaluate."""

    home: Home
    sets: Path
    segment: str
    folder: Path
    queries: tuple[int, ...]
    version: int
    begin: Offsets
    """The last entry of each stream before the start."""
    live: Offsets
    """The last entry before the first micro-batch of the queries."""
    shown: Offsets
    """The offsets up to which the results are in the table."""
    follows: bool
    """Whether the queries join documents. Then the run continues until no document from before `live` can be joined."""
    reports: bool
    """Whether its progress is awaited, even without results."""
    time: BackfillEventTime
    is_endless: bool = False
    """Whether windows never end, so that the state of the past is handed over to the job."""
    loaded: list[StateFile] | None = None
    """That state, once it is ready."""
    at: Offsets = field(default_factory=dict)
    watermarks: Mapping[int, float] = field(default_factory=dict)
    _steps: int = 0
    _before: list[StateFile] = field(default_factory=list)
    """The state of documents from before `live`, separate from that of later ones."""
    _since: list[StateFile] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.at = dict(self.begin if self.follows else self.shown or self.begin)
        self.state = self.folder / "state"
        self.state.mkdir(parents=True, exist_ok=True)

    @property
    def rows(self) -> Path:
        """The folder with the results of the last step."""
        return self.folder / "rows"

    def goal(self, offsets: Mapping[str, int]) -> Offsets:
        """The offsets at which the run has caught up with a job at `offsets`."""
        return {id: offsets.get(id, 0) for id in self.live} if self.follows else self.live

    def left(self, offsets: Mapping[str, int]) -> int:
        """The number of entries left to evaluate."""
        return sum(upto - self.at[id] for id, upto in self.goal(offsets).items())

    def is_over(self, offsets: Mapping[str, int]) -> bool:
        return self.needs_no_past and not self.left(offsets)

    @property
    def needs_no_past(self) -> bool:
        """Whether no document from before `live` can be joined any more, or the job has got the state for that."""
        return (not self._before or self.loaded is not None) and not self._is_behind(self.live)

    @property
    def repeats(self) -> bool:
        """Whether it evaluates entries again whose results are in the table."""
        return self._is_behind(self.shown)

    @property
    def must_load(self) -> bool:
        """Whether it is time to prepare the state for the job."""
        return self.is_endless and self.loaded is None and bool(self._before) and not self._is_behind(self.live)

    def step(self, job: JobSnapshot) -> Summary:
        """Evaluates some more entries and writes the results to `rows`, or prepares the state for the job."""
        shutil.rmtree(self.rows, ignore_errors=True)
        if self.must_load:
            folder = self.folder / "loaded"
            self.loaded = load(self.home, self.sets, job.segments, self.queries, self.begin, self.live, folder)
            self.is_endless = self.loaded is not None
            return Summary()
        repeats = self.repeats
        end = first_arrived(self.home, self.at, self._bounded(job.offsets), ENTRIES_PER_STEP)
        plan = cached_plan(self.home.plan, (self.segment,))
        watched = self.time.watched(plan, job.published)
        summary = self._matched(end, watched)
        if summary.states and not repeats:
            summary.add(self._probe(sealed_names(summary.state_files))(0))
        self.time.add(summary.lateness)
        from_before = self._is_behind(self.live)
        self.at = end
        self._retain(summary.state_files, from_before, watched, job)
        rows = {name: seal for name, seal in summary.files.items() if name.startswith(("match", "probe"))}
        return Summary() if repeats else replace(summary, files=rows, states={})

    def _matched(self, end: Offsets, watched: Mapping[int, StreamDefinition]) -> Summary:
        self._steps += 1
        task = MatchTask(
            self.home.streams,
            self.home.plan,
            (self.segment,),
            self.rows,
            self.sets,
            self.state,
            self.version,
            self._steps,
            self.time.marks(watched),
            sees_all=True,
        )
        return task(0, slices_between(self.at, end))

    def _probe(self, new: SealedNames) -> ProbeTask:
        old = sealed_names((*self._before, *self._since))
        return ProbeTask(
            self.home.plan, (self.segment,), self.state, new, old, self.rows, self.sets, parts=1, batch=self._steps
        )

    def _is_behind(self, offsets: Mapping[str, int]) -> bool:
        return any(self.at[id] < upto for id, upto in offsets.items())

    def _bounded(self, offsets: Mapping[str, int]) -> Offsets:
        """The latest end of a step: entries before `live`, and entries with results in the table, are separate
        steps.
        """
        goal = self.goal(offsets)
        for bound in (self.live, self.shown):
            if self._is_behind(bound):
                goal = {id: min(upto, bound[id]) for id, upto in goal.items()}
        return goal

    def _retain(
        self, new: list[StateFile], from_before: bool, watched: Mapping[int, StreamDefinition], job: JobSnapshot
    ) -> None:
        """Retains the state that later documents may join."""
        (self._before if from_before else self._since).extend(new)
        offsets = dict(self.at)
        watermarks = self.time.watermarks(watched, offsets, job.published, job.last, job.troubled, job.now, 0)
        self.watermarks = watermarks.seen()
        if not self._before and not self._since:
            return
        stages = cached_plan(self.home.plan, (self.segment,)).stages
        needed = Retained(self.state, stages, [*self._before, *self._since]).needed(watermarks)
        self._before = Retained(self.state, stages, self._before).merged(2 * self._steps, needed)
        self._since = Retained(self.state, stages, self._since).merged(2 * self._steps + 1, needed)
        retained = {file.name for file in (*self._before, *self._since)}
        for path in self.state.iterdir():
            if path.name not in retained:
                path.unlink()

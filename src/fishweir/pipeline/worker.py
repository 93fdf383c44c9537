"""The match task of a worker: reads its slices of the logs, matches, keeps state, writes results.

In: slices. Out: one file of result rows, one of entries set aside, the state that later documents may join, and a
summary for the driver. All files are named by micro-batch and partition. The task is stateless: its output depends only
on the log, the segments and the micro-batch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from pathlib import Path

from fishweir.algebra.nodes import Source, sources_of
from fishweir.evaluate.group import Batch, State
from fishweir.evaluate.plan.plan import Plan, SourcePlan, cached_plan, cached_source_plan, selection_rows
from fishweir.evaluate.witnesses.shared_paths import FoundTables
from fishweir.pipeline.chunks import Chunk, read_chunk
from fishweir.pipeline.home import open_log
from fishweir.pipeline.lateness import Lateness, observe
from fishweir.pipeline.offsets import LogSlice
from fishweir.pipeline.relaxing import relaxed_paths, relaxed_rows
from fishweir.pipeline.shed_levels import levels_in, turns_of
from fishweir.pipeline.states import SUFFIX, write_states
from fishweir.pipeline.summary import Summary
from fishweir.pipeline.writer import ResultWriter, write_aside, write_shed
from fishweir.records import dataclass
from fishweir.shedding.decision import LEFT_OUT, StreamShed

DOCUMENTS_AT_ONCE = 1_000
TUPLES_AT_ONCE = 65_536


@dataclass(frozen=True)
class MatchTask:
    """The work of every partition. It is small, since it is sent with every micro-batch."""

    streams: Path
    plan: Path
    segments: tuple[str, ...]
    folder: Path
    sets: Path
    state: Path
    version: int
    batch: int
    marks: Mapping[int, tuple[float, float]]
    """For the streams whose lateness is observed: the front, and the time before which items are late (event_time.py).
    """
    shedding: Mapping[int, StreamShed] = field(default_factory=dict)
    """The decisions for the streams that are shed."""
    sees_all: bool = False
    """Whether the queries see all entries, regardless of when they were registered."""
    counts: bool = True
    """Whether values are counted, which is not done in every micro-batch."""

    def __call__(self, partition: int, slices: Iterable[LogSlice]) -> Summary:
        task = _Partition(self, partition)
        for part in slices:
            task.slice(part)
        return task.finish()


@dataclass
class _Partition:
    """The processing of one partition of a micro-batch."""

    task: MatchTask
    partition: int
    summary: Summary = field(default_factory=Summary)
    kept: dict[str, list[State]] = field(default_factory=lambda: defaultdict(list))
    aside: list[tuple[int, int, str | None, str]] = field(default_factory=list)
    shed: list[tuple[int, int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.name = f"{self.task.batch:09d}-{self.partition:05d}"
        self.writer = ResultWriter(self.task.folder, self.task.sets, f"match-{self.name}")
        self.plan: Plan = cached_plan(self.task.plan, self.task.segments)

    def slice(self, part: LogSlice) -> None:
        log, task = open_log(self.task.streams, part.stream), self.task
        sources = sources_of(log.stream)
        plan = cached_source_plan(task.plan, self.plan, sources)
        shed = task.shedding.get(part.stream)
        size = TUPLES_AT_ONCE if log.stream.is_tuples else DOCUMENTS_AT_ONCE
        self.summary.offsets[str(part.stream)] = max(part.upto, self.summary.offsets.get(str(part.stream), 0))
        if shed is not None:
            size = min(TUPLES_AT_ONCE, int(size / shed.keep))  # so that about the usual number is evaluated
        for start in range(part.after, part.upto, size):
            end = min(start + size, part.upto)
            levels = levels_in(log, start, end, shed)
            self._record_shed(part.stream, levels, shed)
            without, turns = levels.get(LEFT_OUT, frozenset()), turns_of(levels, shed, plan)
            chunk = read_chunk(log, plan, start, end, without, turns, relaxed_paths(plan, shed))
            batch = self._evaluate(part, chunk, plan, sources, start // size)
            for rows in relaxed_rows(plan, batch, shed, levels) if shed is not None else ():
                self.writer.write(rows)

    def _record_shed(self, stream: int, levels: Mapping[int, frozenset[int]], shed: StreamShed | None) -> None:
        """Records the entries that are left out and those with omitted patterns."""
        for level, numbers in levels.items():
            if level < 0 or (shed and not shed.levels[level].is_full):
                self.shed += [(stream, number, level) for number in sorted(numbers)]
                counts = self.summary.shed if level == LEFT_OUT else self.summary.cut
                counts[str(stream)] = counts.get(str(stream), 0) + len(numbers)

    def _evaluate(
        self, part: LogSlice, chunk: Chunk, plan: SourcePlan, sources: tuple[Source, ...], number: int
    ) -> Batch:
        task, stream = self.task, str(part.stream)
        self.aside += [(part.stream, *entry) for entry in chunk.aside]
        batch = chunk.batch(part.stream, sources, task.version)
        if task.sees_all:
            batch = replace(batch, since=task.version)
        counted = plan.count(batch.witnesses, task.batch + number) if task.counts else {}
        done = Summary(len(batch), 0, len(chunk.aside), {}, {}, counted)
        done.walked[stream] = plan.counters(len(batch), batch.witnesses)
        if isinstance(batch.witnesses, FoundTables) and batch.witnesses.left_out:
            done.elements[stream] = batch.witnesses.left_out
        if part.stream in task.marks:
            done.lateness[stream] = self._observed(part.stream, batch)
        self.summary.add(done)
        self._keep(self._matched(plan, batch))
        return batch

    def _matched(self, plan: SourcePlan, batch: Batch) -> Batch:
        """Writes the results of selections, and adds the matches that other kinds keep to the batch."""
        sides = []
        for segment, group, matches in plan.match(batch.witnesses):
            sides.append(matches.sides)
            if len(matches):
                self.writer.write(selection_rows(batch, segment, group, matches))
        return batch.matched(sides)

    def _observed(self, stream: int, batch: Batch) -> Lateness:
        front, late = self.task.marks[stream]
        before = self.summary.lateness.get(str(stream), Lateness())
        return observe(batch.times, batch.arrivals, max(front, before.front), late)

    def _keep(self, batch: Batch) -> None:
        for kind, stage in self.plan.stages.items():
            if stage.reads(batch.sources):
                kept = stage.keep(batch)
                if kept is not None:
                    self.kept[kind].append(kept)

    def finish(self) -> Summary:
        self.summary.files |= self.writer.close()
        self.summary.files |= write_aside(self.task.folder, self.name, self.aside)
        self.summary.files |= write_shed(self.task.folder, self.name, self.shed)
        self.summary.matches += self.writer.results
        self.summary.fired = self.writer.fired
        self._write_states()
        return self.summary

    def _write_states(self) -> None:
        """Writes the state that this micro-batch and later ones probe."""
        states = {kind: self.plan.stages[kind].merged(kept) for kind, kept in self.kept.items()}
        if states:
            name = f"{self.name}{SUFFIX}"
            self.summary.states[name] = write_states(self.task.state / name, states)

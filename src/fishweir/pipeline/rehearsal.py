"""The rehearsal of a segment: prepares what its first micro-batch would otherwise wait for.

In: a segment that is not in force yet, and the newest evaluated entries. Out: only warm caches of the process.
The file is read and verified, its pages are loaded, its operators are created, and they evaluate the entries, whatever
their kind, so that indexes and tables that are built on first use exist. Results are thrown away.

It runs in a thread, concurrently with the tasks of micro-batches. They use nothing that it changes: the segment is new,
and a separate automaton walks the documents. The paths of the segment therefore still have to be added to the automaton
of the job.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fishweir.algebra.nodes import sources_of
from fishweir.evaluate.group import Batch, State
from fishweir.evaluate.plan.plan import Plan, SourcePlan, cached_segment
from fishweir.evaluate.witnesses.shared_paths import SharedPaths
from fishweir.pipeline.chunks import read_chunk
from fishweir.pipeline.home import Home, open_log
from fishweir.pipeline.offsets import LogSlice

logger = logging.getLogger("fishweir.plan")

ENTRIES = 20
"""Number of entries of each stream that are evaluated."""


def newest_entries(offsets: Mapping[str, int]) -> tuple[LogSlice, ...]:
    """The last entries of each stream that have been evaluated."""
    return tuple(LogSlice(int(id), max(0, upto - ENTRIES), upto) for id, upto in offsets.items() if upto)


@dataclass(frozen=True)
class Rehearsal:
    streams: Path
    plan: Path
    segment: str
    slices: tuple[LogSlice, ...]

    @classmethod
    def of(cls, home: Home, segment: str, offsets: Mapping[str, int]) -> Rehearsal:
        return cls(home.streams, home.plan, segment, newest_entries(offsets))

    def __call__(self) -> None:
        """Never fails: if there is a real problem, the first micro-batch reports it."""
        try:
            self._evaluate(Plan([cached_segment(self.plan, self.segment)]))
        except Exception as error:
            logger.info("segment %s could not be rehearsed: %s", self.segment, error)

    def _evaluate(self, plan: Plan) -> None:
        kept: dict[str, list[State]] = defaultdict(list)
        for part in self.slices:
            batch = self._matched(plan, part)
            for kind, stage in plan.stages.items():
                state = stage.keep(batch) if stage.reads(batch.sources) else None
                kept[kind] += [state] if state is not None else []
        for kind, states in kept.items():
            stage = plan.stages[kind]
            for _ in stage.probe([stage.merged(states)], (), 0, 1) if states else ():
                pass

    def _matched(self, plan: Plan, part: LogSlice) -> Batch:
        log = open_log(self.streams, part.stream)
        sources = sources_of(log.stream)
        own = SourcePlan(plan, sources, SharedPaths)
        batch = read_chunk(log, own, part.after, part.upto).batch(part.stream, sources, 0)
        return batch.matched([matches.sides for _, _, matches in own.match(batch.witnesses)])

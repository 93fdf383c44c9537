"""The probe task of a worker: looks up its part of the new documents in the state.

In: the state files of the micro-batch and the retained ones. Out: one file of result rows, named by micro-batch and
part, the state that later micro-batches need of these results, and a summary for the driver.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from fishweir.evaluate.group import State
from fishweir.evaluate.plan.plan import cached_plan
from fishweir.evaluate.results import ResultRows
from fishweir.pipeline.states import SUFFIX, SealedNames, forget_states, listed_states, sealed_names, write_states
from fishweir.pipeline.summary import Summary
from fishweir.pipeline.writer import ResultWriter
from fishweir.records import dataclass


@dataclass(frozen=True)
class ProbeTask:
    """The second stage, which runs if some query joins documents: it joins those of a micro-batch with the retained
    ones. `new` are the files of the micro-batch, `old` the files retained before it, each with its seal.
    """

    plan: Path
    segments: tuple[str, ...]
    state: Path
    new: SealedNames
    old: SealedNames
    folder: Path
    sets: Path
    parts: int
    batch: int

    def behind(self, match: Callable[[], Summary]) -> Summary:
        """Runs both stages of a micro-batch with one part: the state of the first stays in memory for the second."""
        both = Summary()
        both.add(match())
        if both.states:
            both.add(replace(self, new=sealed_names(both.state_files))(0))
        return both

    def __call__(self, part: int) -> Summary:
        forget_states(self.state, but={name for name, _ in (*self.new, *self.old)})
        plan = cached_plan(self.plan, self.segments)
        fresh, old = ([listed_states(self.state, *one) for one in some] for some in (self.new, self.old))
        writer = ResultWriter(self.folder, self.sets, f"probe-{self.batch:09d}-{part:05d}")
        kept: dict[str, State] = {}
        for kind, stage in plan.stages.items():
            new = [states[kind] for states in fresh if kind in states]
            before = [states[kind] for states in old if kind in states]
            for found in stage.probe(new, before, part, self.parts) if new else ():
                if isinstance(found, ResultRows):
                    writer.write(found)
                else:
                    kept[kind] = found
        files = writer.close()
        done = Summary(matches=writer.results, files=files, fired=writer.fired)
        if kept:
            name = f"{self.batch:09d}-probe-{part:05d}{SUFFIX}"
            done.states[name] = write_states(self.state / name, kept)
        return done

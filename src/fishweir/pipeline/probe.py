"""What a worker does for joins: probe what was kept for its part of the new documents.

In: the state files of the micro-batch and those retained. Out: one file of result rows under a name given by
micro-batch and part, and a summary for the driver.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fishweir.evaluate.group import Kept
from fishweir.evaluate.plan.plan import cached_plan
from fishweir.pipeline.states import CURRENT, KEPT, States, cached_states
from fishweir.pipeline.summary import Summary
from fishweir.pipeline.writer import ResultWriter


@dataclass(frozen=True)
class ProbeTask:
    """`new` are the files of the micro-batch, `old` those retained before it."""

    plan: Path
    segments: tuple[str, ...]
    state: Path
    new: tuple[str, ...]
    old: tuple[str, ...]
    folder: Path
    sets: Path
    parts: int

    def __call__(self, part: int) -> Summary:
        plan = cached_plan(self.plan, self.segments)
        old = [cached_states(self.state / name) for name in self.old]
        writer = ResultWriter(self.folder, self.sets, f"probe-{part:05d}")
        for kind, stage in plan.stages.items():
            new = self._kept(kind)
            before = [states[kind] for states in old if kind in states]
            for rows in stage.probe(new, before, part, self.parts) if new else ():
                writer.write(rows)
        return Summary(matches=writer.results, files=writer.close())

    def _kept(self, kind: str) -> list[Kept]:
        """What each partition of the micro-batch has kept of a kind."""
        states, current = (self._files(suffix) for suffix in (KEPT, CURRENT))
        names = sorted({*states, *current})
        kept = [Kept(states.get(name, {}).get(kind), current.get(name, {}).get(kind)) for name in names]
        return [one for one in kept if one != Kept()]

    def _files(self, suffix: str) -> dict[str, States]:
        names: Sequence[str] = [name for name in self.new if name.endswith(suffix)]
        return {name.removesuffix(suffix): cached_states(self.state / name) for name in names}

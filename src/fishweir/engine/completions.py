"""`make up within INTERVAL`, for incomplete results: they are constructed again in full when there is time.

Outputs are constructed from the log on demand, so nothing of a result with omitted patterns is lost. A commit that
*completes* an earlier micro-batch has no files: its results are the incomplete ones of that micro-batch. Readers find
them here instead of there; subscribers get them as late results.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from fishweir.pipeline.background_work import BackgroundWork
from fishweir.pipeline.batch import MicroBatches
from fishweir.pipeline.commits import Commit, ResultsTable
from fishweir.pipeline.home import Home, open_log
from fishweir.pipeline.offsets import is_waiting
from fishweir.records import dataclass


@dataclass
class Completions:
    """Called between micro-batches: completes one if neither entries nor outputs wait."""

    home: Home
    table: ResultsTable
    clock: Callable[[], float] = time.time

    @property
    def working(self) -> bool:
        return next(self._left(), None) is not None

    def __call__(self, batches: MicroBatches) -> bool:
        left = next(self._left(), None)
        if left is None or is_waiting(self.home, batches.offsets):
            return False
        if batches.shedder is not None and batches.shedder.behind():
            return False
        batches.commit_completing(left)
        return True

    def hidden(self, batches: MicroBatches, version: int) -> list[int]:
        return []

    def _left(self) -> Iterator[Commit]:
        for commit in self.table.known_cut():
            intervals = [open_log(self.home.streams, int(id)).stream.make_up for id in commit.cut]
            if any(one is not None and self.clock() - commit.at <= one for one in intervals):
                yield commit


@dataclass(frozen=True)
class CombinedWork:
    """Combines several kinds of work that commit between micro-batches."""

    parts: tuple[BackgroundWork, ...]

    @property
    def working(self) -> bool:
        return any(part.working for part in self.parts)

    def __call__(self, batches: MicroBatches) -> bool:
        """Calls each part: one may have to read what another has committed before the next commit."""
        done = [part(batches) for part in self.parts]
        return any(done)

    def hidden(self, batches: MicroBatches, version: int) -> list[int]:
        return [number for part in self.parts for number in part.hidden(batches, version)]

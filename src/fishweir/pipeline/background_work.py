"""Background work that also commits results: backfills, and the completion of published streams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from fishweir.pipeline.states import StateFile
from fishweir.pipeline.summary import Summary
from fishweir.records import dataclass

if TYPE_CHECKING:
    from fishweir.pipeline.batch import MicroBatches


class BackgroundWork(Protocol):
    """Other work that commits results. The committing thread calls it between micro-batches."""

    @property
    def working(self) -> bool:
        """Whether work is in progress that must finish before the job counts as idle."""

    def __call__(self, batches: MicroBatches) -> bool:
        """Returns whether anything was done."""

    def hidden(self, batches: MicroBatches, version: int) -> list[int]:
        """The queries of a version whose results in the next micro-batch are hidden because this work commits them."""


class NoBackgroundWork:
    working = False

    def __call__(self, batches: MicroBatches) -> bool:
        return False

    def hidden(self, batches: MicroBatches, version: int) -> list[int]:
        return []


@dataclass(frozen=True)
class BackfillResult:
    """The results of a backfill for some queries, its progress, and whether it is complete."""

    queries: Sequence[int]
    version: int
    summary: Summary
    upto: dict[str, int]
    watermarks: Mapping[int, float]
    is_over: bool
    states: Sequence[StateFile] = ()
    """The state of its documents, which the job takes over."""

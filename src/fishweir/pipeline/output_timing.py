"""Measures the time spent on constructing outputs outside micro-batches, for the shedder."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from fishweir.records import dataclass

KEPT = 256


@dataclass(frozen=True, slots=True)
class OutputTiming:
    """The time for constructing the outputs of a micro-batch's documents, for deliveries or for published streams."""

    batch: int
    documents: int
    seconds: float
    published: bool = False


@dataclass
class Count:
    """A measurement in progress; `is_wanted` may be cleared until it ends."""

    is_wanted: bool = True


class OutputTimer:
    """Collects timings; constructing outputs may take longer than the following micro-batches."""

    def __init__(self) -> None:
        self._done: deque[OutputTiming] = deque(maxlen=KEPT)  # bounded, since without a shedder they are never taken
        self._inside = threading.local()

    @contextmanager
    def counting(self, batch: int, documents: int, published: bool = False) -> Iterator[Count]:
        """Measures the time that the thread spends. A nested measurement is part of the outer one."""
        if getattr(self._inside, "is_counting", False):
            yield Count()
            return
        began, self._inside.is_counting, count = time.perf_counter(), True, Count()
        try:
            yield count
        finally:
            self._inside.is_counting = False
            if count.is_wanted:
                self._done.append(OutputTiming(batch, documents, time.perf_counter() - began, published))

    def take(self) -> list[OutputTiming]:
        """The new timings, one per micro-batch; thread-safe."""
        found: dict[tuple[int, bool], OutputTiming] = {}
        for one in [self._done.popleft() for _ in range(len(self._done))]:
            before = found.get((one.batch, one.published))
            found[one.batch, one.published] = replace(one, seconds=one.seconds + before.seconds) if before else one
        return list(found.values())

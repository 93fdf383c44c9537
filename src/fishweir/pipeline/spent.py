"""The time that is spent on constructing outputs, beside the micro-batches: the shedder counts it in."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Spent:
    """Time that constructing outputs took, for deliveries and for published streams."""

    def __init__(self) -> None:
        self._seconds = 0.0

    @contextmanager
    def counting(self) -> Iterator[None]:
        began = time.perf_counter()
        try:
            yield
        finally:
            self._seconds += time.perf_counter() - began

    def take(self) -> float:
        seconds, self._seconds = self._seconds, 0.0
        return seconds

"""A job in the background of a program."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Background(threading.Thread):
    """A thread that keeps what its function raised."""

    def __init__(self, function: Callable[[], None]) -> None:
        super().__init__(name="fishweir", daemon=True)
        self.function = function
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            self.function()
        except BaseException as failure:
            self.failure = failure

    def end(self) -> None:
        self.join()
        if self.failure is not None:
            raise self.failure

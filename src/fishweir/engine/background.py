"""Runs a job in the background of a program."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import suppress


class Background(threading.Thread):
    """A thread that stores the exception of its function."""

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


def start_in_thread(spark: Callable[[], object]) -> threading.Thread | None:
    """Starts a session in a thread, unless Spark runs in this process: then the caller looks up its session. A
    concurrent request for the session waits for it, and gets the error if there is one.
    """
    pyspark = sys.modules.get("pyspark")
    if pyspark is not None and pyspark.SparkContext._active_spark_context is not None:
        return None

    def begin() -> None:
        with suppress(Exception):
            spark()

    thread = threading.Thread(target=begin, name="spark", daemon=True)
    thread.start()
    return thread

"""The Spark session of a weir: the caller's, or one that is started on demand."""

from __future__ import annotations

import threading
from functools import cached_property
from typing import TYPE_CHECKING

from fishweir.engine.background import start_in_thread

if TYPE_CHECKING:
    from fishweir.pipeline.spark.session import SparkContext, SparkSession


class OnSpark:
    _spark: SparkSession | None
    """The caller's session."""
    _starting: threading.Thread | None = None

    @cached_property
    def context(self) -> SparkContext:
        """The context that runs tasks. It is available seconds before a session, which the job does not need."""
        from fishweir.pipeline.spark.session import open_context

        return self._spark.sparkContext if self._spark else open_context()

    @cached_property
    def spark(self) -> SparkSession:
        from fishweir.pipeline.spark.session import open_session

        return self._spark or open_session()

    def _prepare(self) -> None:
        """Starts Spark in parallel with the rest of the startup: the JVM takes longest."""
        if self._spark is None and "context" not in self.__dict__:
            self._starting = start_in_thread(lambda: self.context)

    def _stop_spark(self) -> None:
        """Stops Spark if this weir started it."""
        if self._starting is not None:
            self._starting.join()
        started = self.__dict__.get("spark") or self.__dict__.get("context")
        if self._spark is None and started is not None:
            started.stop()

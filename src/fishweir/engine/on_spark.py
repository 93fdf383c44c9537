"""The Spark session of a weir: the caller's, or one that is started on demand."""

from __future__ import annotations

import threading
from functools import cached_property
from typing import TYPE_CHECKING

from fishweir.engine.background import start_beside

if TYPE_CHECKING:
    from fishweir.pipeline.spark.session import SparkContext, SparkSession


class OnSpark:
    _spark: SparkSession | None
    """The caller's."""
    _starting: threading.Thread | None = None

    @cached_property
    def context(self) -> SparkContext:
        """What runs tasks: there seconds before a session is, which the job can do without."""
        from fishweir.pipeline.spark.session import open_context

        return self._spark.sparkContext if self._spark else open_context()

    @cached_property
    def spark(self) -> SparkSession:
        from fishweir.pipeline.spark.session import open_session

        return self._spark or open_session()

    def _prepare(self) -> None:
        """Starts Spark beside what else a run needs first: the JVM takes longest."""
        if self._spark is None and "context" not in self.__dict__:
            self._starting = start_beside(lambda: self.context)

    def _stop_spark(self) -> None:
        """Where this weir started it."""
        if self._starting is not None:
            self._starting.join()
        started = self.__dict__.get("spark") or self.__dict__.get("context")
        if self._spark is None and started is not None:
            started.stop()

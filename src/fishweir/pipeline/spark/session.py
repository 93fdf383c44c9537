"""The embedded Spark session: local, quiet, on whatever Java there is or is brought."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from fishweir.java import ensure_java

__all__ = ["DataFrame", "SparkSession", "open_plain_session", "open_session"]

LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    # The work is done in Python: a second compiler in the JVM costs more than it gives. With the first alone there is
    # little room for compiled code unless one asks for more, and when it is full nothing is compiled any more.
    "spark.driver.extraJavaOptions": (
        f"-Dlog4j2.configurationFile={LOG_SETTINGS} -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -Xss4m"
    ),
    "spark.driver.memory": "2g",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.streaming.pollingDelay": "50ms",
    "spark.sql.streaming.minBatchesToRetain": "20",
    # Python workers are forked from one daemon that has all modules loaded. Those of SQL's functions and those of RDDs
    # would have one each, if they differed in how tracebacks are shown.
    "spark.python.daemon.module": "fishweir.pipeline.spark.daemon",
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
}


def open_session(master: str | None = None) -> SparkSession:
    """A session of our own; one that is already active is taken as it is. The job holds all slots but one (crew.py), so
    there is one more than there are cores."""
    active = SparkSession.getActiveSession()
    return active if active is not None else _open(master or f"local[{len(os.sched_getaffinity(0)) + 1}]", SETTINGS)


def open_plain_session() -> SparkSession:
    """One for Spark's own work, to compare with: the JVM with both its compilers, a partition for each core."""
    own = {
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={LOG_SETTINGS}",
        "spark.sql.shuffle.partitions": str(os.cpu_count()),
        "spark.driver.memory": "4g",
    }
    return _open("local[*]", SETTINGS | own)


def _open(master: str, settings: Mapping[str, str]) -> SparkSession:
    os.environ["JAVA_HOME"] = ensure_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).appName("fishweir")
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()

"""The embedded Spark: local, quiet, with the installed Java or a private one."""

from __future__ import annotations

import os
import sys
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.sql import DataFrame, SparkSession

from fishweir.java import ensure_java
from fishweir.pipeline.spark.jvm import LOG_SETTINGS, SETTINGS, gateway_of_jvm, start_jvm

__all__ = ["DataFrame", "SparkContext", "SparkSession", "open_context", "open_plain_session", "open_session"]


def open_context(master: str | None = None) -> SparkContext:
    """A context that runs tasks, without a session; an existing one is used as it is. The job occupies all slots but
    one (worker_pool.py), so there is one more slot than there are cores.
    """
    settings = SparkConf().setMaster(master or f"local[{len(os.sched_getaffinity(0)) + 1}]").setAppName("fishweir")
    settings.setAll(list(SETTINGS.items()))
    start_jvm()
    os.environ.update(gateway := gateway_of_jvm())
    try:
        return SparkContext.getOrCreate(settings)
    finally:
        for name in gateway:  # child processes must start their own JVMs
            os.environ.pop(name, None)


def open_session(master: str | None = None) -> SparkSession:
    """A session for Spark SQL; an active one is used as it is."""
    active = SparkSession.getActiveSession()
    if active is None:
        open_context(master)
    return active or SparkSession.builder.getOrCreate()


def open_plain_session() -> SparkSession:
    """A session for plain Spark workloads in comparisons: the JVM with both compilers, one partition per core."""
    own: dict[str, Any] = {
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={LOG_SETTINGS}",
        "spark.sql.shuffle.partitions": str(os.cpu_count()),
        "spark.driver.memory": "4g",
    }
    os.environ["JAVA_HOME"] = ensure_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    return SparkSession.builder.master("local[*]").appName("fishweir").config(map=SETTINGS | own).getOrCreate()

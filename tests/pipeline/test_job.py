"""The job on Spark: its loop works before Spark's query, which represents a long-running job, has started."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import pytest

from fishweir.engine.weir import Weir
from fishweir.pipeline.spark import job
from fishweir.pipeline.spark.job import SparkJob


def test_a_long_running_job_is_one_query_of_spark(
    spark_weir: Weir,
    spark,
    monkeypatch: pytest.MonkeyPatch,  # type: ignore[no-untyped-def]
) -> None:
    monkeypatch.setattr(job, "STAYS_ANYWAY", 0.0)
    spark_weir.execute("create stream R (x int); create query q as select x from R where x > 3")
    spark_weir.publish("R", [{"x": 5}])
    spark_weir.start()
    spark_weir.wait_idle()
    assert spark_weir._runner is not None
    running = spark_weir._runner.job
    assert isinstance(running, SparkJob)
    assert running.framed.wait(600)
    assert [query.name for query in spark.streams.active] == ["fishweir home"]
    spark_weir.publish("R", [{"x": 6}])
    spark_weir.wait_idle()
    spark_weir.stop()
    assert spark.streams.active == []
    assert [result.output["x"] for result in spark_weir.results("q")] == [5, 6]


def test_a_short_run_needs_no_session(spark_weir: Weir, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("STAYS", "STAYS_ANYWAY"):
        monkeypatch.setattr(job, name, math.inf)
    spark_weir.execute("create stream R (x int); create query q as select x from R where x > 3")
    for x in (5, 6):
        spark_weir.publish("R", [{"x": x}])
        spark_weir.run(until_idle=True)
    assert [result.output["x"] for result in spark_weir.results("q")] == [5, 6]
    assert "spark" not in spark_weir.__dict__


def test_an_unused_jvm_ends_with_its_process() -> None:
    begun = "from fishweir.pipeline.spark.jvm import _started, start_jvm; start_jvm(); print(_started[0].process.pid)"
    pid = int(subprocess.run([sys.executable, "-c", begun], capture_output=True, text=True, check=True).stdout)
    assert not _lives(pid)


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def test_the_context_uses_the_started_jvm() -> None:
    program = """
import os
from fishweir.pipeline.spark.jvm import PORT, start_jvm
start_jvm()
from fishweir.pipeline.spark.session import SparkContext, open_context
context = open_context("local[1]")
print(context.parallelize([1, 2], 1).sum(), SparkContext._gateway.proc, PORT in os.environ)
context.stop()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["3", "None", "False"]

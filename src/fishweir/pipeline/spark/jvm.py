"""Starts the processes of the embedded Spark in advance: the JVM, which takes longest, and the process from which
workers are forked. The JVM is started before any other module is loaded.

pyspark would start the JVM when it creates the context, after all imports. It also accepts a running JVM, by the port
and secret in the environment, which it reads once. The process is started as pyspark does (pyspark/java_gateway.py),
and like pyspark's own it ends with this process: its standard input is a pipe of this process. If it does not come up,
pyspark starts another one and reports the error.
"""

from __future__ import annotations

import atexit
import os
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from fishweir.java import ensure_java
from fishweir.pipeline.spark.class_archive import archive_of, options_of
from fishweir.pipeline.spark.daemon import PLACE
from fishweir.records import dataclass

LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")

JAVA_OPTIONS = "spark.driver.extraJavaOptions"
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    # The work is done in Python: a second compiler in the JVM costs more than it gains. With only the first compiler,
    # the default code cache is small, and once it is full, nothing more is compiled.
    JAVA_OPTIONS: (
        f"-Dlog4j2.configurationFile={LOG_SETTINGS} -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -Xss4m"
    ),
    "spark.driver.memory": "2g",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.streaming.pollingDelay": "50ms",
    "spark.sql.streaming.minBatchesToRetain": "20",
    # Python workers are forked from one daemon that has loaded all modules. The workers for SQL functions and for RDDs
    # would have separate daemons if their traceback settings differed.
    "spark.python.daemon.module": "fishweir.pipeline.spark.daemon",
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
}
LAUNCHER = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options of the short-lived process that determines the Java command line."""
PORT, SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"


@dataclass(frozen=True)
class StartedJvm:
    process: subprocess.Popen[bytes]
    folder: Path

    def gateway(self) -> dict[str, str]:
        """Port and secret, once the JVM is up; empty if it has ended instead."""
        file = self.folder / "gateway"
        while not file.exists():
            if self.process.poll() is not None:
                return {}
            time.sleep(0.005)
        port, length = struct.unpack(">ii", (raw := file.read_bytes())[:8])
        return {PORT: str(port), SECRET: raw[8 : 8 + length].decode()}


_started: list[StartedJvm] = []
_workers: list[subprocess.Popen[bytes]] = []


def spark_home() -> str | None:
    """The folder of Spark: SPARK_HOME, or that of the package pyspark."""
    spec = find_spec("pyspark")
    return os.environ.get("SPARK_HOME") or (str(Path(spec.origin).parent) if spec and spec.origin else None)


def start_jvm(settings: Mapping[str, str] | None = None) -> None:
    """Starts the JVM without waiting for it, unless this process has one or is starting it."""
    if _started or PORT in os.environ or _has_gateway():
        return
    java = os.environ["JAVA_HOME"] = ensure_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    home = spark_home()
    if home is None:
        return
    if settings is None:
        archived = options_of(archive_of(java, home))
        settings = SETTINGS | {JAVA_OPTIONS: f"{SETTINGS[JAVA_OPTIONS]} {archived}"}
    folder = Path(tempfile.mkdtemp(prefix="fishweir-jvm-"))
    given = [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
    rest = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell"))
    own = {"SPARK_CONNECT_MODE": "0", "_PYSPARK_DRIVER_CONN_INFO_PATH": str(folder / "gateway")}
    if os.environ["PYSPARK_PYTHON"] == sys.executable:
        own[PLACE] = str(folder / "workers")
    process = subprocess.Popen(
        [Path(home, "bin", "spark-submit"), *given, *rest],
        stdin=subprocess.PIPE,
        env={"SPARK_LAUNCHER_OPTS": LAUNCHER} | os.environ | own,
        preexec_fn=_ignore_interrupts,
    )
    _started.append(StartedJvm(process, folder))
    atexit.register(_end)


def gateway_of_jvm() -> dict[str, str]:
    """The gateway parameters that pyspark needs for the started JVM, if any; waits until it is up."""
    if not _started or _has_gateway():
        return {}
    return _started[0].gateway()


def end_jvm() -> None:
    """Ends the JVM that this process has started, and waits until it has ended."""
    process = _started[0].process
    assert process.stdin is not None, "it is a pipe"
    process.stdin.close()
    process.wait()


def start_worker_daemon() -> None:
    """Starts the process from which workers are forked, if this process started the JVM; does not wait for it."""
    if _started and not _workers and os.environ["PYSPARK_PYTHON"] == sys.executable:
        command = [
            sys.executable,
            "-m",
            "fishweir.pipeline.spark.daemon",
            "--wait",
            str(_started[0].folder / "workers"),
        ]
        one = {"OMP_NUM_THREADS": "1"}  # the setting that Spark passes to the workers of a task with one core
        pipe = subprocess.PIPE
        _workers.append(subprocess.Popen(command, stdin=pipe, env=one | os.environ, preexec_fn=_ignore_interrupts))


def _ignore_interrupts() -> None:
    """Ignores interrupts, which this process handles."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _has_gateway() -> bool:
    pyspark = sys.modules.get("pyspark")
    return pyspark is not None and pyspark.SparkContext._gateway is not None


def _end() -> None:
    """Ends a JVM that was never used, for example after the statements were refused, without waiting for its start."""
    if not _has_gateway():
        _started[0].process.kill()
    shutil.rmtree(_started[0].folder, ignore_errors=True)

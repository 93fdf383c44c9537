"""An archive of the classes that Spark loads: `python -m fishweir.pipeline.spark.class_archive`. The set-up runs it.

A JVM spends most of its start on reading and verifying some ten thousand classes of Spark. It can map them from an
archive that another JVM wrote when it ended (application class data sharing). The archive is in the cache folder. A JVM
to which it does not belong, for example because Spark has been updated since, ignores it.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path
from typing import Any

from fishweir.java import cache_folder

QUIET = "-Xlog:cds=off,cds+dynamic=off"
"""Suppresses the warning about an archive that does not fit."""


def archive_of(java_home: str, spark_home: str) -> Path:
    """The archive of one installation of Java and Spark."""
    place = hashlib.sha256(f"{java_home}\n{spark_home}".encode()).hexdigest()[:8]
    return cache_folder() / f"spark-classes-{place}.jsa"


def options_of(archive: Path) -> str:
    """The options with which a JVM uses the archive, if there is one."""
    return f"{QUIET} -XX:SharedArchiveFile={archive}" if archive.exists() and " " not in str(archive) else ""


def write(archive: Path) -> None:
    """Starts Spark, runs a small sample of the engine's work, and lets the JVM write the archive when it ends."""
    from fishweir.pipeline.spark.jvm import JAVA_OPTIONS, SETTINGS, end_jvm, start_jvm
    from fishweir.pipeline.spark.session import open_session

    archive.parent.mkdir(parents=True, exist_ok=True)
    new = archive.with_name(f".{archive.name}.{os.getpid()}")
    try:
        start_jvm(SETTINGS | {JAVA_OPTIONS: f"{SETTINGS[JAVA_OPTIONS]} {QUIET} -XX:ArchiveClassesAtExit={new}"})
        try:
            session = open_session()
            _use(session)
            session.stop()
        finally:
            end_jvm()
        if new.exists():
            new.replace(archive)
    finally:
        new.unlink(missing_ok=True)


def _use(session: Any) -> None:
    """Loads the classes of tasks in Python, of Spark SQL, of Arrow and of streaming queries."""
    session.sparkContext.parallelize(range(4), 2).map(str).collect()
    frame = session.createDataFrame([(1, "a"), (2, "b")], "n int, s string")
    frame.groupBy("n").count().join(frame, "n").toPandas()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "lines.txt").write_text("one\ntwo\n")
        lines = session.readStream.text(folder).writeStream.foreachBatch(lambda rows, _: rows.toArrow())
        lines.trigger(availableNow=True).start().awaitTermination()


def main() -> None:
    from fishweir.java import ensure_java
    from fishweir.pipeline.spark.jvm import spark_home

    home = spark_home()
    if home is not None:
        write(archive_of(ensure_java(), home))


if __name__ == "__main__":
    main()

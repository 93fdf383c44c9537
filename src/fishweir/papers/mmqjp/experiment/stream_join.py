"""Runs Spark's own stream-stream join on values, in a separate process.

In: a folder of Parquet files of rows (time, leaf, value), one per micro-batch, the leaves, and the output path. Out:
JSON with the seconds after the first two micro-batches and the pairs found by leaf. Fishweir's session disables the
JVM's second compiler, which Spark's join needs. Here the JVM has both, and there is a partition for each core.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

WARM = 2
"""Number of warm-up micro-batches of both contestants: workers start, kernels and plans are compiled or loaded."""


def stream_join(folder: Path, leaves: Sequence[str]) -> tuple[float, dict[str, int]]:
    """Runs the join. Returns seconds and pairs."""
    out = folder / "out.json"
    subprocess.run([sys.executable, "-m", __name__, str(folder), str(out), *leaves], check=True)
    measured = json.loads(out.read_text())
    return measured["seconds"], measured["pairs"]


def main(folder: Path, out: Path, leaves: Sequence[str]) -> None:
    from fishweir.pipeline.spark.session import open_plain_session

    session = open_plain_session()
    try:
        seconds, pairs = _joined(session, folder, leaves)
    finally:
        session.stop()
    out.write_text(json.dumps({"seconds": seconds, "pairs": pairs}))


def _joined(session: Any, folder: Path, leaves: Sequence[str]) -> tuple[float, dict[str, int]]:
    def read(prefix: str) -> Any:
        stream = session.readStream.schema("time double, leaf string, value string").option("maxFilesPerTrigger", 1)
        frame = stream.parquet(str(folder / "in"))
        return frame.selectExpr(*(f"{name} as {prefix}{name}" for name in ("time", "leaf", "value")))

    left, right = read("l"), read("r")
    on = (left.lleaf == right.rleaf) & (left.lvalue == right.rvalue) & (left.ltime < right.rtime)
    counts = [f"count_if(lleaf = '{leaf}') as {leaf}" for leaf in leaves]
    pairs, ended, started = dict.fromkeys(leaves, 0), [], time.perf_counter()

    def count(frame: Any, _: int) -> None:
        (found,) = frame.selectExpr(*counts).collect()
        for leaf in leaves:
            pairs[leaf] += found[leaf]
        ended.append(time.perf_counter())

    query = (
        left.join(right, on).writeStream.foreachBatch(count).option("checkpointLocation", str(folder / "check")).start()
    )
    try:
        query.processAllAvailable()
    finally:
        query.stop()
    return ended[-1] - (ended[WARM - 1] if len(ended) > WARM else started), pairs


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])

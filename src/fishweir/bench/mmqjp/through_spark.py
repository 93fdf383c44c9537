"""The whole way: the job with all its queries against Spark's own stream-stream join on the values alone.

Fishweir: items published to a stream, a hundred thousand join queries, the real job until it is idle; documents by the
seconds of its micro-batches (reading, parsing, matching, joining, writing results and state). Spark: the same items as
rows (document, leaf, value) in Parquet files, one file per micro-batch, joined with themselves on leaf and value, pairs
counted. Spark finds the pairs with an equal value at an equal leaf; which queries want them nobody tells it.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from lxml import etree

from fishweir.algebra.documents import Document
from fishweir.bench.mmqjp.work import LEAVES

Arrivals = Sequence[tuple[Any, Document]]


@dataclass(frozen=True)
class Throughput:
    """Documents a second of the micro-batches after the first, which warms up."""

    documents: int
    seconds: float
    pairs: int

    @property
    def rate(self) -> float:
        return self.documents / self.seconds


def queries_text(
    rows: Sequence[tuple[Sequence[str], Sequence[str]]], source: str = "S", root: str = "item"
) -> list[str]:
    """XSCL of value joins between leaves, without end."""
    texts = []
    for number, (lefts, rights) in enumerate(rows):
        sides = [
            f"{source}/{root}" + "".join(f"[{leaf}->{v}{i}]" for i, leaf in enumerate(leaves))
            for v, leaves in (("x", lefts), ("y", rights))
        ]
        edges = " AND ".join(f"x{i}=y{i}" for i in range(len(lefts)))
        texts.append(f"create query j{number} as {sides[0]} FOLLOWED BY{{{edges}, INF}} {sides[1]}")
    return texts


def by_fishweir(session: Any, texts: Sequence[str], items: Arrivals, batch: int) -> Throughput:
    import fishweir

    home = Path(tempfile.mkdtemp(prefix="fishweir-bench-"))
    try:
        with fishweir.open(home / "home", spark=session, documents_per_batch=batch) as weir:
            weir.execute("create stream S; " + ";\n".join(texts))
            bodies = [etree.tostring(document.root, encoding="unicode") for _, document in items]
            weir.publish("S", bodies, timestamps=[document.timestamp for _, document in items])
            weir.run(until_idle=True)
            commits = weir.table.commits()
            warm = commits[1:] or commits
            documents, seconds = sum(c.documents for c in warm), sum(c.seconds for c in warm)
            return Throughput(documents, seconds, sum(c.matches for c in commits))
    finally:
        shutil.rmtree(home, ignore_errors=True)


def by_spark(session: Any, items: Arrivals, batch: int, leaves: Sequence[str] = LEAVES) -> Throughput:
    folder = Path(tempfile.mkdtemp(prefix="fishweir-bench-"))
    try:
        for start in range(0, len(items), batch):
            rows = [
                {"doc": start + i, "leaf": leaf, "value": document.root.findtext(leaf) or ""}
                for i, (_, document) in enumerate(items[start : start + batch])
                for leaf in leaves
            ]
            (folder / "in").mkdir(exist_ok=True)
            pq.write_table(pa.Table.from_pylist(rows), folder / "in" / f"{start:09d}.parquet")
            time.sleep(0.01)  # files are taken in the order of their times
        return _stream_join(session, folder, len(items), batch)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _stream_join(session: Any, folder: Path, documents: int, batch: int) -> Throughput:
    def read(prefix: str) -> Any:
        stream = session.readStream.schema("doc long, leaf string, value string").option("maxFilesPerTrigger", 1)
        frame = stream.parquet(str(folder / "in"))
        return frame.selectExpr(*(f"{name} as {prefix}{name}" for name in ("doc", "leaf", "value")))

    left, right = read("l"), read("r")
    joined = left.join(right, (left.lleaf == right.rleaf) & (left.lvalue == right.rvalue)).where("ldoc < rdoc")
    pairs, seconds, started = 0, [], time.perf_counter()

    def count(frame: Any, _: int) -> None:
        nonlocal pairs
        pairs += frame.count()
        seconds.append(time.perf_counter())

    query = joined.writeStream.foreachBatch(count).option("checkpointLocation", str(folder / "check")).start()
    try:
        query.processAllAvailable()
    finally:
        query.stop()
    first = seconds[0] if len(seconds) > 1 else started
    return Throughput(documents - (batch if len(seconds) > 1 else 0), seconds[-1] - first, pairs)

"""Compares the job with all its queries, end to end, with Spark's own stream-stream join on the values alone.

Fishweir: items are published to a stream with a hundred thousand join queries, and the real job runs until it is idle.
The rate is documents per second of its micro-batches (reading, parsing, matching, joining, writing results and state).
Spark: the same items as rows (time, leaf, value) in Parquet files, one file per micro-batch, are joined with themselves
on leaf and value, and the pairs are counted. Spark finds the pairs with an equal value at an equal leaf, but not the
queries that they satisfy. Fishweir's queries include one for each leaf that selects just these pairs: both must find
the same number of pairs.

Then the job runs again over tuples that each join about one earlier tuple, however many are retained. It measures
documents per second while a tenth of them are retained, and while nearly all are.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from lxml import etree

from fishweir.algebra.documents import Document
from fishweir.algebra.nodes import Shape
from fishweir.papers.experiment.contestants import Disagreement
from fishweir.papers.mmqjp.experiment.fast import NAME as FAST
from fishweir.papers.mmqjp.experiment.measure import Point
from fishweir.papers.mmqjp.experiment.stream_join import WARM, stream_join
from fishweir.papers.mmqjp.experiment.work import LEAVES
from fishweir.papers.mmqjp.relational import JoinQuery
from fishweir.pipeline.commits import Commit

Arrivals = Sequence[tuple[Any, Document]]
STREAM_JOIN = "Spark's stream-stream join"
CHECK = "equal_"


@dataclass(frozen=True)
class Throughput:
    """Documents per second in the micro-batches after the first two, which warm up."""

    documents: int
    seconds: float
    pairs: dict[str, int]
    """Number of pairs of documents with an equal value, by leaf."""

    @property
    def rate(self) -> float:
        return self.documents / self.seconds


def query_text(number: int, shape: Shape) -> str:
    """The XSCL text of value joins between leaves, with unlimited windows."""
    sides = [
        f"S/{block.pattern.step.name}->{block.pattern.variables[0]}"
        + "".join(f"[{leaf.step.name}->{leaf.variables[0]}]" for leaf in block.pattern.children)
        for block in shape.blocks
    ]
    edges = " AND ".join(f"{c.left}={c.right}" for c in shape.conditions)
    return f"create query j{number} as {sides[0]} FOLLOWED BY{{{edges}, INF}} {sides[1]}"


def leaf_query(leaf: str) -> str:
    return f"create query {CHECK}{leaf} as S/item[{leaf}->x] FOLLOWED BY{{x=y, INF}} S/item[{leaf}->y]"


def measure_whole(session: Any, queries: Sequence[JoinQuery], items: Arrivals, batch: int) -> list[Point]:
    texts = [query_text(number, shape) for number, (shape, _) in enumerate(queries)]
    found = [(FAST, by_fishweir(session, texts, items, batch)), (STREAM_JOIN, by_spark(items, batch))]
    for leaf in LEAVES:
        ours, theirs = (one.pairs[leaf] for _, one in found)
        if ours != theirs:
            words = f"{FAST} finds {ours:,} pairs with an equal {leaf}, {STREAM_JOIN} {theirs:,}"
            raise Disagreement(f"through Spark: {words}")
    n = len(queries)
    return [
        Point("through Spark", n, n, name, 0.0, one.seconds, 0.0, sum(one.pairs.values()), documents=one.documents)
        for name, one in found
    ]


def measure_retained(session: Any, most: int, batch: int, seed: int = 5) -> list[Point]:
    """Documents per second with a tenth of `most` retained, and with nearly all of them."""
    rng, values = np.random.default_rng(seed), np.arange(most)
    again = rng.random(most) < 0.5
    values[again] = (rng.random(most) * np.arange(most)).astype(np.int64)[again]
    home = Path(tempfile.mkdtemp(prefix="fishweir-bench-"))
    try:
        import fishweir

        with fishweir.open(home / "home", spark=session, documents_per_batch=batch) as weir:
            weir.execute("create stream R (a string, b string, c string)")
            weir.execute(";\n".join(_tuple_query(i) for i in range(100)))
            for start in range(0, most, 10 * batch):
                some = values[start : start + 10 * batch].tolist()
                rows = [{"a": f"a{v}", "b": f"b{v}", "c": f"c{v % 1000}"} for v in some]
                weir.publish("R", rows, timestamps=[float(start + i) for i in range(len(rows))])
            weir.run(until_idle=True)
            return _by_retained(weir.table.commits(), most)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _tuple_query(number: int) -> str:
    """A query with its own window; a and b are looked up, c is checked."""
    edges = ("x = u", "y = v", "x = u AND y = v", "x = u AND z = w", "y = v AND z = w")[number % 5]
    left, right = "[a->x][b->y][c->z]", "[a->u][b->v][c->w]"
    return f"create query r{number} as R/R{left} FOLLOWED BY{{{edges}, {10_000_000 + number}}} R/R{right}"


def _by_retained(commits: Sequence[Commit], most: int) -> list[Point]:
    ends = np.cumsum([commit.documents for commit in commits])
    points = []
    for retained in (most // 10, most):
        chosen = [c for c, end in zip(commits, ends.tolist(), strict=True) if 0.5 * retained <= end <= 1.5 * retained]
        documents, seconds = sum(c.documents for c in chosen), sum(c.seconds for c in chosen)
        pairs = sum(c.matches for c in chosen)
        points.append(Point("retained", retained, 100, FAST, 0.0, seconds, 0.0, pairs, documents=documents))
    return points


def by_fishweir(session: Any, texts: Sequence[str], items: Arrivals, batch: int) -> Throughput:
    import fishweir

    home = Path(tempfile.mkdtemp(prefix="fishweir-bench-"))
    try:
        with fishweir.open(home / "home", spark=session, documents_per_batch=batch) as weir:
            weir.execute("create stream S; " + ";\n".join([*texts, *map(leaf_query, LEAVES)]))
            bodies = [etree.tostring(document.root, encoding="unicode") for _, document in items]
            weir.publish("S", bodies, timestamps=[document.timestamp for _, document in items])
            weir.run(until_idle=True)
            commits = weir.table.commits()
            warm = commits[WARM:] or commits
            documents, seconds = sum(c.documents for c in warm), sum(c.seconds for c in warm)
            return Throughput(documents, seconds, {leaf: _results(weir, CHECK + leaf) for leaf in LEAVES})
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _results(weir: Any, name: str) -> int:
    results: int = weir.status(name).results
    return results


def by_spark(items: Arrivals, batch: int) -> Throughput:
    folder = Path(tempfile.mkdtemp(prefix="fishweir-bench-"))
    try:
        (folder / "in").mkdir()
        for start in range(0, len(items), batch):
            rows = [
                {"time": document.timestamp, "leaf": leaf, "value": document.root.findtext(leaf) or ""}
                for _, document in items[start : start + batch]
                for leaf in LEAVES
            ]
            pq.write_table(pa.Table.from_pylist(rows), folder / "in" / f"{start:09d}.parquet")
            time.sleep(0.01)  # files are read in the order of their times
        seconds, pairs = stream_join(folder, LEAVES)
        return Throughput(len(items) - (WARM * batch if len(items) > WARM * batch else 0), seconds, pairs)
    finally:
        shutil.rmtree(folder, ignore_errors=True)

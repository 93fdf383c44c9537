"""Parts `text`, `boxes` and `paths`: the cost of a document by the sizes of micro-batch and query set, against peers.

Fishweir and the peers take the same documents in turns. Their answers are compared before anything is measured.
Processor time is that of all processes: the driver, the JVM and Python workers.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from fishweir.engine.weir import Weir
from fishweir.papers.experiment.figures import Target
from fishweir.papers.way.join_work import JoinWork
from fishweir.papers.way.part import FISHWEIR, FROM_TABLES, Measured, Part, Setting, running, wait_for
from fishweir.papers.way.peers import Answer, Missing
from fishweir.papers.way.processor import Spent, Stopwatch, descendants
from fishweir.papers.way.work import BOXES, PATHS, STREAM, TEXT, Pairs, Work, items


@dataclass(frozen=True)
class Sizes:
    queries: tuple[int, ...]
    documents: tuple[int, ...]
    rounds: int


SIZES = {
    "text": (Sizes((1_000, 100_000), (1, 100, 2_000, 20_000), 3), Sizes((1_000,), (1, 100, 2_000), 2)),
    "boxes": (Sizes((1_000, 100_000), (1, 100, 2_000, 20_000), 5), Sizes((1_000,), (1, 100, 2_000), 2)),
    "paths": (Sizes((10_000,), (1, 10, 100, 2_000), 3), Sizes((300,), (1, 10, 20), 2)),
}
"""Full and quick sizes. A million queries are in the part `growth`."""


@dataclass(frozen=True)
class Figure:
    """Microseconds per document."""

    work: str
    queries: int
    documents: int
    contestant: str
    processor_us: float
    wall_us: float
    matches: float | None
    """Number of queries that a document satisfies; None if no peer counted."""
    workers_share: float | None = None
    """The share of Python workers in the processor time: they read, match, join and write."""
    conversion_share: float | None = None
    """The share of converting documents to columns when they are published; None if it was not measured. For XML, most
    of this work is done by the workers."""

    def point(self) -> tuple[str, float, float | None]:
        return f"{self.work}, {self.documents} documents, {self.contestant}", self.queries, self.matches


def measure(part: str, work: Work, setting: Setting) -> Measured:
    sizes, measured = setting.sizes_of(part, *SIZES[part]), Measured()
    for queries in sizes.queries:
        setting.say(f"{queries:,} queries")
        before = descendants()
        with peers_of(work, queries, measured) as peers:
            others = descendants() - before
            measured.figures += compare(setting.spark, work, queries, sizes, peers, others)
    if work is TEXT:
        measured.notes.append(items().source)
    measured.targets = targets(measured.figures)
    return measured


@contextmanager
def peers_of(work: Work, queries: int, measured: Measured) -> Iterator[dict[str, Answer]]:
    """The installed peers that can take this many queries, by name."""
    rows = work.rows(queries)
    with ExitStack() as stack:
        found = {}
        for peer in work.peers:
            if queries <= peer.most:
                try:
                    found[peer.name] = stack.enter_context(peer.answering(rows))
                except Missing as reason:
                    measured.notes += [note] if (note := f"without {peer.name}: {reason}") not in measured.notes else []
        yield found


def compare(
    spark: Any, work: Work, queries: int, sizes: Sizes, peers: dict[str, Answer], others: set[int]
) -> list[Figure]:
    """Measures Fishweir and the peers on the same documents, in turns. All must return the same pairs. `others` are the
    processes of the peers."""
    figures = []
    known = {peer.name: peer for peer in work.peers}
    with running(spark, work, queries, max(sizes.documents)) as weir:
        for size in sizes.documents:
            some = {
                name: peer for name, peer in peers.items() if size <= known[name].documents or known[name].one_by_one
            }
            taken = {FISHWEIR: size} | {name: min(size, known[name].documents) for name in some}
            spent: dict[str, list[Spent]] = {name: [] for name in (FISHWEIR, *some)}
            for turn in range(sizes.rounds + 1):
                documents = work.documents(size, 100 + turn)
                watch = Stopwatch(without=others)
                weir.publish(STREAM, documents)
                wait_for(weir)
                spent[FISHWEIR].append(watch.spent())
                found = {}
                for name, peer in some.items():
                    watch = Stopwatch(without=descendants() - others)
                    found[name] = peer(documents[: taken[name]])
                    spent[name].append(watch.spent())
                if turn == 0:
                    check(weir, work, size, found)
            each = next((len(pairs) / taken[name] for name, pairs in found.items()), None)
            figures += [figure(work, queries, size, name, own[1:], each, taken[name]) for name, own in spent.items()]
    return figures


def check(weir: Weir, work: Work, size: int, found: dict[str, Pairs]) -> None:
    """Checks that the results of the last documents are those of each peer."""
    pairs = newest_pairs(weir, size) if size <= work.closely and found else next(iter(found.values()), set())
    for name, wanted in found.items():
        assert pairs == wanted, f"{work.name}: {len(pairs)} results, {name} has {len(wanted)} or different ones"


def newest_pairs(weir: Weir, size: int) -> Pairs:
    first = sum(commit.documents for commit in weir.table.commits()) - size + 1
    ids = {f"{STREAM}-{first + place}": place for place in range(size)}
    results = weir.results().to_arrow()
    documents = results["documents"].combine_chunks().flatten()  # each result has one document
    pairs = pa.table({"query": results["query"], "document": documents}).group_by(["query", "document"]).aggregate([])
    both = zip(pairs["query"].to_pylist(), pairs["document"].to_pylist(), strict=True)
    return {(query, ids[id]) for query, id in both if id in ids}


def figure(
    work: Work | JoinWork,
    queries: int,
    size: int,
    who: str,
    spent: Sequence[Spent],
    matches: float | None,
    taken: int | None = None,
) -> Figure:
    """The figure for a micro-batch of `size` documents, of which the contestant has taken `taken`; all by default."""
    each = (taken or size) * 1e-6
    processor, wall = (statistics.median(getattr(one, name) for one in spent) for name in ("processor", "wall"))
    shares: list[float | None] = [None, None]
    if who in (FISHWEIR, FROM_TABLES):
        shares = [_share(spent, "workers"), _share(spent, "conversion") or None]
    return Figure(work.name, queries, size, who, processor / each, wall / each, matches, *shares)


def _share(spent: Sequence[Spent], part: str) -> float:
    """The median share of a part in the processor time."""
    return round(statistics.median(getattr(one, part) / one.processor if one.processor else 0.0 for one in spent), 3)


def targets(figures: Sequence[Figure]) -> list[Target]:
    goals = []
    for own in (f for f in figures if f.contestant == FISHWEIR):
        where = f"{own.work}, {own.queries:,} queries"
        if own.documents == 2_000:
            for peer in figures:
                same = (peer.work, peer.queries, peer.documents) == (own.work, own.queries, own.documents)
                if same and peer is not own:
                    ratio = peer.processor_us / own.processor_us
                    goals.append(Target(f"{where}: ahead of {peer.contestant}", f"{ratio:.2f} times", ratio > 1))
        if own.documents == 20_000 and own.workers_share is not None:
            measured = f"{100 * own.workers_share:.0f}%"
            goals.append(Target(f"{where}: workers' share above 60%", measured, own.workers_share > 0.6))
    return goals


def draw(figures: Sequence[Figure], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    known = sorted({figure.queries for figure in figures})
    plot, axes = pyplot.subplots(1, len(known), figsize=(5.5 * len(known), 4), squeeze=False)
    for queries, axis in zip(known, axes[0], strict=True):
        for who in dict.fromkeys(figure.contestant for figure in figures):
            line = [f for f in figures if f.contestant == who and f.queries == queries]
            axis.loglog([f.documents for f in line], [f.processor_us for f in line], marker="o", label=who)
        axis.set_title(f"{figures[0].work}, {queries:,} queries")
        axis.set_xlabel("documents per micro-batch")
        axis.set_ylabel("processor time per document, us")
        axis.legend(fontsize=7)
    plot.tight_layout()
    plot.savefig(path, dpi=120)
    pyplot.close(plot)


PARTS = tuple(
    Part(name, f"What a document costs: {work.name}", partial(measure, name, work), draw)
    for name, work in (("text", TEXT), ("boxes", BOXES), ("paths", PATHS))
)

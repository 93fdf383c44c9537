"""Parts `joins`, `joins-many` and `windows`: the cost of a joined document, against DuckDB with the queries as data.

All take the same documents in turns and retain them from round to round. DuckDB does this twice: in memory, and in a
file that stores documents and results, as Fishweir does. The results of the first round are compared. The rounds after
it, which fill the windows, are not measured. Tuples are published as dictionaries, and the largest rounds are then
repeated with Arrow tables, which need no conversion.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa

from fishweir.engine.publishing import Publication
from fishweir.engine.weir import Weir
from fishweir.intake.sources.push import documents_batch
from fishweir.papers.way.documents import Figure, draw, figure, targets
from fishweir.papers.way.join_work import JOIN_WORKS, Answer, Found, JoinWork
from fishweir.papers.way.part import FISHWEIR, FROM_TABLES, Measured, Part, Setting, home_folder, settle, wait_for
from fishweir.papers.way.processor import Spent, Stopwatch

PEER, STORING_PEER = "DuckDB, queries as data", "DuckDB, storing in a file"
FIRST = 1_000
"""Documents of the rounds that are not measured."""


@dataclass(frozen=True)
class Sizes:
    queries: int
    documents: tuple[int, ...]
    """Documents per round."""
    filled: int
    """Number of documents before the measurement."""
    rounds: int


WHOLE = {
    "joins": Sizes(100_000, (100, 2_000, 20_000), 10_000, 5),
    "joins-many": Sizes(100_000, (100, 2_000), 10_000, 3),
    "windows": Sizes(1_000, (100, 1_000, 2_000, 20_000), 10_000, 25),
}
QUICK = {name: Sizes(sizes.queries // 10, (100, 1_000), 2_000, 1) for name, sizes in WHOLE.items()}


def measure(part: str, work: JoinWork, setting: Setting) -> Measured:
    sizes, measured = setting.sizes_of(part, WHOLE[part], QUICK[part]), Measured()
    setting.say(f"{sizes.queries:,} queries")
    with home_folder() as home, Weir(home, setting.spark, documents_per_batch=max(sizes.documents)) as weir:
        measured.figures += compare(weir, work, sizes)
    measured.targets = targets(measured.figures)
    return measured


def compare(weir: Weir, work: JoinWork, sizes: Sizes) -> Iterator[Figure]:
    shapes = list(work.queries(sizes.queries))
    weir.execute(work.streams)
    for template, rows in shapes:
        weir.register_many(template, rows)
    weir.start()
    weir.wait_idle()
    with home_folder() as file, work.peer(shapes, None) as answer, work.peer(shapes, file) as storing:
        turns = Turns(weir, work, (answer, storing))
        for found in turns.next(min(FIRST, sizes.filled))[1]:
            check(weir, work, found())
        for _ in range(FIRST, sizes.filled, FIRST):
            turns.next(FIRST)
        settle(weir)
        for documents in sizes.documents:
            spent, found = zip(*(turns.next(documents) for _ in range(sizes.rounds + 1)), strict=True)
            matches = sum(len(listed()) for listed, _ in found) / documents / len(found)
            for who, each in zip((FISHWEIR, PEER, STORING_PEER), zip(*spent, strict=True), strict=True):
                yield figure(work, sizes.queries, documents, who, each[1:], matches)
        if work.has_tuples:
            own = [turns.next(documents, in_tables=True)[0][0] for _ in range(sizes.rounds + 1)]
            yield figure(work, sizes.queries, documents, FROM_TABLES, own[1:], matches)


class Turns:
    """Rounds of documents with advancing times, which all contestants take."""

    def __init__(self, weir: Weir, work: JoinWork, peers: Sequence[Answer]) -> None:
        self.weir, self.work, self.peers = weir, work, peers
        self.time = self.seed = 0

    def next(self, count: int, in_tables: bool = False) -> tuple[list[Spent], list[Found]]:
        """The time that Fishweir and its peers spent, and the peers' results. Fishweir may get the documents in
        tables."""
        arrivals = self.work.arrivals(count, self.time, self.seed)
        self.time, self.seed = self.time + count, self.seed + 1
        form = pa.Table.from_pylist if in_tables else list
        published = [(given.stream, form(given.documents), given.times) for given in arrivals]
        watch = Stopwatch()
        self.weir.publish_together(published)
        wait_for(self.weir, self.time)
        spent, found = [replace(watch.spent(), conversion=self._converting(published))], []
        for answer in self.peers:
            watch = Stopwatch()
            found.append(answer(arrivals))
            spent.append(watch.spent())
        return spent, found

    def _converting(self, published: Sequence[Publication]) -> float:
        """The processor seconds of converting published documents to columns once more."""
        streams = self.weir.catalog.streams()
        began = time.thread_time()
        for stream, documents, times in published:
            documents_batch(streams[stream][1], documents, times)
        return time.thread_time() - began


def check(weir: Weir, work: JoinWork, wanted: pa.Table) -> None:
    """Checks that all results so far are those of the peer."""
    found = weir.results().to_arrow()
    both = found["documents"].combine_chunks().flatten().to_pylist()
    own = triples(found["query"], both[::2], both[1::2])
    other = triples(wanted["name"], wanted["one"].to_pylist(), wanted["two"].to_pylist())
    assert len(own) == found.num_rows, f"{work.name}: results are repeated"
    assert own == other, f"{work.name}: {len(own)} results, {PEER} has {len(other)} or different ones"


def triples(names: Any, ones: list[str], others: list[str]) -> set[tuple[str, frozenset[str]]]:
    """Query and the ids of the two documents."""
    return {(name, frozenset(pair)) for name, *pair in zip(names.to_pylist(), ones, others, strict=True)}


PARTS = tuple(
    Part(name, f"What a joined document costs: {work.name}", partial(measure, name, work), draw)
    for name, work in zip(WHOLE, JOIN_WORKS, strict=True)
)

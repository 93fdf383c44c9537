"""The work of the join parts: queries, documents, and DuckDB with the queries as data.

XSCL joins of few or many shapes: items whose leaves must be equal, where each subset of leaves is a shape. Their
queries differ by the window, from a second to hours, most of them short. SQL window joins of one shape: equal keys, a
condition on a column, a window each. DuckDB keeps documents and queries in tables. In a round it joins the new
documents with those that a window still reaches, one statement per shape, and lists each pair with each query. It keeps
everything in memory, or in a file: then a round is one transaction that stores documents and results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import combinations, islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

LONGEST = 10_000
"""Seconds of the longest window. Items are a second apart."""
VALUES = 1_000_000
"""Number of values of a leaf: few items have a partner, as with the titles and links of news."""
KEYS = 100_000

Found = Callable[[], pa.Table]
"""Lists results: the name of the query and the ids of the two documents."""


@dataclass(frozen=True)
class Arrivals:
    """Documents of one stream."""

    stream: str
    documents: list[Any]
    times: list[float]


Answer = Callable[[Sequence[Arrivals]], Found]


@dataclass(frozen=True)
class JoinWork:
    name: str
    streams: str
    queries: Callable[[int], Iterator[tuple[str, list[dict[str, Any]]]]]
    """A template for each shape, and its rows."""
    arrivals: Callable[[int, int, int], list[Arrivals]]
    """Generates documents from a count, a start time and a seed."""
    peer: Callable[[Sequence[tuple[str, list[dict[str, Any]]]], Path | None], Any]
    """DuckDB with its queries, in memory or in a file: a context whose value takes arrivals and returns a function that
    lists the results."""
    has_tuples: bool = False
    """Whether the documents can also be published as Arrow tables."""


def windows(rng: np.random.Generator, count: int) -> list[int]:
    """Random windows, with equal probability for every order of magnitude."""
    return [int(window) for window in LONGEST ** rng.random(count)]


# XSCL: a shape is a set of leaves.


def leaf_sets(shapes: int) -> list[tuple[int, ...]]:
    """The first non-empty subsets of the leaves, the smaller ones first."""
    leaves = shapes.bit_length()
    return list(islice((some for size in range(1, leaves + 1) for some in combinations(range(leaves), size)), shapes))


def leaf_template(leaves: Sequence[int]) -> str:
    left, right = ("".join(f"[leaf{i}->{side}{i}]" for i in leaves) for side in "xy")
    edges = " AND ".join(f"x{i}=y{i}" for i in leaves)
    return f"create query $name as S/item{left} FOLLOWED BY{{{edges}, $window}} S/item{right}"


def leaf_queries(shapes: int, count: int) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    rng, sets = np.random.default_rng(1), leaf_sets(shapes)
    for place, leaves in enumerate(sets):
        own = windows(rng, len(range(place, count, shapes)))
        yield leaf_template(leaves), [{"name": f"q{place}_{i}", "window": w} for i, w in enumerate(own)]


def items(shapes: int, count: int, start: int, seed: int) -> list[Arrivals]:
    drawn = np.random.default_rng(seed).integers(0, VALUES, (count, shapes.bit_length()))
    texts = (
        "<item>" + "".join(f"<leaf{i}>value {value}</leaf{i}>" for i, value in enumerate(row)) + "</item>"
        for row in drawn.tolist()
    )
    return [Arrivals("S", list(texts), [float(start + i) for i in range(count)])]


@contextmanager
def leaves_by_duckdb(
    shapes: int, queries: Sequence[tuple[str, list[dict[str, Any]]]], file: Path | None
) -> Iterator[Answer]:
    from lxml import etree

    leaves = [f"leaf{i}" for i in range(shapes.bit_length())]
    with Peer(file, "S-", "S-") as peer:
        connection = peer.connection
        columns = ", ".join(f"{leaf} varchar" for leaf in leaves)
        connection.execute(f"create table kept (number bigint, time double, {columns})")
        statements = []
        for place, (some, (_, rows)) in enumerate(zip(leaf_sets(shapes), queries, strict=True)):
            peer.create(place, pa.Table.from_pylist(rows))
            equal = " and ".join(f"kept.leaf{i} = new.leaf{i}" for i in some)
            statements.append(
                peer.select(place, "kept.number", "new.number")
                + f"from new join kept on {equal} join query{place} query "
                "on new.time - kept.time <= query.window where kept.time < new.time"
            )
        numbers = 0

        def answer(arrivals: Sequence[Arrivals]) -> Found:
            nonlocal numbers
            (given,) = arrivals
            roots = [etree.fromstring(text) for text in given.documents]
            values = [[root.findtext(leaf) for root in roots] for leaf in leaves]
            places = list(range(numbers + 1, numbers + len(roots) + 1))
            numbers += len(roots)
            new = pa.table([places, given.times, *values], names=["number", "time", *leaves])
            connection.register("new", new)
            with peer.round() as find:
                connection.execute("insert into kept select * from new")
                for statement in statements:
                    find(statement)
                connection.execute("delete from kept where time < ?", [given.times[-1] - LONGEST])
            return peer.found()

        yield answer


# SQL: one shape.


def window_queries(count: int) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    rng = np.random.default_rng(1)
    pairs = zip(windows(rng, count), rng.integers(0, 1000, count).tolist(), strict=True)
    yield (
        "create query $name as select R.k, R.v, T.v from R [range $window seconds], T [range $window seconds] "
        "where R.k = T.k and R.v >= $least",
        [{"name": f"q{i}", "window": window, "least": least} for i, (window, least) in enumerate(pairs)],
    )


def tuples(count: int, start: int, seed: int) -> list[Arrivals]:
    """Tuples, half of them in either stream."""
    rng, found = np.random.default_rng(seed), []
    for stream, share in (("R", count - count // 2), ("T", count // 2)):
        columns = rng.integers(0, KEYS, share).tolist(), rng.integers(0, 1000, share).tolist()
        rows = [{"k": key, "v": value} for key, value in zip(*columns, strict=True)]
        found.append(Arrivals(stream, rows, [start + 2.0 * i for i in range(share)]))
    return found


@contextmanager
def windows_by_duckdb(queries: Sequence[tuple[str, list[dict[str, Any]]]], file: Path | None) -> Iterator[Answer]:
    with Peer(file, "R-", "T-") as peer:
        connection = peer.connection
        peer.create(0, pa.Table.from_pylist(queries[0][1]))
        for stream in "RT":
            connection.execute(f"create table {stream} (number bigint, time double, k bigint, v bigint)")
        numbers = {"R": 0, "T": 0}
        pairs = (
            peer.select(0, "r.number", "t.number") + "from {} r join {} t on r.k = t.k "
            "join query0 query on r.v >= query.least and abs(r.time - t.time) <= query.window"
        )

        def answer(arrivals: Sequence[Arrivals]) -> Found:
            for given in arrivals:
                first = numbers[given.stream]
                numbers[given.stream] += len(given.documents)
                columns = [[row[name] for row in given.documents] for name in ("k", "v")]
                places = np.arange(first + 1, numbers[given.stream] + 1)
                types = (pa.int64(), pa.float64(), pa.int64(), pa.int64())
                arrays = [pa.array(c, t) for c, t in zip((places, given.times, *columns), types, strict=True)]
                connection.register(f"new_{given.stream}", pa.table(arrays, names=["number", "time", "k", "v"]))
            newest = max((time for given in arrivals for time in given.times), default=0.0)
            with peer.round() as find:
                find(pairs.format("new_R", "T"))
                connection.execute("insert into T select * from new_T")
                connection.execute("insert into R select * from new_R")
                find(pairs.format("R", "new_T"))
                for stream in "RT":
                    connection.execute(f"delete from {stream} where time < ?", [newest - LONGEST])
            return peer.found()

        yield answer


class Peer:
    """DuckDB in memory, which returns results as an Arrow table, or in a file, which stores them as numbers in a table.
    `one` and `two` are the prefixes of the ids of their documents."""

    def __init__(self, file: Path | None, one: str, two: str) -> None:
        self.file, self.one, self.two = file, one, two
        self._found: list[pa.Table] = []

    def __enter__(self) -> Peer:
        import duckdb

        self.connection = duckdb.connect(str(self.file or ":memory:"))
        if self.file:
            self.connection.execute("create table result (shape integer, query integer, one bigint, two bigint)")
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def create(self, shape: int, table: pa.Table) -> None:
        """The queries of a shape."""
        self.connection.register("given", table)
        self.connection.execute(f"create table query{shape} as select row_number() over () as row, * from given")
        self.connection.unregister("given")

    def select(self, shape: int, one: str, two: str) -> str:
        """The beginning of a statement that lists results."""
        if self.file:
            return f"insert into result select {shape}, query.row, {one}, {two} "
        return f"select query.name, '{self.one}' || {one} as one, '{self.two}' || {two} as two "

    @contextmanager
    def round(self) -> Iterator[Callable[[str], Any]]:
        """One round; its value executes a statement that lists results."""
        self._found = []
        if not self.file:
            yield lambda statement: self._found.append(self.connection.sql(statement).to_arrow_table())
            return
        self.connection.execute("begin")
        yield self.connection.execute
        self.connection.execute("commit")

    def found(self) -> Found:
        """Lists the results of the last round, or all that are stored."""
        if self.file:
            return self._stored
        found = pa.concat_tables(self._found)
        return lambda: found

    def _stored(self) -> pa.Table:
        shapes = [shape for (shape,) in self.connection.execute("select distinct shape from result").fetchall()]
        listed = (
            f"select query.name, '{self.one}' || one as one, '{self.two}' || two as two "
            f"from result join query{shape} query on query.row = result.query where shape = {shape}"
            for shape in shapes
        )
        return self.connection.sql(" union all ".join(listed)).to_arrow_table()


def _of_shapes(shapes: int) -> JoinWork:
    return JoinWork(
        f"XSCL joins, {shapes} shapes",
        "create stream S",
        lambda count: leaf_queries(shapes, count),
        lambda count, start, seed: items(shapes, count, start, seed),
        partial(leaves_by_duckdb, shapes),
    )


JOIN_WORKS = (
    _of_shapes(15),
    _of_shapes(199),
    JoinWork(
        "SQL window joins",
        "create stream R (k int, v int); create stream T (k int, v int)",
        window_queries,
        tuples,
        windows_by_duckdb,
        has_tuples=True,
    ),
)

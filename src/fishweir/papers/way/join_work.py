"""The work of the join parts: queries, documents, and DuckDB with the queries as data.

XSCL joins of few or many shapes: items whose leaves must be equal, where each subset of leaves is a shape. Their
queries differ by the window, from a second to hours, most of them short. SQL window joins of one shape: equal keys, a
condition on a column, a window each. DuckDB keeps documents and queries in tables. In a round it joins the new
documents with those that a window still reaches, one statement per shape, and lists each pair with each query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import combinations, islice
from typing import Any

import numpy as np
import pyarrow as pa

LONGEST = 10_000
"""Seconds of the longest window. Items are a second apart."""
VALUES = 1_000_000
"""Number of values of a leaf: few items have a partner, as with the titles and links of news."""
KEYS = 100_000


@dataclass(frozen=True)
class Arrivals:
    """Documents of one stream."""

    stream: str
    documents: list[Any]
    times: list[float]


@dataclass(frozen=True)
class JoinWork:
    name: str
    streams: str
    queries: Callable[[int], Iterator[tuple[str, list[dict[str, Any]]]]]
    """A template for each shape, and its rows."""
    arrivals: Callable[[int, int, int], list[Arrivals]]
    """Generates documents from a count, a start time and a seed."""
    peer: Callable[[Sequence[tuple[str, list[dict[str, Any]]]]], Any]
    """DuckDB with its queries: a context whose value takes arrivals and returns the new results."""


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
    shapes: int, queries: Sequence[tuple[str, list[dict[str, Any]]]]
) -> Iterator[Callable[[Sequence[Arrivals]], pa.Table]]:
    from lxml import etree

    leaves = [f"leaf{i}" for i in range(shapes.bit_length())]
    with _duckdb() as connection:
        columns = ", ".join(f"{leaf} varchar" for leaf in leaves)
        connection.execute(f"create table kept (number bigint, time double, {columns})")
        statements = []
        for place, (some, (_, rows)) in enumerate(zip(leaf_sets(shapes), queries, strict=True)):
            _create(connection, f"query{place}", pa.Table.from_pylist(rows))
            equal = " and ".join(f"kept.leaf{i} = new.leaf{i}" for i in some)
            statements.append(
                "select query.name, 'S-' || kept.number as one, 'S-' || new.number as two "
                f"from new join kept on {equal} join query{place} query "
                "on new.time - kept.time <= query.window where kept.time < new.time"
            )
        numbers = 0

        def answer(arrivals: Sequence[Arrivals]) -> pa.Table:
            nonlocal numbers
            (given,) = arrivals
            roots = [etree.fromstring(text) for text in given.documents]
            values = [[root.findtext(leaf) for root in roots] for leaf in leaves]
            places = list(range(numbers + 1, numbers + len(roots) + 1))
            numbers += len(roots)
            new = pa.table([places, given.times, *values], names=["number", "time", *leaves])
            connection.register("new", new)
            connection.execute("insert into kept select * from new")
            found = [connection.sql(statement).to_arrow_table() for statement in statements]
            connection.execute("delete from kept where time < ?", [given.times[-1] - LONGEST])
            return pa.concat_tables(found)

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
def windows_by_duckdb(
    queries: Sequence[tuple[str, list[dict[str, Any]]]],
) -> Iterator[Callable[[Sequence[Arrivals]], pa.Table]]:
    with _duckdb() as connection:
        _create(connection, "query", pa.Table.from_pylist(queries[0][1]))
        for stream in "RT":
            connection.execute(f"create table {stream} (number bigint, time double, k bigint, v bigint)")
        numbers = {"R": 0, "T": 0}
        pairs = (
            "select query.name, 'R-' || r.number as one, 'T-' || t.number as two from {} r join {} t on r.k = t.k "
            "join query on r.v >= query.least and abs(r.time - t.time) <= query.window"
        )

        def answer(arrivals: Sequence[Arrivals]) -> pa.Table:
            for given in arrivals:
                first = numbers[given.stream]
                numbers[given.stream] += len(given.documents)
                columns = [[row[name] for row in given.documents] for name in ("k", "v")]
                places = np.arange(first + 1, numbers[given.stream] + 1)
                types = (pa.int64(), pa.float64(), pa.int64(), pa.int64())
                arrays = [pa.array(c, t) for c, t in zip((places, given.times, *columns), types, strict=True)]
                connection.register(f"new_{given.stream}", pa.table(arrays, names=["number", "time", "k", "v"]))
            found = [connection.sql(pairs.format("new_R", "T")).to_arrow_table()]
            connection.execute("insert into T select * from new_T")
            connection.execute("insert into R select * from new_R")
            found.append(connection.sql(pairs.format("R", "new_T")).to_arrow_table())
            newest = max((time for given in arrivals for time in given.times), default=0.0)
            for stream in "RT":
                connection.execute(f"delete from {stream} where time < ?", [newest - LONGEST])
            return pa.concat_tables(found)

        yield answer


@contextmanager
def _duckdb() -> Iterator[Any]:
    import duckdb

    connection = duckdb.connect()
    yield connection
    connection.close()


def _create(connection: Any, name: str, table: pa.Table) -> None:
    connection.register("given", table)
    connection.execute(f"create table {name} as select * from given")
    connection.unregister("given")


def _of_shapes(shapes: int) -> JoinWork:
    return JoinWork(
        f"XSCL joins, {shapes} shapes",
        "create stream S",
        lambda count: leaf_queries(shapes, count),
        lambda count, start, seed: items(shapes, count, start, seed),
        lambda queries: leaves_by_duckdb(shapes, queries),
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
    ),
)

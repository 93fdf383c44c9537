"""Peers: other systems that answer the same queries with an index over them.

A peer gets the rows of the queries, then documents; it returns which query matches which document.
"""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

Pairs = set[tuple[str, int]]
"""Query and position of the document."""
Answer = Callable[[Sequence[Any]], Pairs]
PROCESSES = 2


class Missing(Exception):
    """A requirement of a peer is not installed."""


@dataclass(frozen=True)
class Peer:
    name: str
    answering: Callable[[Sequence[dict[str, Any]]], AbstractContextManager[Answer]]
    """Builds the index: a context whose value returns the pairs of some documents. Raises Missing."""
    most: int = 10_000_000
    """Maximum number of queries that it can take in reasonable time."""
    documents: int = 10_000_000
    """Maximum number of documents that it can take in reasonable time."""
    one_by_one: bool = False
    """Whether a document takes as long alone as among others. From larger micro-batches, the peer then gets the first
    `documents`."""


@contextmanager
def by_rarest_word(rows: Sequence[dict[str, Any]]) -> Iterator[Answer]:
    with ProcessPoolExecutor(PROCESSES, initializer=_index, initargs=(rows,)) as pool:
        list(pool.map(_rarest, [(0, [])] * PROCESSES))

        def answer(documents: Sequence[str]) -> Pairs:
            share = -(-len(documents) // PROCESSES)
            parts = [(start, documents[start : start + share]) for start in range(0, len(documents), share)]
            return set().union(*pool.map(_rarest, parts))

        yield answer


_by_word: dict[str, list[tuple[str, str]]] = {}


def _index(rows: Sequence[dict[str, Any]]) -> None:
    counts = Counter(word for row in rows for word in (row["a"], row["b"]))
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for row in rows:
        rare, other = sorted((row["a"], row["b"]), key=lambda word: counts[word])
        found[rare].append((other, row["name"]))
    _by_word.clear()
    _by_word.update(found)


def _rarest(part: tuple[int, Sequence[str]]) -> Pairs:
    from lxml import etree

    first, documents = part
    found: Pairs = set()
    for place, text in enumerate(documents, first):
        words = set((etree.fromstring(text).findtext("title") or "").split())
        found.update((name, place) for word in words for other, name in _by_word.get(word, ()) if other in words)
    return found


@contextmanager
def by_rtree(rows: Sequence[dict[str, Any]]) -> Iterator[Answer]:
    connection = sqlite3.connect(":memory:")
    connection.execute("create virtual table box using rtree_i32(id, x0, x1, y0, y1)")
    boxes = ((i, row["a"], row["b"] - 1, row["c"], row["d"] - 1) for i, row in enumerate(rows))
    connection.executemany("insert into box values (?, ?, ?, ?, ?)", boxes)
    within = "select id from box where x0 <= ? and x1 >= ? and y0 <= ? and y1 >= ?"

    def answer(documents: Sequence[dict[str, int]]) -> Pairs:
        found: Pairs = set()
        for place, one in enumerate(documents):
            cursor = connection.execute(within, (one["x"], one["x"], one["y"], one["y"]))
            found.update((f"q{id}", place) for (id,) in cursor)
        return found

    yield answer
    connection.close()


@contextmanager
def by_duckdb(rows: Sequence[dict[str, Any]]) -> Iterator[Answer]:
    """A range join of the documents with the table of boxes, in two threads."""
    try:
        import duckdb
    except ImportError as error:
        raise Missing("duckdb is not installed") from error
    import pyarrow as pa

    connection = duckdb.connect(config={"threads": PROCESSES})
    connection.register("boxes", pa.table({name: [row[name] for row in rows] for name in ("name", "a", "b", "c", "d")}))
    connection.execute("create table box as select * from boxes")
    inside = "d.x >= box.a and d.x < box.b and d.y >= box.c and d.y < box.d"
    joined = f"select box.name, d.place from documents d join box on {inside}"

    def answer(documents: Sequence[dict[str, int]]) -> Pairs:
        columns = {name: [one[name] for one in documents] for name in ("x", "y")}
        connection.register("documents", pa.table({**columns, "place": range(len(documents))}))
        return set(connection.execute(joined).fetchall())

    yield answer
    connection.close()


@contextmanager
def by_lxml(rows: Sequence[dict[str, Any]]) -> Iterator[Answer]:
    """Each path by itself, precompiled."""
    from lxml import etree

    paths = [(row["name"], etree.XPath(row["path"])) for row in rows]

    def answer(documents: Sequence[str]) -> Pairs:
        trees = [etree.ElementTree(etree.fromstring(text)) for text in documents]
        return {(name, place) for place, tree in enumerate(trees) for name, path in paths if path(tree)}

    yield answer


RAREST_WORD = Peer("Python script, rarest word, 2 processes", by_rarest_word)
RTREE = Peer("SQLite R*Tree", by_rtree)
DUCKDB_BOXES = Peer("DuckDB", by_duckdb, documents=2_000)
LXML = Peer("lxml, each path alone", by_lxml, documents=10, one_by_one=True)

"""What is measured: queries, documents, and a peer that answers the same.

Text filters look for two words of an item's title, the peer is a script that looks queries up by their rarer word, in
two processes. Boxes are regions of a plane, as many as are needed for about ten matches a document; the peer is the
R*Tree of SQLite.
"""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

Pairs = set[tuple[str, int]]
"""Query and place of the document."""

STREAM = "S"
WORDS, SIDE, MATCHES = 20_000, 1_000_000, 10
PROCESSES = 2


@dataclass(frozen=True)
class Work:
    name: str
    peer: str
    stream: str
    template: str
    rows: Callable[[int], list[dict[str, Any]]]
    documents: Callable[[int, int], list[Any]]
    """So many, from a seed."""
    answering: Callable[[Sequence[dict[str, Any]]], Any]
    """The peer with its index built: a context whose value gives the pairs of some documents."""


def _words(rng: np.random.Generator, count: int) -> list[str]:
    return [f"w{number}" for number in np.minimum(rng.zipf(1.25, count), WORDS)]


def text_rows(count: int) -> list[dict[str, Any]]:
    rng = np.random.default_rng(1)
    pairs = zip(_words(rng, count), rng.integers(1, WORDS, count), strict=True)
    return [{"name": f"q{i}", "a": a, "b": f"w{b}"} for i, (a, b) in enumerate(pairs)]


def text_documents(count: int, seed: int) -> list[str]:
    rng = np.random.default_rng(seed + 2)
    words = _words(rng, 12 * count)
    titles = (" ".join(words[12 * i : 12 * (i + 1)]) for i in range(count))
    return [f"<item><title>{title}</title></item>" for title in titles]


def box_rows(count: int) -> list[dict[str, Any]]:
    rng, width = np.random.default_rng(1), int(SIDE * (MATCHES / count) ** 0.5)
    places = rng.integers(0, SIDE - width, (count, 2)).tolist()
    return [{"name": f"q{i}", "a": x, "b": x + width, "c": y, "d": y + width} for i, (x, y) in enumerate(places)]


def box_documents(count: int, seed: int) -> list[dict[str, int]]:
    rng = np.random.default_rng(seed + 2)
    return [{"x": x, "y": y} for x, y in rng.integers(0, SIDE, (count, 2)).tolist()]


@contextmanager
def by_rarest_word(rows: Sequence[dict[str, Any]]) -> Iterator[Callable[[Sequence[str]], Pairs]]:
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
def by_rtree(rows: Sequence[dict[str, Any]]) -> Iterator[Callable[[Sequence[dict[str, int]]], Pairs]]:
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


WORKS = (
    Work(
        "text filters",
        "Python script, rarest word, 2 processes",
        f"create stream {STREAM}",
        f"create query $name as select title from {STREAM} where title contains $a and title contains $b",
        text_rows,
        text_documents,
        by_rarest_word,
    ),
    Work(
        "boxes",
        "SQLite R*Tree",
        f"create stream {STREAM} (x int, y int)",
        f"create query $name as select * from {STREAM} where x >= $a and x < $b and y >= $c and y < $d",
        box_rows,
        box_documents,
        by_rtree,
    ),
)

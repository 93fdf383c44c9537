"""What is measured: queries, documents, and peers that answer the same.

Text filters look for two words of an item's title. Boxes are regions of a plane, of a size that gives about ten matches
a document.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fishweir.papers.way.esper import ESPER
from fishweir.papers.way.lucene import LUCENE
from fishweir.papers.way.peers import DUCKDB_BOXES, RAREST_WORD, RTREE, Pairs, Peer

__all__ = ["BOXES", "STREAM", "TEXT", "WORKS", "Pairs", "Work"]

STREAM = "S"
WORDS, SIDE, MATCHES = 20_000, 1_000_000, 10


@dataclass(frozen=True)
class Work:
    name: str
    stream: str
    template: str
    rows: Callable[[int], list[dict[str, Any]]]
    documents: Callable[[int, int], list[Any]]
    """So many, from a seed."""
    peers: tuple[Peer, ...]


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


TEXT = Work(
    "text filters",
    f"create stream {STREAM}",
    f"create query $name as select title from {STREAM} where title contains $a and title contains $b",
    text_rows,
    text_documents,
    (RAREST_WORD, LUCENE),
)
BOXES = Work(
    "boxes",
    f"create stream {STREAM} (x int, y int)",
    f"create query $name as select * from {STREAM} where x >= $a and x < $b and y >= $c and y < $d",
    box_rows,
    box_documents,
    (RTREE, DUCKDB_BOXES, ESPER),
)
WORKS = (TEXT, BOXES)

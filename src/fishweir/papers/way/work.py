"""The work of the experiment: queries, documents, and peers that answer the same.

Text filters select RSS items with two words. Boxes are regions of a plane, of a size that gives about ten matches per
document. Paths are drawn as by YFilter's generator, over documents of NITF's shape.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any

import numpy as np

from fishweir.algebra.documents import parse_document
from fishweir.papers.paths.news import news
from fishweir.papers.paths.queries import Draw
from fishweir.papers.roses.experiment.work import Items, load_items
from fishweir.papers.way.esper import ESPER
from fishweir.papers.way.lucene import LUCENE
from fishweir.papers.way.peers import DUCKDB_BOXES, LXML, RAREST_WORD, RTREE, Pairs, Peer

__all__ = ["BOXES", "PATHS", "STREAM", "TEXT", "WORKS", "Pairs", "Work"]

STREAM = "S"
SIDE, MATCHES = 1_000_000, 10
WORD = re.compile(r"\w+")
ITEMS, NEWS = 25_000, 2_000
"""Number of different items and news documents."""


@dataclass(frozen=True)
class Work:
    name: str
    stream: str
    template: str
    rows: Callable[[int], list[dict[str, Any]]]
    documents: Callable[[int, int], list[Any]]
    """Generates documents from a count and a seed."""
    peers: tuple[Peer, ...]
    statements: bool = False
    """Whether each query is a separate statement, the template with its row: for queries that differ in more than
    constants."""
    closely: int = 2_000
    """Maximum number of documents of a micro-batch for which all results are compared before anything is measured."""


@lru_cache(maxsize=1)
def items() -> Items:
    """Titles and descriptions as words separated by spaces, so that every word search finds the same."""
    real = load_items(ITEMS)
    return Items([" ".join(WORD.findall(text.lower())) for text in real.texts], real.source)


def text_rows(count: int) -> list[dict[str, Any]]:
    """Pairs of different words: one drawn by frequency, the other uniformly."""
    rng, (known, shares) = np.random.default_rng(1), items().keywords
    common = rng.choice(len(known), count, p=shares / shares.sum())
    others = (common + rng.integers(1, len(known), count)) % len(known)
    pairs = zip(common.tolist(), others.tolist(), strict=True)
    return [{"name": f"q{i}", "a": known[a], "b": known[b]} for i, (a, b) in enumerate(pairs)]


def text_documents(count: int, seed: int) -> list[str]:
    texts = items().texts
    chosen = np.random.default_rng(seed + 2).choice(len(texts), count, replace=count > len(texts))
    return [f"<item><title>{texts[i]}</title></item>" for i in chosen.tolist()]


def box_rows(count: int) -> list[dict[str, Any]]:
    rng, width = np.random.default_rng(1), int(SIDE * (MATCHES / count) ** 0.5)
    places = rng.integers(0, SIDE - width, (count, 2)).tolist()
    return [{"name": f"q{i}", "a": x, "b": x + width, "c": y, "d": y + width} for i, (x, y) in enumerate(places)]


def box_documents(count: int, seed: int) -> list[dict[str, int]]:
    rng = np.random.default_rng(seed + 2)
    return [{"x": x, "y": y} for x, y in rng.integers(0, SIDE, (count, 2)).tolist()]


@lru_cache(maxsize=1)
def all_news() -> list[str]:
    return [news(seed).decode() for seed in range(NEWS)]


def path_rows(count: int) -> list[dict[str, Any]]:
    drawn = Draw([parse_document(text.encode()) for text in all_news()[:50]], {}, "plain")
    return [{"name": f"q{i}", "path": path} for i, path in enumerate(islice(drawn, count))]


def news_documents(count: int, seed: int) -> list[str]:
    chosen = np.random.default_rng(seed + 2).integers(0, NEWS, count)
    return [all_news()[i] for i in chosen.tolist()]


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
PATHS = Work(
    "paths",
    f"create stream {STREAM}",
    f"create query {{name}} using xscl as {STREAM}{{path}};",
    path_rows,
    news_documents,
    (LXML,),
    statements=True,
    closely=10,
)
WORKS = (TEXT, BOXES, PATHS)

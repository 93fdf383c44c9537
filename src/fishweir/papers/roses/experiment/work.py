"""Generates keyword filters over feed items for the RoSeS experiments.

In: real items (or generated ones of the same shape) and a number of filters. Out: filters with and, or and not, as
normal forms with constants, and as plain clauses for the contestants that do not use normal forms. A keyword is drawn
in proportion to the number of items that contain it, as in section 6. The most frequent words, to which nobody would
subscribe, are omitted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from fishweir.algebra.clauses import constants_of, to_normals
from fishweir.algebra.feeds import Filter, Selection
from fishweir.algebra.formula import And, Atom, Formula, Not, Or
from fishweir.algebra.nodes import Constant, Slot, Source
from fishweir.algebra.texts import words
from fishweir.evaluate.query_rows import QueryRow
from fishweir.papers.experiment.data import data_folder

SOURCE = Source("items")
STOP_WORDS, VOCABULARY = 200, 20_000
SHORTEST = 3


@dataclass(frozen=True)
class Items:
    """Texts of feed items, and their origin."""

    texts: list[str]
    source: str

    @cached_property
    def frequencies(self) -> list[tuple[str, int]]:
        """Words with the number of items that have them, the most frequent first."""
        counts = Counter(word for text in self.texts for word in words(text) if len(word) >= SHORTEST)
        return sorted(counts.items(), key=lambda item: (-item[1], item[0]))

    @cached_property
    def keywords(self) -> tuple[list[str], NDArray[np.float64]]:
        """The keywords of filters, with the share of items that contain each."""
        chosen = self.frequencies[STOP_WORDS : STOP_WORDS + VOCABULARY]
        return [word for word, _ in chosen], np.array([n for _, n in chosen]) / len(self.texts)


def load_items(count: int, seed: int = 7) -> Items:
    """An evenly spaced sample of the real items; without them, texts whose words follow Zipf's law."""
    folder = data_folder("rss_items_2025")
    rng = np.random.default_rng(seed)
    if folder is None:
        ranks = rng.zipf(1.1, size=(count, 40)) % 60_000
        return Items([" ".join(f"w{rank:x}x" for rank in row) for row in ranks], "generated items, words by Zipf's law")
    table = pq.read_table(folder / "items.parquet", columns=["title", "description"])
    chosen = np.sort(rng.permutation(len(table))[:count])
    rows = table.take(chosen).to_pylist()
    texts = [f"{row['title'] or ''} {row['description'] or ''}" for row in rows]
    return Items(texts, f"rss_items_2025, {len(texts):,} of {len(table):,} items")


# A filter's form: clauses that must all hold, each a list of (position of the keyword, whether it must occur).

Form = tuple[tuple[tuple[int, bool], ...], ...]
FORMS: tuple[tuple[float, Form], ...] = (
    (0.10, (((0, True),),)),
    (0.30, (((0, True),), ((1, True),))),
    (0.15, (((0, True),), ((1, True),), ((2, True),))),
    (0.15, (((0, True),), ((1, True), (2, True)))),
    (0.15, (((0, True),), ((1, True),), ((2, False),))),
    (0.05, (((0, True), (1, True)), ((2, False),))),
    (0.10, (((0, True), (1, True)), ((2, True), (3, True)))),
)


@dataclass(frozen=True)
class KeywordFilter:
    form: Form
    keywords: tuple[str, ...]

    @property
    def clauses(self) -> list[list[tuple[str, bool]]]:
        return [[(self.keywords[place], wanted) for place, wanted in clause] for clause in self.form]


def keyword_filters(items: Items, n: int, seed: int = 11) -> list[KeywordFilter]:
    rng = np.random.default_rng(seed)
    vocabulary, shares = items.keywords
    weights = np.cumsum(shares / shares.sum())
    forms = rng.choice(len(FORMS), size=n, p=[share for share, _ in FORMS])
    drawn = np.searchsorted(weights, rng.random((n, 4))).clip(max=len(vocabulary) - 1)
    return [
        KeywordFilter(FORMS[form][1], tuple(vocabulary[i] for i in row[: _places(FORMS[form][1])]))
        for form, row in zip(forms.tolist(), drawn.tolist(), strict=True)
    ]


def _places(form: Form) -> int:
    return 1 + max(place for clause in form for place, _ in clause)


def to_selection(form: Form) -> Selection:
    """The common shape of all filters of one form."""
    slots = tuple(Slot(i, "string") for i in range(_places(form)))

    def literal(place: int, wanted: bool) -> Formula:
        atom = Atom((), "contains", slots[place])
        return atom if wanted else Not(atom)

    clauses = tuple(Or(tuple(literal(*one) for one in clause)) for clause in form)
    return Selection((Filter(SOURCE, And(clauses)),), slots=slots)


def to_rows(filters: Sequence[KeywordFilter]) -> Iterator[QueryRow]:
    """Filters in the planner's form, numbered from 0."""
    shapes = {form: to_normals(to_selection(form)) for _, form in FORMS}
    for number, one in enumerate(filters):
        keywords: tuple[Constant, ...] = one.keywords
        for normal in shapes[one.form]:
            yield number, normal.template, constants_of(normal, keywords)

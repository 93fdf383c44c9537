"""Contestants that match keyword filters with items: Fishweir's plan, a plan without sharing, and simple good
solutions.

Each is built from the filters (registration) and then returns all (item, filter) pairs for a batch of texts. Tokenizing
is part of matching for all contestants, and timed separately.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import ahocorasick
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fishweir.algebra.texts import words
from fishweir.evaluate.arrays import expand
from fishweir.evaluate.plan.segments import build_groups
from fishweir.evaluate.select.filters import ROOT_PATH, FilterTable, match_filters
from fishweir.evaluate.statistics import Statistics
from fishweir.evaluate.witnesses.path_tables import PathTable
from fishweir.papers.roses.experiment.work import KeywordFilter, to_rows
from fishweir.papers.roses.filters import planned_by
from fishweir.papers.roses.naive import naive_plan

Pairs = tuple[NDArray[np.int64], NDArray[np.int64]]


class Shared:
    """The plan that VCA with VCB chooses, run as in the match stage."""

    name = "VCA with VCB"

    def __init__(self, filters: Sequence[KeywordFilter], statistics: Statistics) -> None:
        (table,) = build_groups(to_rows(filters), statistics)
        assert isinstance(table, FilterTable)
        self.table = table

    def tokenize(self, texts: Sequence[str]) -> PathTable:
        nodes = np.zeros((len(texts), 1), np.int64)
        values = PathTable(np.arange(len(texts)), nodes, pa.array(texts, pa.large_string()))
        _ = values.words
        return values

    def match(self, values: PathTable) -> Any:
        return match_filters(self.table, {ROOT_PATH: values})

    def pairs(self, found: Any) -> Pairs:
        if found is None:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        rows = np.repeat(np.arange(len(found)), np.diff(found.slice_offsets) // 2)
        source, positions = expand(found.slices[::2], found.slices[1::2])
        listed = np.repeat(np.arange(len(found)), np.diff(found.member_offsets))
        documents = found.documents[np.concatenate([rows[source], listed])]
        return documents, np.concatenate([self.table.members[positions], found.members])


class Unshared(Shared):
    """The same kernel and the same index by the rarest clause, with each conjunction directly below `true`."""

    name = "each alone, same kernel"

    def __init__(self, filters: Sequence[KeywordFilter], statistics: Statistics) -> None:
        (table,) = build_groups(to_rows(filters), statistics)
        assert isinstance(table, FilterTable)
        self.table = planned_by(lambda predicates, _: naive_plan(predicates), table)


class Naive:
    """Each filter alone on the words of each item."""

    name = "naive"

    def __init__(self, filters: Sequence[KeywordFilter], statistics: Statistics) -> None:
        self.filters = [one.clauses for one in filters]

    def tokenize(self, texts: Sequence[str]) -> list[frozenset[str]]:
        return [words(text) for text in texts]

    def match(self, batch: list[frozenset[str]]) -> list[tuple[int, int]]:
        return [
            (item, number)
            for item, has in enumerate(batch)
            for number, clauses in enumerate(self.filters)
            if all(any((word in has) == wanted for word, wanted in clause) for clause in clauses)
        ]

    def pairs(self, found: list[tuple[int, int]]) -> Pairs:
        both = np.array(found, dtype=np.int64).reshape(-1, 2)
        return both[:, 0], both[:, 1]


class RarestWord(Naive):
    """Each filter is indexed by the rarest word of its best clause; candidates are checked."""

    name = "rarest word"

    def __init__(self, filters: Sequence[KeywordFilter], statistics: Statistics) -> None:
        super().__init__(filters, statistics)
        counts = dict(next(iter(statistics.values())).words)
        self.listed: dict[str, list[tuple[int, Any]]] = defaultdict(list)
        for number, clauses in enumerate(self.filters):
            certain = [clause for clause in clauses if all(wanted for _, wanted in clause)]
            best = min(certain, key=lambda clause: sum(counts.get(word, 0) for word, _ in clause))
            rest = [clause for clause in clauses if clause is not best or len(best) > 1]
            for word, _ in best:
                self.listed[word].append((number, rest))

    def match(self, batch: list[frozenset[str]]) -> list[tuple[int, int]]:
        listed = self.listed
        return [
            (item, number)
            for item, has in enumerate(batch)
            for number, rest in {n: r for word in has if word in listed for n, r in listed[word]}.items()
            if all(any((word in has) == wanted for word, wanted in clause) for clause in rest)
        ]


class AhoCorasick(RarestWord):
    """The same with an automaton that finds the words of all filters in the text, without tokenizing."""

    name = "Aho-Corasick"

    def __init__(self, filters: Sequence[KeywordFilter], statistics: Statistics) -> None:
        super().__init__(filters, statistics)
        self.automaton = ahocorasick.Automaton()
        for word in {word for clauses in self.filters for clause in clauses for word, _ in clause}:
            self.automaton.add_word(word, word)
        self.automaton.make_automaton()

    def tokenize(self, texts: Sequence[str]) -> list[frozenset[str]]:
        found = []
        for text in (text.lower() for text in texts):
            has = set()
            for end, word in self.automaton.iter(text):
                after, before = end + 1, end - len(word)
                whole = (before < 0 or not _in_word(text[before])) and (after == len(text) or not _in_word(text[after]))
                if whole:
                    has.add(word)
            found.append(frozenset(has))
        return found


def _in_word(letter: str) -> bool:
    return letter.isalnum() or letter == "_"

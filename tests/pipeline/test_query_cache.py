"""Columns of queries do not depend on earlier lookups, and each query is looked up once."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from fishweir.algebra.nodes import DERIVED
from fishweir.algebra.path_queries import paths_over
from fishweir.pipeline import column_cache, query_cache
from fishweir.pipeline.query_cache import QueryCache


@dataclass(frozen=True)
class Query:
    name: str
    shape: int
    constants: tuple[Any, ...]
    added: int
    preferred: bool


SHAPES = ("one shape", "alternatives", "bound", paths_over("S"))
PATHS = ("//a", "//b/c")
QUERIES = {
    number: Query(
        f"{DERIVED if number % 7 == 0 else ''}q{number}",
        number % 4,
        (PATHS[number // 4 % 2], number) if number % 4 == 3 else (number % 3,),
        added=number * 3,
        preferred=number % 5 == 0,
    )
    for number in range(1, 200)
}


class Source:
    def __init__(self) -> None:
        self.looked_up: list[int] = []

    def query_columns(self, numbers: list[int]) -> tuple[list[Any], ...]:
        self.looked_up += numbers
        found = [(number, QUERIES[number]) for number in reversed(numbers)]
        rows = [(number, one.name, one.shape, one.added, one.preferred) for number, one in found]
        return tuple([row[place] for row in rows] for place in range(5))

    def shape(self, id: int) -> Any:
        return SHAPES[id]

    def constants(self, numbers: list[int]) -> dict[int, tuple[Any, ...]]:
        assert all(QUERIES[number].shape >= 2 for number in numbers), "other queries do not need theirs"
        return {number: QUERIES[number].constants for number in reversed(numbers)}


@pytest.fixture(autouse=True)
def shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_cache, "is_bound_when_read", lambda shape: shape == "bound")
    monkeypatch.setattr(query_cache, "several", lambda shape: shape == "alternatives")


def array(numbers: Iterable[int]) -> Any:
    return np.array(sorted(numbers), np.int64)


def check(found: query_cache.QueryColumns, numbers: Iterable[int]) -> None:
    wanted = [QUERIES[number] for number in sorted(numbers)]
    assert found.numbers.tolist() == sorted(numbers)
    assert found.names.to_pylist() == [query.name for query in wanted]
    assert found.listed_names.tolist() == [query.name for query in wanted]
    assert found.added.tolist() == [query.added for query in wanted]
    assert found.several.tolist() == [query.shape == 1 for query in wanted]
    assert found.derived.tolist() == [query.name.startswith(DERIVED) for query in wanted]
    assert [kind.preferred for kind in found.shown] == [query.preferred for query in wanted]
    for kind, query in zip(found.shown, wanted, strict=True):
        assert kind.constants == (query.constants if query.shape == 2 else ())
        assert kind.shape == SHAPES[query.shape] if query.shape < 3 else kind.shape.blocks
    shown = [(one.shape, one.preferred, one.constants[: max(0, one.shape - 1)][:1]) for one in wanted]
    assert len(set(zip(found.kinds.tolist(), shown, strict=True))) == len(set(shown)) == len(set(found.kinds.tolist()))


@pytest.mark.parametrize(("few", "remembered"), [(1, 1_000), (5, 1_000), (1_000, 1_000), (5, 40), (1_000, 40), (1, 0)])
def test_columns_match_the_queries(monkeypatch: pytest.MonkeyPatch, few: int, remembered: int) -> None:
    monkeypatch.setattr(column_cache, "FEW", few)
    monkeypatch.setattr(query_cache, "REMEMBERED", remembered)
    source = Source()
    known, draw = QueryCache(source), random.Random(1)
    for size in (0, 1, 3, 30, 2, 7, 25, 1, 60, 10, 10, 5):
        numbers = draw.sample(sorted(QUERIES), size)
        check(known.of(array(numbers)), numbers)
    if remembered == 1_000:
        assert len(source.looked_up) == len(set(source.looked_up))


@pytest.mark.parametrize("remembered", [30, 1_000])
def test_threads_share_the_cache(monkeypatch: pytest.MonkeyPatch, remembered: int) -> None:
    monkeypatch.setattr(column_cache, "FEW", 3)
    monkeypatch.setattr(query_cache, "REMEMBERED", remembered)
    known, errors = QueryCache(source := Source()), list[BaseException]()

    def ask(seed: int) -> None:
        draw = random.Random(seed)
        try:
            for _ in range(50):
                numbers = draw.sample(sorted(QUERIES), draw.randrange(20))
                check(known.of(array(numbers)), numbers)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    if remembered == 1_000:
        assert len(source.looked_up) == len(set(source.looked_up))

"""Columns of queries do not depend on earlier lookups, and each query is looked up once."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
import pytest

from fishweir.algebra.nodes import DERIVED
from fishweir.pipeline import query_cache
from fishweir.pipeline.query_cache import QueryCache


@dataclass(frozen=True)
class Query:
    name: str
    shape: object
    constants: tuple[()] = ()
    added: int = 0
    preferred: bool = False


SHAPES = ("one shape", "another")
QUERIES = {
    number: Query(f"{DERIVED if number % 7 == 0 else ''}q{number}", SHAPES[number % 2], added=number * 3)
    for number in range(1, 200)
}


@pytest.mark.parametrize(("few", "remembered"), [(1, 1_000), (5, 1_000), (1_000, 1_000), (5, 40), (1_000, 40), (1, 0)])
def test_columns_match_the_queries(monkeypatch: pytest.MonkeyPatch, few: int, remembered: int) -> None:
    monkeypatch.setattr(query_cache, "FEW", few)
    monkeypatch.setattr(query_cache, "REMEMBERED", remembered)
    monkeypatch.setattr(query_cache, "is_bound_when_read", lambda shape: False)
    monkeypatch.setattr(query_cache, "several", lambda shape: shape == SHAPES[1])
    looked_up: list[int] = []

    def look_up(numbers: list[int]) -> dict[int, Query]:
        looked_up.extend(numbers)
        return {number: QUERIES[number] for number in reversed(numbers)}

    known, draw = QueryCache(look_up), random.Random(1)
    for size in (0, 1, 3, 30, 2, 7, 25, 1, 60, 10, 10, 5):
        numbers = sorted(draw.sample(sorted(QUERIES), size))
        found = known.of(np.array(numbers, np.int64))
        wanted = [QUERIES[number] for number in numbers]
        assert found.numbers.tolist() == numbers
        assert found.queries.tolist() == wanted
        assert found.names.tolist() == [query.name for query in wanted]
        assert found.added.tolist() == [query.added for query in wanted]
        assert found.several.tolist() == [query.shape == SHAPES[1] for query in wanted]
        assert found.derived.tolist() == [query.name.startswith(DERIVED) for query in wanted]
        kinds = dict(zip(found.kinds.tolist(), (query.shape for query in wanted), strict=True))
        assert [kinds[kind] for kind in found.kinds.tolist()] == [query.shape for query in wanted]
    if remembered == 1_000:
        assert len(looked_up) == len(set(looked_up))

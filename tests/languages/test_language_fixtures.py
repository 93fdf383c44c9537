"""Fixture files: the text of a query and the algebra it compiles to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fishweir.algebra.nodes import CreateQuery
from fishweir.languages.script import parse_script
from fishweir.languages.skeleton import SkeletonCache
from tests.languages.algebra_text import algebra_text

FIXTURES = Path(__file__).parent / "fixtures"


def cases() -> Iterator[object]:
    for file in sorted(FIXTURES.glob("*.txt")):
        for case in file.read_text(encoding="utf-8").split("=== ")[1:]:
            title, _, rest = case.partition("\n")
            query, _, algebra = rest.partition("\n---\n")
            yield pytest.param(query, algebra.strip(), id=f"{file.stem}: {title}")


@pytest.mark.parametrize(("query", "algebra"), list(cases()))
def test_compiles_to(query: str, algebra: str) -> None:
    cache = SkeletonCache()
    for _ in ("in full", "from the cache"):
        (statement,) = parse_script(query + ";", now=1000.0, cache=cache)
        assert isinstance(statement, CreateQuery)
        assert algebra_text(statement) == algebra
        assert statement.text == query


def test_all_figures_are_there() -> None:
    assert len(list(cases())) >= 23

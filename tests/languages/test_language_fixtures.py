"""Fixture files: the text of a query and the algebra it compiles to."""

from __future__ import annotations

import pytest

from fishweir.algebra.nodes import CreateQuery
from fishweir.languages.script import parse_script
from fishweir.languages.skeleton import SkeletonCache
from tests.languages.algebra_text import algebra_text
from tests.languages.cases import fixture_cases


@pytest.mark.parametrize(("query", "algebra"), list(fixture_cases()))
def test_compiles_to(query: str, algebra: str) -> None:
    cache = SkeletonCache()
    for _ in ("in full", "from the cache"):
        (statement,) = parse_script(query + ";", now=1000.0, cache=cache)
        assert isinstance(statement, CreateQuery)
        assert algebra_text(statement) == algebra
        assert statement.text == query


def test_all_figures_have_fixtures() -> None:
    assert len(list(fixture_cases())) >= 23

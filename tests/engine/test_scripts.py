"""A script of many statements of one form registers the same queries as its statements one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fishweir import testing
from fishweir.algebra.path_queries import own_shape
from fishweir.engine.weir import Weir
from fishweir.errors import QueryError
from fishweir.languages import series
from fishweir.languages.bulk import render_rows
from fishweir.papers.way.registered import LANGUAGES, SETUP

COUNT = 110
SEPARATORS = (";\n", ";", " -- it's; a comment\n;\n", ";;\n\n", " <!-- ; --> ;")


@pytest.fixture(autouse=True)
def short_series(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(series, "LEAST", 32)


def statements(template: str, row: Any) -> list[str]:
    found = list(render_rows(template, [{"name": f"n{i}", **row(i)} for i in range(COUNT)]))
    found[3] = found[3].replace("create", "CREATE ", 1)
    found[90] = found[90].replace(" ", "  ")
    return found


def registered(weir: Weir) -> list[tuple[Any, ...]]:
    queries = [weir.catalog.query(name) for name in weir.catalog.names()]
    return [(q.name, q.text, *own_shape(q.shape, q.constants), q.schedule) for q in queries if q is not None]


@pytest.mark.parametrize("most", [20_000, 33])
@pytest.mark.parametrize(("template", "row"), [(template, row) for _, template, row in LANGUAGES])
def test_a_script_equals_its_statements(
    tmp_path: Path, template: str, row: Any, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script with more than `most` statements is read in several parts."""
    monkeypatch.setattr(series, "MOST", most)
    texts = statements(template, row)
    script = "".join(text + SEPARATORS[i % len(SEPARATORS)] for i, text in enumerate(texts))
    with testing.open(tmp_path / "one") as one, testing.open(tmp_path / "other") as other:
        for weir in (one, other):
            weir.execute(SETUP)
        assert one.execute(script) == [name for text in texts for name in other.execute(text)]
        assert registered(one) == registered(other)
        assert len(registered(one)) == COUNT


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("create query bad as select x from R where x >", "line 60, column .*query bad: .*expected"),
        ("create query bad as select x from R where x > 1e999", "line 60, column .*query bad: "),
        ("create query '' as select x from R where x > 5", "line 60, column 14: expected the query's name, found an"),
        ("create query bad as select x from Z where x > 5", "line 60, column .*query bad reads Z"),
        ("create query bad as select x from R where z > 5", "line 60, column .*query bad reads z"),
        ("create query R as select x from R where x > 5", "query R: there is already a stream with this name"),
        ("create query q1 as select x from R where x > 5", "query q1 already exists with a different definition"),
    ],
)
def test_a_faulty_statement_is_named(tmp_path: Path, fault: str, message: str) -> None:
    texts = [f"create query q{i} as select x from R where x > {i}" for i in range(100)]
    texts[59] = fault
    with testing.open(tmp_path / "home") as weir:
        weir.execute(SETUP)
        with pytest.raises(QueryError, match=message):
            weir.execute(";\n".join(texts))
        assert weir.catalog.names() == []


def test_contradictory_constants_are_named(tmp_path: Path) -> None:
    texts = [f"create query q{i} as select x from R where x > {i} and x < 80" for i in range(100)]
    with testing.open(tmp_path / "home") as weir:
        weir.execute(SETUP)
        with pytest.raises(QueryError, match=r"line 81, column .*query q80 can never fire"):
            weir.execute(";\n".join(texts))

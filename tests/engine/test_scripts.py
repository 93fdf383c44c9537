"""A script of many statements of one form registers the same queries as its statements one by one."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from fishweir import testing
from fishweir.algebra.path_queries import own_shape
from fishweir.algebra.uniform_queries import MixedQueries
from fishweir.engine.weir import Weir
from fishweir.errors import QueryError
from fishweir.languages import series
from fishweir.languages.bulk import render_rows
from fishweir.languages.script import parse_for_storage
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


PLAIN = [one for one in LANGUAGES if "feeds" not in one[0]]
UNNAMED = ("select x from R where x > {}", "S/a/b[c = 'v{}']/d[1]", "select w from R where w contains 'v{}'")


def numbered(weir: Weir) -> list[tuple[Any, ...]]:
    """The queries in the order of registration, with their numbers and changes."""
    queries = [weir.catalog.query(name) for name in weir.catalog.names()]
    return sorted((q.number, q.added, q.name, q.text, str(q.schedule)) for q in queries if q is not None)


def test_a_script_of_alternating_forms_equals_its_statements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(series, "MOST", 300)
    r = random.Random(3)
    texts = [f"select x from R where x > {i}" for i in range(9)]
    for i in range(900):
        _, template, row = r.choice(PLAIN)
        named = next(iter(render_rows(template, [{"name": f"n{i}", **row(i)}])))
        texts.append(r.choice([named, named, UNNAMED[i % 3].format(i), f"{named} start '2099-01-01'"]))
    texts.insert(700, texts[3])
    texts.insert(800, texts[650])
    script = "".join(text + SEPARATORS[i % len(SEPARATORS)] for i, text in enumerate(texts))
    assert any(isinstance(one, MixedQueries) for one in parse_for_storage(script, 0.0))
    with testing.open(tmp_path / "one") as one, testing.open(tmp_path / "other") as other:
        for weir in (one, other):
            weir.execute(SETUP)
        assert one.execute(script) == [name for text in texts for name in other.execute(text)]
        assert registered(one) == registered(other)
        assert numbered(one) == numbered(other)


def test_alternating_queries_fire(tmp_path: Path) -> None:
    """They are planned during the registration, because they are many."""
    forms = ("create query a{0} as select x from R where x = {0}", "create query b{0} as select y from R where y = {0}")
    texts = [form.format(i) for i in range(600) for form in forms]
    with testing.open(tmp_path / "home") as weir:
        weir.execute(SETUP)
        weir.execute(";\n".join(texts))
        weir.publish("R", [{"x": 500, "y": 30, "w": ""}])
        weir.run(until_idle=True)
        assert sorted(result.query for result in weir.results()) == ["a500", "b30"]
        weir.drop_many([f"a{i}" for i in range(600)])
        weir.publish("R", [{"x": 500, "y": 30, "w": ""}])
        weir.run(until_idle=True)
        assert sorted(result.query for result in weir.results()) == ["a500", "b30", "b30"]


@pytest.mark.parametrize(
    ("faults", "message"),
    [
        ({150: "x > 5 and x < 3", 151: "x > 5 and x < 2"}, "line 151, column .*query n150 can never fire"),
        ({151: "x > 5 and x < 3", 152: "x > 5 and x < 2"}, "line 152, column .*query n151 can never fire"),
        ({160: "x > 5 and x <", 171: "x > 5 and x < 2"}, "line 161, column .*expected"),
        ({160: "x > 5 and x < 1e999", 151: "x > 5 and x < 2"}, "line 161, column "),
    ],
)
def test_the_first_error_of_alternating_forms_is_named(tmp_path: Path, faults: dict[int, str], message: str) -> None:
    """A script is parsed before its statements are bound."""
    conditions = [faults.get(i, f"x > {i} and x < {i + 9}") for i in range(200)]
    texts = [f"create query n{i} as select {'xy'[i % 2]} from R where {one}" for i, one in enumerate(conditions)]
    with testing.open(tmp_path / "home") as weir:
        weir.execute(SETUP)
        with pytest.raises(QueryError, match=message):
            weir.execute(";\n".join(texts))
        assert weir.catalog.names() == []


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("create query n3 as select x from R where x > 1", "query n3 already exists with a different definition"),
        ("create query R as select x from R where x > 1", "line 151.*there is already a stream with this name"),
    ],
)
def test_names_that_alternating_forms_cannot_have(tmp_path: Path, fault: str, message: str) -> None:
    texts = [f"create query n{i} as select {'xy'[i % 2]} from R where x > {i}" for i in range(200)]
    texts[150] = fault
    texts[151] = "create query n5 as select y from R where x > 1"
    with testing.open(tmp_path / "home") as weir:
        weir.execute(SETUP)
        with pytest.raises(QueryError, match=message):
            weir.execute(";\n".join(texts))
        assert weir.catalog.names() == []


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

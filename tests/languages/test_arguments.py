"""Queries that differ in the arguments of their actions share a parse, in every language, and keep their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from fishweir import QueryError, testing
from fishweir.algebra.nodes import Action, CreateQuery
from fishweir.algebra.uniform_queries import UniformQueries
from fishweir.languages.many import parse_rows
from fishweir.languages.script import parse_for_storage, parse_script
from fishweir.languages.skeleton import SkeletonCache

STREAMS = "create stream R (x int, s string); create stream D; "
QUERIES = {
    "SQL": "create query {0} as select s from R where x > {1} do mail '{2}' every 1 hour",
    "SQL, two actions": "create query {0} as select s from R where x > {1} do http '{2}' do mail 'all@example.org'",
    "XSCL": "create query {0} as D//a->b[./c={1}] do mail '{2}'",
    "RoSeS": "create query {0} as from D as $d where $d[c contains 'w{1}'] do mail '{2}' start '2027-01-01T00:00:00Z'",
    "NiagaraCQ": "create {0} where <a><b>{1}</b><c>$c</c></a> in 'D' construct <r>$c</r> do mail '{2}'",
    "XQuery": "create query {0} as for $a in stream('D')/a where $a/b = {1} return <x>{{$a/c}}</x> do mail '{2}'",
}
TARGETS = ["http://example.org/{}", "http://example.org/it''s/{}", "http://example.org/w3/{}"]


def statements(query: str, count: int) -> list[str]:
    return [query.format(f"q{i}", i, TARGETS[i % 3].format(i)) for i in range(count)]


@pytest.mark.parametrize("language", QUERIES)
def test_cached_statements_equal_full_parses(language: str) -> None:
    cache = SkeletonCache()
    for text in statements(QUERIES[language], 7):
        (cached,), (full,) = parse_script(text, 0.0, cache), parse_script(text, 0.0, SkeletonCache())
        assert cached == full
    assert cache.size == 1


@pytest.mark.parametrize("language", QUERIES)
def test_a_script_of_them_is_read_together(language: str) -> None:
    texts = statements(QUERIES[language], 150)
    found: list[CreateQuery] = []
    together = 0
    for one in parse_for_storage(";\n".join(texts), 0.0, SkeletonCache()):
        assert isinstance(one, CreateQuery | UniformQueries)
        together += isinstance(one, UniformQueries)
        found += [one] if isinstance(one, CreateQuery) else [one.one(place) for place in range(len(one))]
    assert together
    expected = parse_script(";\n".join(texts), 0.0, SkeletonCache())
    assert found == expected


def test_a_text_that_only_looks_like_an_argument_is_not_one() -> None:
    """The same text is in the output, where all queries of a template have the same."""
    query = "create {0} where <a><c>$c</c></a> in 'D' construct <r to='{1}'>$c</r> do mail '{1}'"
    cache = SkeletonCache()
    for i, text in enumerate(["a@example.org", "b@example.org"]):
        (found,) = parse_script(query.format(f"q{i}", text), 0.0, cache)
        assert found == parse_script(query.format(f"q{i}", text), 0.0, SkeletonCache())[0]


def test_rows_with_own_targets_are_one_group() -> None:
    rows = [{"name": f"q{i}", "x": i, "to": f"user{i}"} for i in range(5)]
    text = "create query $name as select s from R where x > $x do mail '$to@example.org'"
    (found,) = parse_rows(text, rows, 0.0)
    assert [found.actions_of(i) for i in range(5)] == [(Action("mail", (f"user{i}@example.org",)),) for i in range(5)]
    assert [found.one(i) for i in range(5)] == [
        parse_script(one.text, 0.0, SkeletonCache())[0] for one in map(found.one, range(5))
    ]


def test_each_query_is_delivered_to_its_own_target(tmp_path: Path) -> None:
    with testing.open(tmp_path / "home") as weir:
        weir.execute(STREAMS)
        rows = [{"name": f"q{i}", "x": i, "file": str(tmp_path / f"{i}.jsonl")} for i in range(150)]
        weir.register_many("create query $name as select s from R where x = $x do append $file", rows)
        weir.publish("R", [{"x": i, "s": f"text {i}"} for i in range(0, 150, 7)])
        weir.run(until_idle=True)
    for i in range(150):
        file = tmp_path / f"{i}.jsonl"
        assert file.exists() == (i % 7 == 0)
        assert not file.exists() or f'"text {i}"' in file.read_text()


def test_an_invalid_target_is_reported_with_its_query(tmp_path: Path) -> None:
    with testing.open(tmp_path / "home") as weir:
        weir.execute(STREAMS)
        rows = [{"name": f"q{i}", "x": i, "to": "nobody" if i == 120 else f"user{i}@example.org"} for i in range(150)]
        with pytest.raises(QueryError, match="q120"):
            weir.register_many("create query $name as select s from R where x = $x do mail $to", rows)
        assert not weir.catalog.subscribers()
        with pytest.raises(QueryError, match="there is no query q1"):
            weir.status("q1")

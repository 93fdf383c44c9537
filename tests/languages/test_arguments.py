"""Queries that differ in the arguments of their actions share a parse, in every language, and keep their own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fishweir import QueryError, testing
from fishweir.algebra.action_columns import Subscriptions
from fishweir.algebra.feeds import Unsubscribe
from fishweir.algebra.nodes import Action, CreateQuery
from fishweir.algebra.path_queries import own_query
from fishweir.algebra.uniform_queries import UniformQueries
from fishweir.languages.bulk import render_rows
from fishweir.languages.many import parse_rows, parse_subscriptions
from fishweir.languages.roses.language import parse_statement
from fishweir.languages.script import parse_for_storage, parse_script
from fishweir.languages.skeleton import SkeletonCache
from fishweir.languages.statement_text import StatementText
from fishweir.languages.subscriptions import SubscriptionCache

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


def test_paths_with_own_targets_are_one_group() -> None:
    paths = ["/a", "//b[@k = 'it''s']/c", "/a[b = 3]", "/*/@k"]
    rows = [{"name": f"q{i}", "path": path, "to": f"user{i}@example.org"} for i, path in enumerate(paths)]
    (found,) = parse_rows("create query $name as D$path do mail $to do mail 'all@example.org' every 1 hour", rows, 0.0)
    for place in range(4):
        one = found.one(place)
        assert [own_query(one)] == parse_script(one.text, 0.0, SkeletonCache())
        assert one.actions == (Action("mail", (f"user{place}@example.org",)), Action("mail", ("all@example.org",)))


def test_rows_between_paths_that_are_no_constants_are_parsed_alone() -> None:
    paths = ["/a->v", "/a", "/b", "/a[b < 'x']", "/c", "/a or /b"]
    rows = [{"name": f"q{i}", "path": path, "to": f"user{i}@example.org"} for i, path in enumerate(paths)]
    groups = list(parse_rows("create query $name as D$path do mail $to", rows[:5], 0.0))
    assert [len(group) for group in groups] == [1, 2, 1, 1]
    found = [own_query(group.one(place)) for group in groups for place in range(len(group))]
    assert found == [statement for one in found for statement in parse_script(one.text, 0.0, SkeletonCache())]
    with pytest.raises(QueryError, match="row 6: the value of the column 'path' is not a path"):
        list(parse_rows("create query $name as D$path do mail $to", rows, 0.0))


def test_a_script_of_paths_with_own_targets_is_read_together() -> None:
    texts = [f"create query q{i} as D/a{i}[b = {i}] do http '{TARGETS[i % 3].format(i)}' every 60" for i in range(150)]
    *alone, together = parse_for_storage(";\n".join(texts), 0.0, SkeletonCache())
    assert isinstance(together, UniformQueries)
    found = [one for one in alone if isinstance(one, CreateQuery)] + [together.one(i) for i in range(len(together))]
    assert [own_query(one) for one in found] == parse_script(";\n".join(texts), 0.0, SkeletonCache())


@pytest.mark.parametrize("text", ["subscribe to F output mail $to", "subscribe to F output mail $to every $n hours"])
def test_subscriptions_are_columns(text: str) -> None:
    rows = [{"to": f"it's {i}", "n": i % 3 + 1} for i in range(150)]
    script = ";\n".join(render_rows(text, rows))
    expected = parse_script(script, 0.0)
    (columns,) = parse_subscriptions(text, rows, 0.0)
    assert [replace(columns.one(i), line=i + 1) for i in range(150)] == [
        replace(one, line=i + 1)
        for i, one in enumerate(expected)  # type: ignore[type-var]
    ]
    *alone, together = parse_for_storage(script, 0.0)
    assert isinstance(together, Subscriptions)
    assert [*alone, *map(together.one, range(len(together)))] == expected


def test_subscriptions_with_an_invalid_interval_are_rejected() -> None:
    text = "subscribe to F output mail $to every $n hours"
    for wrong in (-1, "soon"):
        rows = [{"to": "a@example.org", "n": 1}] * 120 + [{"to": "a@example.org", "n": wrong}]
        with pytest.raises(QueryError) as alone:
            parse_script(next(iter(render_rows(text, rows[120:]))), 0.0)
        with pytest.raises(QueryError) as many:
            list(parse_subscriptions(text, rows, 0.0))
        with pytest.raises(QueryError) as script:
            parse_for_storage(";".join(render_rows(text, rows)), 0.0)
        assert alone.value.reason == many.value.reason == script.value.reason


def test_statements_that_end_subscriptions_share_a_parse() -> None:
    cache = SubscriptionCache()
    for feed, target in (("F", "a"), ("F", "it''s"), ("G", "c")):
        text = f"unsubscribe from '{feed}' output mail '{target}'"
        (full,) = parse_script(text, 0.0)
        assert isinstance(full, Unsubscribe)
        assert cache.find(text, 1) in (None, full)
        cache.keep(full, 0.0, lambda text, now: parse_statement(StatementText(text, 0, len(text)), 1, now))
        assert cache.find(text, 1) == full
    assert cache.find("unsubscribe from 'G' output mail 'd'", 1) == Unsubscribe(
        "G", Action("mail", ("d",)), "unsubscribe from 'G' output mail 'd'"
    )
    assert cache.find("unsubscribe from 'H' output mail 'd'", 1) is None

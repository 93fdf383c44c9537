"""Statements that are read together as a series are the same as those that are parsed one by one."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from hypothesis import example, given

from fishweir.algebra.feeds import CreateFeed, to_query
from fishweir.algebra.nodes import CreateQuery, Statement
from fishweir.algebra.path_queries import own_query
from fishweir.algebra.uniform_queries import MixedQueries, UniformQueries
from fishweir.errors import QueryError
from fishweir.languages import script, series
from fishweir.languages.bulk import render_rows
from fishweir.languages.script import parse_for_storage, parse_script
from fishweir.languages.skeleton import SkeletonCache
from fishweir.papers.way.registered import LANGUAGES
from tests import strategies as st
from tests.languages.test_language_skeleton import TEMPLATES, NoCache, damage, filled
from tests.languages.test_plain_paths import query

SEPARATORS = (";", ";\n", " ;; ", " -- a;\n;", "; <!-- ;\n -->\n", "\n;# it's;\n", " <!-- ' -->;", ";\r\n\t")
HEADS = ("create query q{} as ", "CREATE  Query q{}\nAS ", 'create query "q {}" as ', "create query q{} as\t")


@pytest.fixture(autouse=True)
def short_series(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(series, "LEAST", 2)
    monkeypatch.setattr(series, "MOST", 3)
    monkeypatch.setattr(script, "FEWEST_PATHS", 0)


def stored(text: str, cache: SkeletonCache) -> list[Statement] | str:
    try:
        return list(each(parse_for_storage(text, 0.0, cache)))
    except QueryError as error:
        return f"{type(error).__name__}: {error}"


def each(found: list[Statement | UniformQueries | MixedQueries]) -> Iterator[Statement]:
    for some in found:
        if isinstance(some, MixedQueries):
            assert len(some.parts) > 1
            assert sorted(some.places) == list(range(len(some)))
            assert list(some.names) == [one.name for one in some.statements()]
            yield from map(own_query, some.statements())
        elif isinstance(some, UniformQueries):
            assert some.first == some.one(0)
            yield from (own_query(some.one(place)) for place in range(len(some)))
        else:
            yield own_query(to_query(some)) if isinstance(some, (CreateQuery, CreateFeed)) else some


def parsed(text: str) -> list[Statement] | str:
    """The statements of a full parse of each."""
    try:
        return list(each([*parse_script(text, 0.0, NoCache())]))
    except QueryError as error:
        return f"{type(error).__name__}: {error}"


@st.composite
def scripts(draw: st.DrawFn) -> str:
    """Statements of up to three forms, in any order; one of them may be damaged."""
    templates = draw(st.lists(st.sampled_from((*TEMPLATES, *MORE)), min_size=1, max_size=3))
    statements = draw(st.lists(st.one_of([filled(one) for one in templates]), min_size=2, max_size=16))
    if draw(st.booleans()):
        at = draw(st.integers(0, len(statements) - 1))
        text = statements[at]
        cut, gone = draw(st.integers(0, len(text))), draw(st.integers(0, 3))
        statements[at] = text[:cut] + draw(damage) + text[cut + gone :]
    return "".join(one + draw(st.sampled_from(SEPARATORS)) for one in statements)


MORE = (
    "create query {name} as select x from R where x > {number} and y < {number}",
    "create query {name} as select x from R where s = {string} -- it's; a comment\n and x != {number}",
    "select x from R where s = {string} publish {name}",
    "create query {name} as S/a[b = {string}]/c[@d >= {number}]",
    "create query {name} as S/a[b = {string}] do append {string}",
    "create query {name} as S/a[k->x] followed by{x = y, {number}} S/b[k->y]",
    "create query {name} as for $d in stream('S')/a where $d/b = {string} return $d",
    "create query {name} as select distinct * from R where b is true",
)


@st.examples(400)
@given(scripts())
@example("create q where <a>5'</a> in s construct 'x';" * 3)
@example("create query a as select x from R where x > 5.;create query '' as select x from R where x > 5;" * 2)
@example("create query a as select x from R where x > 5;" * 3 + "create query b as select x from R where x > 1e999")
@example("create query a as select x from R where x > 5;" * 3 + "create query b as select x from R where x >")
@example("create query a as select x from R where x > 5;" * 3 + "create query b as select x from R where x > 'a")
@example("create query a as select x from R where x > 5;" * 3 + "create query a as select x from R where x > 50;")
@example("create stream s;" * 3 + "create or replace feed f from s;" * 3 + "create feed f from s;" * 3)
@example("create feed ' f ' from s where [t contains 'x'];" * 4)
def test_a_series_equals_its_statements(text: str) -> None:
    assert stored(text, SkeletonCache()) == parsed(text)


def test_paths_equal_their_statements() -> None:
    r = random.Random(5)
    for _ in range(300):
        some = [query(r).replace("my-stream", "S").replace("x.y", "S") for _ in range(2)]
        texts = [r.choice(HEADS).format(i) + r.choice((some[0], some[0], query(r), some[1])) for i in range(8)]
        text = "".join(one + r.choice(SEPARATORS) for one in texts)
        assert stored(text, SkeletonCache()) == parsed(text), text


@pytest.mark.parametrize(("template", "row"), [(template, row) for _, template, row in LANGUAGES])
@pytest.mark.parametrize("separator", [";\n", " ;\n\n-- it's;\n"])
def test_scripts_of_every_language_are_read_as_series(
    template, row, separator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(series, "MOST", 50)
    texts = list(render_rows(template, [{"name": f"n{i}", **row(i)} for i in range(100)]))
    found = parse_for_storage(separator.join(texts), 0.0, SkeletonCache())
    assert [len(some) for some in found if isinstance(some, UniformQueries)] == [50, 48]
    assert list(each(found)) == parsed(separator.join(texts))


@pytest.mark.parametrize("count", [2, 3, 8])
def test_forms_that_alternate_are_read_together(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(series, "LEAST", 5)
    monkeypatch.setattr(series, "MOST", 50)
    r, some = random.Random(7), [one for one in LANGUAGES if "feeds" not in one[0]][:count]
    written = [r.choice(some) for _ in range(300)]
    texts = [next(iter(render_rows(one[1], [{"name": f"n{i}", **one[2](i)}]))) for i, one in enumerate(written)]
    found = parse_for_storage(";\n".join(texts), 0.0, SkeletonCache())
    assert sum(len(one) for one in found if isinstance(one, MixedQueries)) > 200
    assert list(each(found)) == parsed(";\n".join(texts))


@pytest.mark.parametrize("form", ["S/a[b = 'x'] publish p{}", "create query p{} as S/a[b = 'x'] do append 'y'"])
def test_queries_that_others_read_or_with_actions_do_not_alternate(form: str) -> None:
    """The order in which they are bound, or in which their subscriptions are stored, matters."""
    texts = [
        text for i in range(20) for text in (form.format(i), f"create query n{i} as select x from R where x > {i}")
    ]
    found = parse_for_storage(";\n".join(texts), 0.0, SkeletonCache())
    assert not any(isinstance(one, MixedQueries) for one in found)
    assert list(each(found)) == parsed(";\n".join(texts))


def test_heads_may_differ_in_case_and_space() -> None:
    body = "select x from R where x > {}"
    text = ";".join(HEADS[i % 3].strip().format(i) + " " + body.format(i) for i in range(9))
    found = parse_for_storage(text.replace("\nAS", " as"), 0.0, SkeletonCache())
    assert [len(some) for some in found if isinstance(some, UniformQueries)] == [3, 3, 1]
    assert stored(text, SkeletonCache()) == parsed(text)


def test_a_statement_with_other_clauses_ends_a_series() -> None:
    plain, other = "create query q as S/a/b[c = 'x'];\n", "create query q as S/a/b every 5 s;\n"
    text = plain * 6 + other * 6 + "select x from R;\n" + plain * 3
    found = parse_for_storage(text, 0.0, SkeletonCache())
    sizes = [len(some) if isinstance(some, UniformQueries) else 1 for some in found]
    assert sizes == [1, 1, 3, 1, 1, 1, 3, 1, 1, 1, 2]
    assert [some.lines[0] for some in found if isinstance(some, UniformQueries)] == [3, 6, 9, 12, 15]

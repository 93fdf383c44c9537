"""Joins of three and more streams equal the oracle, with late and simultaneous documents, in any batches."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given

from fishweir.evaluate.join import pairs
from fishweir.evaluate.join.many.candidates import ByQuery
from fishweir.languages.script import parse_script
from tests import strategies as st
from tests.evaluate.join.many_support import Home, expected, query_of
from tests.evaluate.join.runs_support import parsed, what_is_needed
from tests.evaluate.join.test_sql_joins import batches_of, streams, windows

COLUMNS = "abc"
operators = st.sampled_from(["=", "=", "=", "<", "<=", ">", ">=", "!="])


@st.composite
def conditions(draw: st.DrawFn, names: str) -> str:
    """Mostly conjunctions of edges and constants, so that combinations match; also or, not and NULL."""
    parts = []
    for _ in range(draw(st.integers(1, 4))):
        one, two = draw(st.permutations(names))[:2]
        left, column = f"{one}.{draw(st.sampled_from(COLUMNS))}", draw(st.sampled_from(COLUMNS))
        kind = draw(st.sampled_from(["between", "between", "between", "constant", "constant", "own", "null", "or"]))
        match kind:
            case "between":
                parts.append(f"{left} {draw(operators)} {two}.{column}")
            case "constant":
                parts.append(f"{left} {draw(operators)} {draw(st.sampled_from(['0', '1', '2', repr('x')]))}")
            case "own":
                parts.append(f"{left} <= {one}.{column}")
            case "null":
                parts.append(f"{left} is {draw(st.sampled_from(['', 'not ', 'not ']))}null")
            case "or":
                parts.append(f"not ({left} {draw(operators)} {two}.{column} and {two}.{column} {draw(operators)} 1)")
    return " and ".join(parts)


@st.composite
def queries(draw: st.DrawFn, sizes: tuple[int, ...] = (3, 3, 3, 4)):
    names = "klmn"[: draw(st.sampled_from(sizes))]
    text = ", ".join(f"{draw(st.sampled_from('RST'))} [{draw(windows)}] as {name}" for name in names)
    return query_of(f"select * from {text} where {draw(conditions(names))}")


@st.composite
def like_queries(draw: st.DrawFn):
    """Queries of one template that differ in constants and windows."""
    ends = st.sampled_from(["0", "1", "3", "8"])
    rows = draw(st.booleans())
    for _ in range(draw(st.integers(2, 6))):
        last = f"rows {draw(st.integers(1, 4))}" if rows else f"range {draw(ends)}"
        where = f"k.a = l.a and l.b <= m.b and k.c >= {draw(ends)} and m.c < {draw(ends)}"
        yield query_of(
            f"select * from R [range {draw(ends)}] as k, S [range {draw(ends)}] as l, T [{last}] as m where {where}"
        )


cells = st.lists(st.none() | st.sampled_from(["0", "1", "1", "2", "2.5", "x"]), min_size=3, max_size=3)


@st.composite
def late(draw: st.DrawFn, size: int = 9):
    """Tuples in any order of their times, and where they are cut into batches."""
    rows = []
    for _ in range(draw(st.integers(3, size))):
        shown = "".join(f"<{c}>{v}</{c}>" for c, v in zip(COLUMNS, draw(cells), strict=True) if v is not None)
        rows.append((draw(st.sampled_from("RST")), f"<t>{shown}</t>", draw(st.sampled_from([0.0, 1.0, 2.0, 3.0, 5.0]))))
    return rows, sorted(draw(st.sets(st.integers(1, len(rows)), max_size=3)))


def cut(docs, cuts):
    ends = [0, *cuts, len(docs)]
    return [docs[a:b] for a, b in pairwise(ends) if b > a]


@st.examples(60)
@given(st.lists(queries(), min_size=1, max_size=4), late(), st.sampled_from([1, 3]), st.booleans(), st.booleans())
def test_batches_equal_oracle(some, stream, parts, apart, halves):
    batches = cut(parsed(stream[0]), stream[1])
    home = Home(some, apart=apart)
    for batch in batches:
        home.take(batch, parts=parts, halves=halves)
    assert home.results() == expected(some, batches)


@st.examples(40)
@given(st.builds(list, like_queries()), late(12), st.booleans(), st.booleans())
def test_constants_and_windows_of_one_template(some, stream, apart, merged):
    """Tables may be of several segments, and become one between micro-batches."""
    batches = cut(parsed(stream[0]), stream[1])
    home = Home(some, apart=apart, merge=lambda stage, runs: [stage.merged(runs)])
    for batch in batches:
        home.take(batch)
        if merged:
            home.merge_tables()
    assert home.results() == expected(some, batches)


@st.examples(40)
@given(st.lists(queries(), min_size=1, max_size=3), streams(10))
def test_dropped_state_is_not_needed(some, stream):
    """Documents in time order; only the state that windows still need is retained."""
    docs = parsed([(source if i % 3 else "T", text, time) for i, (source, text, time) in enumerate(stream[0])])
    batches = batches_of(docs, stream[1])

    def merge(stage, runs):
        return [stage.merged(runs, what_is_needed(stage, runs))]

    home = Home(some, merge=merge)
    for batch in batches:
        home.take(batch)
    assert home.results() == expected(some, batches)


@st.examples(40)
@given(st.lists(queries(sizes=(2,)), min_size=1, max_size=4), late())
def test_two_streams_are_a_special_case(some, stream):
    """The kernel for any number of sides agrees with joins of two."""
    docs = parsed(stream[0])
    home = Home(some)
    home.take(docs)
    assert home.results() == expected(some, [docs])


@st.examples(40)
@given(st.lists(queries(), min_size=1, max_size=3), late(), st.booleans())
def test_superseded_rows_join_no_later_documents(some, stream, merged):
    """R is a file that changes in place, `a` the key of its rows."""
    docs = parsed(stream[0])

    def keyed(document):
        return document.root.findtext("a") or ""

    order = {document.id: i for i, (_, document) in enumerate(docs)}
    versions = [(keyed(document), order[document.id]) for source, document in docs if source == "R"]

    def until(one):
        after = [at for key, at in versions if one[0] == "R" and key == keyed(docs[order[one]][1]) and at > order[one]]
        return min(after, default=len(docs))

    def in_force(ids):
        return all(order[other] < until(one) for one in ids for other in ids)

    home = Home(some, keyed=keyed, merge=(lambda stage, runs: [stage.merged(runs)]) if merged else None)
    batches = cut(docs, stream[1])
    for batch in batches:
        home.take(batch)
    assert home.results() == expected(some, batches, in_force)


def test_since_is_of_the_earliest_arrived():
    some = [query_of("select * from R [range 9], S [range 9], T [range 9] where R.a = S.a and S.a = T.a")]
    docs = parsed([(source, "<t><a>1</a></t>", float(i)) for i, source in enumerate("RSTT")])
    home = Home(some)
    for version, batch in enumerate([docs[:1], docs[1:2], docs[2:3], docs[3:]], 3):
        home.take(batch, version)
    assert [(row[1], row[4]) for row in home.found] == [(("R-0", "S-1", "T-2"), 3), (("R-0", "S-1", "T-3"), 3)]


def test_rows_bound_the_state():
    some = [query_of("select * from R [rows 2] as k, R [rows 3] as l, R [rows 1] as m where k.a = l.a and l.a = m.a")]
    docs = parsed([("R", "<t><a>1</a></t>", float(i)) for i in range(30)])
    sizes = []

    def merge(stage, runs):
        merged = stage.merged(runs, what_is_needed(stage, runs))
        sizes.append(len(merged))
        return [merged]

    home, batches = Home(some, merge=merge), [docs[i : i + 5] for i in range(0, 30, 5)]
    for batch in batches:
        home.take(batch)
    found = expected(some, batches)
    assert home.results() == found
    assert found
    assert max(sizes) == 3


def test_dead_queries_leave_their_tables():
    texts = [f"R.a = S.a and S.a = T.a and R.b > {i}" for i in range(3)]
    some = [query_of(f"select * from R [range 9], S [range 9], T [range 9] where {where}") for where in texts]
    docs = parsed([(source, "<t><a>1</a><b>5</b></t>", float(i)) for i, source in enumerate("RST")])
    home = Home(some)
    home.merge_tables(dead=[1])
    home.take(docs)
    assert sorted(row[0] for row in home.found) == [0, 2]


@pytest.mark.parametrize("graph", ["k.a = l.a and l.b < m.b", "k.a < l.a and l.a < m.a and m.b != k.b", "k.a = 1", ""])
def test_small_portions_find_the_same(graph, monkeypatch):
    """Chains, triangles, and graphs that fall into parts."""
    monkeypatch.setattr(pairs, "PAIRS_AT_ONCE", 3)
    sources = "R [range 5] as k, S [rows 3] as l, T [range unbounded] as m"
    some = [query_of(f"select * from {sources}" + (f" where {graph}" if graph else ""))]
    docs = parsed([("RST"[i % 3], f"<t><a>{i % 4}</a><b>{i % 5}</b></t>", float(i)) for i in range(18)])
    home, batches = Home(some), [docs[:7], docs[7:]]
    for batch in batches:
        home.take(batch)
    found = expected(some, batches)
    assert home.results() == found
    assert found


def test_lookup_by_the_remaining_queries():
    """If only constants select, documents are joined by the queries that select both."""
    looked_up = []
    found_by_query = ByQuery.found
    sources = "R [range 25] as k, S [range 30] as l, T [range 35] as m"
    some = [
        query_of(f"select * from {sources} where k.a < l.a and l.a <= m.a and k.b = {i % 7} and m.b in ({i % 5}, 9)")
        for i in range(35)
    ]
    docs = parsed([("RST"[i % 3], f"<t><a>{i * 7 % 40}</a><b>{i % 11}</b></t>", float(i)) for i in range(45)])
    home, batches = Home(some), [docs[:30], docs[30:35], docs[35:]]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ByQuery, "found", lambda *given: looked_up.append(1) or found_by_query(*given))
        for batch in batches:
            home.take(batch)
    assert looked_up
    found = expected(some, batches)
    assert home.results() == found
    assert found


def test_without_conditions_all_combinations_match():
    (statement,) = parse_script("select * from R [range 5], S [range 5], T [range 5]")
    assert len(statement.shape.blocks) == 3

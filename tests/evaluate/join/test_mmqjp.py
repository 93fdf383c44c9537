"""MMQJP, with and without views, and Sequential find what the oracle does."""

from __future__ import annotations

import pytest
from hypothesis import given

from fishweir.algebra.documents import Document, parse_document
from fishweir.algebra.nodes import Source
from fishweir.papers.mmqjp.mmqjp import Mmqjp
from fishweir.papers.mmqjp.sequential import Sequential, SequentialSql
from fishweir.papers.mmqjp.view_cache import ViewCache, to_slices
from tests import strategies as st
from tests.evaluate.join.support import FOLLOWED_BY, JOIN, documents, expected, join, node, processed, queries

pytest.importorskip("duckdb")
from fishweir.papers.mmqjp.duckdb_engine import DuckDBEngine

STRATEGIES = {
    "MMQJP": lambda: Mmqjp(DuckDBEngine()),
    "views": lambda: Mmqjp(DuckDBEngine(), "recomputed"),
    "cache": lambda: Mmqjp(DuckDBEngine(), "cached", cache_rows=20),
    "sequential": Sequential,
    "sequential, SQL": lambda: SequentialSql(DuckDBEngine()),
}


@given(st.lists(queries(), min_size=1, max_size=5), documents(), st.integers(1, 5))
@st.examples(20)
def test_all_agree_with_the_oracle(joins, arrivals, size):
    wanted = expected(joins, arrivals)
    for name, make in STRATEGIES.items():
        found, rows = processed(make(), joins, arrivals, size)
        assert found == wanted, name
        assert rows == len(found), name


@given(st.lists(queries(), min_size=1, max_size=5), documents(), st.integers(1, 5))
@st.examples(40)
def test_each_query_alone_agrees_with_the_oracle(joins, arrivals, size):
    found, rows = processed(Sequential(), joins, arrivals, size)
    assert found == expected(joins, arrivals)
    assert rows == len(found)


def arrivals(*texts):
    return [(Source("S"), Document(f"d{i}", t, parse_document(text.encode()))) for i, (t, text) in enumerate(texts)]


AUTHORS = arrivals(
    (0.0, "<a><b><k>x</k><l>1</l></b><b><k>y</k><l>2</l></b></a>"),
    (1.0, "<a><b><k>x</k><l>2</l></b></a>"),
    (1.0, "<a><b><k></k><l>2</l></b><b><k>y</k><l>2</l></b></a>"),
    (3.0, "<a><b><k></k><l>2</l></b></a>"),
)
SAME_B = join(
    node("a", node("b->p", node("k->x"), node("l->z"))), [("x", "=", "y"), ("z", "=", "w")],
    node("a", node("b->q", node("k->y"), node("l->w"))), JOIN,
)  # fmt: skip


@pytest.mark.parametrize("size", [1, 2, 4])
@pytest.mark.parametrize("name", STRATEGIES)
def test_bindings_agree_on_their_common_ancestor(name, size):
    """x and 2 are both in the first document, but not in the same b; empty values are equal, times may be too."""
    found, _ = processed(STRATEGIES[name](), [(SAME_B, (2.0,))], AUTHORS, size)
    assert found == expected([(SAME_B, (2.0,))], AUTHORS)
    assert {(left, right) for _, left, right, _ in found} == {("d0", "d2"), ("d2", "d0"), ("d2", "d3"), ("d3", "d2")}


def test_equal_queries_share_a_row():
    shape = join(node("//k->x"), [("x", "=", "y")], node("//k->y"))
    joins = [(shape, (1.0,)), (shape, (9.0,)), (shape, (1.0,))]
    shared, alone = Mmqjp(DuckDBEngine(), share_equal=True), Mmqjp(DuckDBEngine())
    counts = []
    for strategy in (shared, alone):
        strategy.register(joins)
        counts.append(sum(strategy.count([one]) for one in AUTHORS))
    assert len(shared.engine.run("select * from RT1")) == 2
    assert len(alone.engine.run("select * from RT1")) == 3
    assert counts[0].tolist() == counts[1].tolist()
    assert counts[0][0] == counts[0][2] < counts[0][1]


def test_later_queries_see_later_documents():
    strategy = Mmqjp(DuckDBEngine())
    first = join(node("//k->x"), [("x", "=", "y")], node("//k->y"))
    later = join(node("//l->x"), [("x", "=", "y")], node("//l->y"))
    strategy.register([(first, (9.0,))])
    strategy.process(AUTHORS[:1])
    strategy.register([(later, (9.0,))])
    counts = sum(strategy.count([one]) for one in AUTHORS[1:])
    assert counts.tolist() == [len(expected([(first, (9.0,))], AUTHORS)), len(expected([(later, (9.0,))], AUTHORS[1:]))]


def test_algorithm_5_keeps_slices_up_to_date():
    strategy = Mmqjp(DuckDBEngine(), "cached")
    strategy.register([(join(node("//k->x"), [("x", "=", "y")], node("//k->y"), FOLLOWED_BY), (99.0,))])
    for i in range(4):
        text = f"<a><k>same</k><k>own{i}</k></a>"
        strategy.process([(Source("S"), Document("d", float(i), parse_document(text.encode())))])
    assert "same" in strategy.cache
    assert "own0" not in strategy.cache
    assert (strategy.cache.misses, strategy.cache.hits) == (1, 2)
    assert strategy.cache.get("same")["docid"].to_pylist() == [0, 1, 2, 3]


def test_the_least_recently_used_slice_is_evicted_first():
    def rows(count):
        return strategy.engine.run(f"select 1 as docid, 's' as strVal from range({count})")

    strategy, cache = Mmqjp(DuckDBEngine()), ViewCache(most_rows=5)
    cache.put("a", rows(2))
    cache.put("b", rows(2))
    cache.get("a")
    cache.put("c", rows(2))
    assert [value in cache for value in "abc"] == [True, False, True]
    cache.put("big", rows(9))
    assert (len(cache), cache.rows) == (0, 0)


def test_a_view_is_cut_by_its_values():
    view = DuckDBEngine().run("select * from (values (1, 'x'), (2, ''), (3, 'x')) v(docid, strVal)")
    assert {value: part["docid"].to_pylist() for value, part in to_slices(view).items()} == {"x": [1, 3], "": [2]}

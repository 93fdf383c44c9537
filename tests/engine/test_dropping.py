"""Dropping many queries: by a list of names, by a pattern, by a script; all or none."""

from __future__ import annotations

import pytest

from fishweir import QueryError, QuerySyntaxError

SETTING = """
create stream R (x int);
create query a1 as select x from R where x > 1;
create query a2 as select x from R where x > 2;
create query A3 as select x from R where x > 3;
create query b_1 as select x from R where x > 4;
create query bx1 as select x from R where x > 5;
"""


@pytest.fixture
def five(weir):
    weir.execute(SETTING)
    return weir


def test_dropped_queries_do_not_fire(five):
    five.publish("R", [{"x": 9}])
    five.step()
    assert five.drop_many(["a1", "bx1"]) == 2
    five.publish("R", [{"x": 9}])
    five.step()
    assert [len(list(five.results(name))) for name in ("a1", "a2", "bx1", "b_1")] == [1, 2, 1, 2]


def test_all_or_none(five):
    with pytest.raises(QueryError, match="there is no query nobody"):
        five.drop_many(["a1", "nobody"])
    with pytest.raises(QueryError, match="there is no query a1"):
        five.execute("delete a1; delete a1")
    assert sorted(five.catalog.names()) == ["A3", "a1", "a2", "b_1", "bx1"]


@pytest.mark.parametrize(
    ("statement", "left"),
    [
        ("drop where name like 'a%'", ["A3", "b_1", "bx1"]),
        ("DROP QUERY WHERE name LIKE '%1'", ["A3", "a2"]),
        ("delete where name like 'b_1'", ["A3", "a1", "a2"]),
        (r"delete where name like 'b\_1'", ["A3", "a1", "a2", "bx1"]),
        ("drop query where name like 'x%'", ["A3", "a1", "a2", "b_1", "bx1"]),
        ("drop query a1", ["A3", "a2", "b_1", "bx1"]),
        ("drop where name like '%'", []),
    ],
)
def test_by_a_pattern(five, statement, left):
    five.execute(statement)
    assert sorted(five.catalog.names()) == left


def test_readers_are_dropped_before_their_sources(five):
    five.execute("create query P as select x from R publish P; create query Pr as select x from P where x > 1")
    with pytest.raises(QueryError, match="is read by Pr"):
        five.drop_many(["P"])
    five.execute("drop where name like 'P%'")
    assert "P" not in five.catalog.streams()


def test_feeds_are_dropped_unless_they_have_readers_or_subscribers(five):
    """Feeds without readers are not checked individually."""
    five.execute("create stream N; create feed f1 from N; create feed f2 from N; create feed f3 from f2")
    five.execute("drop where name like 'f1'; create feed f1 from N")
    with pytest.raises(QueryError, match="the feed f2 is read by f3"):
        five.drop_many(["f1", "f2"])
    five.execute("subscribe to f1 output file 'out.jsonl'")
    with pytest.raises(QueryError, match="the feed f1 has subscribers"):
        five.drop_many(["f1"])
    five.execute("unsubscribe from f1; drop where name like 'f%'")
    assert not [name for name in five.catalog.names() if name.startswith("f")]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("drop a1", "expected 'query NAME', 'feed NAME' or 'where name like"),
        ("drop where name like", "expected a pattern of names"),
        ("drop where name like 'x%' or", "expected the end of the statement"),
    ],
)
def test_errors(five, statement, message):
    with pytest.raises(QuerySyntaxError, match=message):
        five.execute(statement)

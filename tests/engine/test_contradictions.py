"""Statements that could never fire are refused when they are registered, and the message says why."""

from __future__ import annotations

import pytest

from fishweir import testing
from fishweir.errors import QueryError


@pytest.fixture
def weir(tmp_path):
    with testing.open(tmp_path / "home") as weir:
        weir.execute("""
            create stream R (x int, y double, n string, t timestamp);
            create stream S (x int, y double);
            create stream T (x int);
            create stream A; create stream B;
            create feed Joined from A as $a join last 9 days on B with $a[title = window.title];
        """)
        yield weir


def refused(weir, statement):
    with pytest.raises(QueryError) as caught:
        weir.execute(statement)
    error = caught.value
    pointed = None if error.line is None else statement.splitlines()[error.line - 1][error.column - 1 :]
    return error.reason, pointed


CONTRADICTORY = [
    ("x > 5 and x < 3", "no value of x is > 5 and < 3"),
    ("x > 5 and x <= 5", "no value of x is > 5 and <= 5"),
    ("x between 5 and 3", "no value of x is >= 5 and <= 3"),
    ("5 < x < 3", "no value of x is > 5 and < 3"),
    ("x = 5 and x = 7", "no value of x is = 5 and = 7"),
    ("x = 5 and x <> 5", "no value of x is = 5 and != 5"),
    ("x in (1, 2) and x > 2", "no value of x is > 2 and = 1"),
    ("not (x <= 5 or x >= 3)", "no value of x is > 5 and < 3"),
    ("n = 'a' and n = 'b'", 'no value of n is = "a" and = "b"'),
    ("t > '2025-02-01' and t < '2025-01-01T12:00Z'", "no value of t is > "),
    ("x > 5 and y > 1 and x < 3 or n > 'b' and n < 'a'", "no value of "),
    ("x is null and x > 5", "x cannot be null and have a value"),
    ("x is null and x < y", "x cannot be null and have a value"),
    ("x = null", "its condition is never true (no comparison with NULL is; write 'is null')"),
    ("x not in (1, null)", "its condition is never true"),
    ("false", "its condition is never true"),
]


@pytest.mark.parametrize(("condition", "reason"), CONTRADICTORY)
def test_contradictory(weir, condition, reason):
    found, pointed = refused(weir, f"create query q as select y from R where {condition}")
    assert found.startswith("query q can never fire: ")
    assert reason in found
    assert (pointed is None) == ("never true" in reason)


@pytest.mark.parametrize(
    "condition",
    [
        "x >= 5 and x <= 5",
        "x > 5 and x < 3 or x = 7",
        "x > 5 and y < 3",
        "x = 5 and x = 5",
        "x != 5 and x != 6",
        "x is null or x > 5",
        "n > 'a' and n > 5",
        "not (x > 5 and x < 3)",
        "true",
    ],
)
def test_satisfiable_conditions_are_registered(weir, condition):
    assert weir.execute(f"create query q as select y from R where {condition}") == ["q"]


def test_contradictory_in_joins(weir):
    of = "from R [range 9], S [rows 9] where R.x = S.x"
    found, pointed = refused(weir, f"create query q as select R.x {of} and S.y > 5 and S.y < 3")
    assert found == "query q can never fire: no value of y is > 5 and < 3"
    assert pointed == "y > 5 and S.y < 3"
    assert weir.execute(f"create query q as select R.x {of} and R.y > 5 and S.y < 3") == ["q"]


def test_contradictory_among_many(weir):
    """One parse for all queries. The query that cannot fire is named, and nothing is registered."""
    rows = [{"name": f"q{i}", "lo": i, "hi": 3} for i in range(5)]
    with pytest.raises(QueryError, match="query q3 can never fire: no value of x is > 3 and < 3"):
        weir.register_many("create query $name as select * from R where x > $lo and x < $hi", rows)
    assert weir.status().queries == 1
    assert weir.register_many("create query $name as select * from R where x > $lo and x < $hi", rows[:3]) == 3


def test_an_item_may_have_several_values(weir):
    """So conditions on one path of an item do not exclude each other."""
    weir.execute("create feed Both from A where [price > 5 and price < 3]")
    weir.publish("A", ["<item><price>2</price><price>7</price></item>"])
    weir.step()
    assert len(list(weir.results("Both"))) == 1


@pytest.mark.parametrize(
    "statement",
    [
        "create feed F from Joined as $r where $r[exists annotation]",
        "create feed F from (B | Joined) as $r where $r[not has annotation/item and title = 'x']",
        "create feed F from (B as $b | Joined as $j) as $r where $b[title = 'x'] and $r[annotation/item/title = 'x']",
        "create feed F from A as $r join last 9 days on B with $r[title = window.title] where $r[exists annotation]",
    ],
)
def test_conditions_on_annotations_are_refused(weir, statement):
    found, pointed = refused(weir, statement)
    assert "feed F: conditions are checked before an item is annotated, so they cannot refer to its annotation" in found
    assert pointed.startswith("annotation")


def test_conditions_on_annotations_of_registered_feeds(weir):
    """There, annotations are part of the documents, like an element of that name in a source."""
    weir.execute("""
        register feed Joined as Kept;
        create feed Noted from Kept as $r where $r[annotation/item/title = 'x'];
        create feed Own from A where [exists annotation];
        create feed Other from (A as $a | Joined as $j) where $a[exists annotation];
    """)
    weir.publish("B", ["<item><title>x</title></item>"], timestamps=[1.0])
    weir.publish("A", ["<item><title>x</title></item>", "<item><annotation/></item>"], timestamps=[2.0, 2.0])
    weir.run(until_idle=True)
    assert len(list(weir.results("Noted"))) == 1
    assert [result.documents[0] for result in weir.results("Own")] == ["A-2"]


def test_a_feed_is_not_replaced_under_such_a_condition(weir):
    weir.execute("create feed V from A; create feed F from V where [exists annotation]")
    joins = "create or replace feed V from A as $a join last 9 days on B with $a[title = window.title]"
    found, _ = refused(weir, joins)
    assert "feed V cannot be replaced: its reader F: " in found


UNKNOWN = [
    ("select R.zz from R", "reads zz; the columns of R are x, y, n, t", "zz from R"),
    ("select T.y from R", "reads T.y; the columns of R are x, y, n, t", "T.y from R"),
    ('select "a/b" from R', "reads a/b; the columns of R are x, y, n, t", 'a/b" from R'),
    ("select x from R where S.x > 3", "reads S.x; the columns of R are x, y, n, t", "S.x > 3"),
    (
        "select R.x, S.zz from R [range 5], S [range 5], T [rows 5] where R.x = S.x and S.x = T.x",
        "reads zz; the columns of S are x, y",
        "zz from",
    ),
    (
        "select R.x from R [range 5] join S [range 5] on R.x = S.x join T [range 5] on T.zz = S.x",
        "reads zz; the columns of T are x",
        "zz = S.x",
    ),
    (
        "select R.x, T.x from R [range 5], S [range 5] where R.x = S.x",
        ": there is no stream 'T' in the from clause (R, S)",
        "T.x from",
    ),
    ("select x from R sort by zz", ": 'sort by' is not supported: results are in arrival order", "sort by"),
    ("select x from R order by zz", ": 'order by' is not supported: results are in arrival order", "order by"),
    ("select x from R tablesample (5 percent)", ": 'tablesample' is not supported by this version", "tablesample"),
]


@pytest.mark.parametrize(("query", "reason", "place"), UNKNOWN)
def test_unknown_names(weir, query, reason, place):
    found, pointed = refused(weir, f"create query q as {query}")
    assert reason in found
    assert pointed.startswith(place)

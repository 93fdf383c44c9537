"""SQL selections and feeds through the running Spark job."""

from __future__ import annotations

import pytest

from fishweir.errors import QueryError


def found(weir, name):
    return [(r.documents[0], r.output) for r in weir.results(name)]


def test_sql_and_feeds(weir):
    weir.execute("""
        create stream R (x int, y double, name string);
        create stream News; create stream Blog;
        create query near as select name, x as size from R where 11 < y < 15 and (x > 3 or name like 'b%');
        create query twice as select * from R where x > 1 or y > 1;
        create query unequal as select * from R where x > y;
        create feed Rock from (News as $n | Blog) as $all
            where $n[title contains 'rock'] and $all[not description contains 'cancelled'];
        create feed Concerts from Rock as $r where $r[description contains 'live concert' or contains 'gig'];
    """)
    weir.publish("R", [{"x": 5, "y": 12.0, "name": "a"}, {"x": 1, "y": 14.5, "name": "bob"}, {"x": 9, "y": 2.0}])
    weir.publish(
        "News",
        [
            "<item><title>Rock tonight</title><description>A LIVE concert</description></item>",
            "<item><title>Rock</title><description>cancelled concert</description></item>",
            "<item><title>Jazz</title><description>live concert</description></item>",
        ],
    )
    weir.publish("Blog", ["<item><title>Jazz</title><description>my gig</description></item>"])
    weir.run(until_idle=True)
    assert found(weir, "near") == [("R-1", {"name": "a", "size": 5}), ("R-2", {"name": "bob", "size": 1})]
    assert [id for id, _ in found(weir, "twice")] == ["R-1", "R-2", "R-3"], (
        "each once, regardless of how many conditions hold"
    )
    assert found(weir, "unequal") == [("R-3", {"x": 9, "y": 2.0, "name": None})]
    assert [id for id, _ in found(weir, "Rock")] == ["News-1", "Blog-1"]
    assert found(weir, "Concerts") == [
        ("News-1", "<item><title>Rock tonight</title><description>A LIVE concert</description></item>"),
        ("Blog-1", "<item><title>Jazz</title><description>my gig</description></item>"),
    ]
    assert weir.status("twice").results == 3
    assert "contains" in weir.explain("Concerts")


def test_feeds_and_queries_with_readers_cannot_be_dropped(weir):
    weir.execute("create stream S; create feed A from S; create feed B from A;")
    with pytest.raises(QueryError, match="the feed A is read by B"):
        weir.execute("drop feed A")
    with pytest.raises(QueryError, match="the feed A is read by B"):
        weir.drop("A")
    weir.drop("B")
    weir.execute("drop feed A")
    with pytest.raises(QueryError, match="A"):
        weir.execute("create feed C from A")


def test_many_sql_queries_in_bulk(weir):
    weir.execute("create stream R (x int, y int)")
    rows = [{"name": f"q{i}", "lo": i, "hi": i + 10} for i in range(5_000)]
    weir.register_many("create query $name as select * from R where x > $lo and x < $hi", rows)
    weir.publish("R", [{"x": 100, "y": 1}])
    weir.run(until_idle=True)
    assert sorted(r.query for r in weir.results()) == sorted(f"q{i}" for i in range(91, 100))


def test_a_column_of_a_document_is_the_first_value(weir):
    """Conditions and select list agree, and a document with many values causes no combinations."""
    many = "".join(f"<{name}>{i}</{name}>" for name in "abcd" for i in range(60))
    weir.execute("""
        create stream D;
        create query two as select x, y from D where 3 < x <= 9 and y = 1;
        create query all_of_it as select * from D where x = 9;
        create query four as select a from D where a >= 0 and b >= 0 and c >= 0 and d >= 0;
    """)
    weir.publish("D", ["<i><x>9</x><x>2</x><y>1</y></i>", "<i><x>2</x><x>9</x><y>1</y></i>", f"<i>{many}</i>"])
    weir.step()
    assert found(weir, "two") == [("D-1", {"x": "9", "y": "1"})]
    assert found(weir, "all_of_it") == [("D-1", {"x": "9", "y": "1"})]
    assert found(weir, "four") == [("D-3", {"a": "0"})]


def test_unknown_columns(weir):
    weir.execute("create stream R (x int, name string)")
    with pytest.raises(QueryError, match="query q reads nosuch; the columns of R are x, name") as error:
        weir.execute("create query q as select x from R where nosuch = 1")
    assert (error.value.line, error.value.column) == (1, 41)
    with pytest.raises(QueryError, match="reads X; the columns of R are x, name"):
        weir.execute("select X from R where x > 1")


def test_a_condition_with_too_many_alternatives_is_refused(weir):
    weir.execute("create stream S")
    pairs = [f"(t contains 'a{i}' and t contains 'b{i}')" for i in range(9)]
    both = " and ".join(f"(t contains 'a{i}' or t contains 'b{i}')" for i in range(9))
    with pytest.raises(QueryError, match="query huge cannot be planned: the condition would need more than 256"):
        weir.execute(f"create feed huge from S where [({' or '.join(pairs)}) and {both}]")


def test_explain_of_several_predicates(weir):
    weir.execute("""
        create stream S;
        create feed A from S where [t contains 'a']; create feed B from S where [t contains 'b' and not t contains 'c'];
        create feed C from (A | B);
    """)
    shown = weir.explain("C")
    assert '-> t contains "a"' in shown
    assert '-> t contains "b" and not t contains "c"' in shown
    assert "queries: 3" in shown

"""Queries that read what others publish, through the running job; queries with readers cannot be dropped."""

from __future__ import annotations

import pytest

from fishweir import testing
from fishweir.errors import QueryError


def found(weir, name):
    return [(r.documents, r.timestamp, r.output) for r in weir.results(name)]


def test_outputs_are_documents_of_a_stream(weir):
    """A filter keeps documents and ids; parts and constructed outputs are new documents of the query's stream."""
    weir.execute("""
        create stream S;
        S/shelf[@open = 'yes'] publish open;
        open//book[price > 5] publish dear;
        select <hit by=$a>{t}</hit> from dear/book[author->a][title->t] publish hits;
        select a, t from open//book[author->a][title->t] publish listed;
        create query of_hits as hits/hit->h[@by = 'A'];
        create query of_list as listed/result->r[author = 'B'];
        create query of_all as dear;
        create query counted as select title from dear where price > 6;
        create feed news from dear;
    """)
    a = "<book><author>A</author><title>x</title><price>7</price></book>"
    b = "<book><author>B</author><title>y</title><price>6</price></book>"
    c = "<book><author>C</author><title>z</title><price>1</price></book>"
    shelves = [f'<shelf open="yes">{a}{b}{c}</shelf>', f"<shelf>{a}</shelf>"]
    weir.publish("S", shelves, timestamps=[10, 20], ids=["d1", "d2"])
    weir.run(until_idle=True)
    assert [(r[0], r[1]) for r in found(weir, "open")] == [(["d1"], 10.0)]
    assert found(weir, "dear") == [(["d1"], 10.0, a), (["d1"], 10.0, b)]
    assert found(weir, "of_hits") == [(["hits-1"], 10.0, '<hit by="A"><title>x</title></hit>')]
    assert found(weir, "hits") == [
        (["dear-1"], 10.0, '<hit by="A"><title>x</title></hit>'),
        (["dear-2"], 10.0, '<hit by="B"><title>y</title></hit>'),
    ]
    assert found(weir, "of_list") == [(["listed-2"], 10.0, "<result><author>B</author><title>y</title></result>")]
    assert found(weir, "of_all") == [(["dear-1"], 10.0, a), (["dear-2"], 10.0, b)]
    assert found(weir, "counted") == [(["dear-1"], 10.0, {"title": "x"})]
    assert found(weir, "news") == [(["dear-1"], 10.0, a), (["dear-2"], 10.0, b)]
    weir.publish("S", [f'<shelf open="yes">{c}{a}</shelf>'], timestamps=[5])
    weir.run(until_idle=True)
    assert [r[:2] for r in found(weir, "of_hits")] == [(["hits-1"], 10.0), (["hits-3"], 5.0)]


def test_published_documents_join_documents_of_their_time(weir):
    """It arrives one micro-batch later than its input documents; by then, other streams are far ahead."""
    weir.execute("""
        create stream S; create stream U;
        create query chain as select z from S//a->x JOIN{x=y, 1} S//b->y FOLLOWED BY{y=z, 2} U//c->z;
        S//a->x JOIN{x=y, 1} S//b->y publish P;
        create query of_join as select z from P//b->x FOLLOWED BY{x=z, 2} U//c->z;
        create query of_both as select U.c from P [range 2], U [range 2] where P.b = U.c;
        select <h>{x}</h> from S//a->x publish H;
        create query of_made as select z from H//a->x FOLLOWED BY{x=z, 2} U//c->z;
    """)
    weir.publish("S", ["<a>1</a>", "<b>1</b>"], timestamps=[0.0, 0.5])
    weir.publish("U", ["<r><c>1</c></r>", *6 * ["<r><c>9</c></r>"]], timestamps=[1.0, *map(float, range(100, 106))])
    weir.run(until_idle=True)
    for name in ("chain", "of_join", "of_both", "of_made"):
        assert [documents[1] for documents, _, _ in found(weir, name)] == ["U-1"], name


def test_a_slower_stream_joins_retained_documents(tmp_path):
    """A micro-batch takes as many documents from each stream, so one is ahead of the other; neither is late."""
    with testing.open(tmp_path / "home", documents_per_batch=4) as weir:
        weir.execute("create stream S; create stream R; create query plain as S//a->x JOIN{x=y, 1} R//a->y")
        weir.publish("S", [f"<a>{t}</a>" for t in (0, 50, 100)], timestamps=[0.0, 50.0, 100.0])
        weir.publish("R", [f"<a>{t}</a>" for t in range(0, 105, 5)], timestamps=[float(t) for t in range(0, 105, 5)])
        weir.run(until_idle=True)
        assert [r.documents for r in weir.results("plain")] == [["S-1", "R-1"], ["S-2", "R-11"], ["S-3", "R-21"]]


@pytest.fixture
def quiet(tmp_path):
    with testing.open(tmp_path / "home") as weir:
        weir.execute("create stream S")
        yield weir


def test_a_chain_sees_documents_after_its_registration(weir):
    """Even if it shares its first joins with an older chain: a result counts from its earliest document on."""
    two = "S//a->x JOIN{x=y, INF} S//b->y FOLLOWED BY{y=z, INF} U//c->z"
    three = f"{two} JOIN{{z=u, INF}} S//d->u"
    weir.execute(f"create stream S; create stream U; create query old as {three}; create query old_two as {two}")
    weir.publish("S", ["<a>1</a>", "<a>2</a>", "<b>2</b>"], timestamps=[0, 1, 2])
    weir.run(until_idle=True)
    weir.execute(f"create query new as {three}; create query new_two as {two}")
    weir.publish("S", ["<b>1</b>", "<a>3</a>", "<b>3</b>"], timestamps=[3, 4, 5])
    weir.publish("U", [f"<c>{value}</c>" for value in (1, 2, 3)], timestamps=[6, 7, 8])
    weir.publish("S", [f"<d>{value}</d>" for value in (1, 2, 3)], timestamps=[9, 10, 11])
    weir.run(until_idle=True)
    for name, values in (("old", "123"), ("old_two", "123"), ("new", "3"), ("new_two", "3")):
        assert sorted(r.bindings["z"]["value"] for r in weir.results(name)) == list(values), name
        assert weir.status(name).results == len(values)


def test_a_document_does_not_join_itself_under_another_name(weir, spark):
    """Filters and feeds pass the original document on, through any number of them."""
    weir.execute("""
        create stream S;
        S/r publish P; P publish Q; create feed F from Q;
        select <r>{a}</r> from S/r[a->a] publish made;
        create query plain as S//a->x JOIN{x=y, 5} P//a->y;
        create query rows as select x.a as x, y.a as y from P [rows 5] as x, Q [rows 5] as y;
        create query three as select x.a as x, y.a as y, z.a as z
            from S [range 9] as x, Q [range 9] as y, F [range 9] as z where x.a = z.a;
        create query new as S//a->x JOIN{x=y, 5} made//a->y;
    """)
    for time in (1, 2):
        weir.publish("S", ["<r><a>1</a></r>"], timestamps=[time], ids=[f"d{time}"])
        weir.run(until_idle=True)
    assert sorted(sorted(documents) for documents, _, _ in found(weir, "plain")) == [["d1", "d2"]] * 2
    assert sorted(sorted(documents) for documents, _, _ in found(weir, "rows")) == [["d1", "d2"]] * 2
    assert found(weir, "three") == []
    assert len(found(weir, "new")) == 4
    weir.execute("S publish spare")
    for name, reason in (
        ("F", "F contains the results of a query"),
        ("spare", "there is already a published query with this name"),
    ):
        with pytest.raises(QueryError, match=reason):
            weir.attach(name, spark.readStream.format("rate").load())


FEEDS = "create stream S; create feed F from S as $s where $s[title contains 'a']; "


def test_a_feed_is_read_by_every_language(weir):
    weir.execute(
        FEEDS
        + """
        create query alone as F; create query path as F//title->t; create query sql as select title from F;
        create query niagara as where <r><title>$t</></> in "F" construct <o>$t</o>;
        create query with_source as F//n->x FOLLOWED BY{x=y, 5} S//n->y; create feed G from F;
    """
    )
    item = "<r><title>{}</title><n>1</n></r>"
    weir.publish("S", [item.format(title) for title in "ab"], timestamps=[1, 2])
    weir.run(until_idle=True)
    for name, output in (
        ("alone", item.format("a")),
        ("G", item.format("a")),
        ("path", "<title>a</title>"),
        ("sql", {"title": "a"}),
        ("niagara", "<o>a</o>"),
    ):
        assert found(weir, name) == [(["S-1"], 1.0, output)], name
    assert [documents for documents, _, _ in found(weir, "with_source")] == [["S-1", "S-2"]]
    weir.execute("create or replace feed F from S as $s where $s[title contains 'b']")
    weir.publish("S", [item.format(title) for title in "ab"], timestamps=[3, 4])
    weir.run(until_idle=True)
    assert [documents for documents, _, _ in found(weir, "alone")] == [["S-1"], ["S-4"]]


def test_a_feed_with_readers_cannot_be_dropped(quiet):
    quiet.execute(FEEDS.partition(";")[2] + "create query q as F; F publish P")
    with pytest.raises(QueryError, match="the feed F is read by P, q; drop them first"):
        quiet.drop("F")
    with pytest.raises(QueryError, match="the queries read each other: F -> P -> F"):
        quiet.execute("create or replace feed F from P")
    quiet.execute("delete q; delete P; delete F")
    assert list(quiet.catalog.streams()) == ["S"]


def test_queries_with_readers_cannot_be_dropped(quiet):
    script = "S//a publish P; P//b publish Q; create feed F from P; register feed F as G; create query r as Q//c"
    quiet.execute(script)
    assert quiet.execute(script) == ["P", "Q", "F", "r"]
    for name, readers in (("P", "F, Q"), ("Q", "r")):
        with pytest.raises(QueryError, match=f"the query {name} is read by {readers}; drop them first"):
            quiet.drop(name)
    quiet.execute("drop feed G; delete r; delete F; delete Q; delete P")
    assert list(quiet.catalog.streams()) == ["S"]
    quiet.execute("create stream P")


def test_publishing_to_the_stream_of_a_query_is_refused(quiet):
    quiet.execute("S//a publish P; create query Q as P; S publish R")
    with pytest.raises(QueryError, match="P contains the results of a query: programs cannot publish to it"):
        quiet.publish("P", ["<a/>"])
    with pytest.raises(QueryError, match="R is a query, not a stream: programs cannot publish to it"):
        quiet.publish("R", ["<a/>"])


def test_a_query_without_readers_creates_no_stream(quiet):
    quiet.register_many("S//a[b = $b] publish $name", [{"b": i, "name": f"p{i}"} for i in range(20)])
    assert list(quiet.catalog.streams()) == ["S"]
    quiet.execute("p7//b")
    assert list(quiet.catalog.streams()) == ["S", "p7"]


REFUSED = [
    ("P//a publish P", 1, "query P reads itself"),
    ("create query Q as P//a publish Q", 19, "neither a stream nor a file"),
    ("S//a publish S", 14, "query S: there is already a stream with this name"),
    ("S//a publish T; create stream T", None, "stream T: there is already a published query with this name"),
    ("S//a->x JOIN{x=y, 5} P//b->y", 22, "reads P, which is neither a stream nor a file"),
    ("create query S as S//a", 14, "query S: there is already a stream with this name"),
    ("create S where <a>$x</> in S construct $x", 8, "query S: there is already a stream with this name"),
    ("create query T as S//a; create stream T", None, "stream T: there is already a query with this name"),
    ("create query T as S//a; create stream T (x int)", None, "stream T: there is already a query with this name"),
]


@pytest.mark.parametrize(("text", "column", "reason"), REFUSED)
def test_refused(quiet, text, column, reason):
    with pytest.raises(QueryError) as error:
        quiet.execute(text)
    assert reason in str(error.value)
    assert error.value.column == column
    assert quiet.catalog.names() == []


def test_reusing_a_name_cannot_create_a_cycle(quiet):
    """The stream of an expired query exists as long as it has readers."""
    quiet.execute("S//a publish P expire 2001-01-01; P//b publish Q")
    quiet._expire()
    assert quiet.catalog.names() == ["Q"]
    with pytest.raises(QueryError, match="the queries read each other: P -> Q -> P"):
        quiet.execute("Q//c publish P")
    quiet.execute("S//c publish P")


def test_an_unnamed_query_does_not_take_the_name_of_a_stream(quiet):
    quiet.execute("create stream q1")
    assert quiet.execute("S//a; create stream q3; S//b; S//c") == ["q2", "q4", "q5"]
    assert quiet.execute("S//b") == ["q4"], "identical statements are skipped"


def test_a_query_cannot_take_the_name_of_a_stream_with_readers(quiet):
    quiet.execute("S//a publish P expire 2001-01-01; P//b publish Q")
    quiet._expire()
    with pytest.raises(QueryError, match="query P: there is already a stream with this name"):
        quiet.execute("create query P as S//c")


CHAIN = "S//a->x JOIN{x=y, 5} S//b->y FOLLOWED BY{y=z, 5} S//c->z"


def test_the_first_join_of_a_chain_stays_while_it_has_readers(quiet):
    assert quiet.execute(f"{CHAIN} publish P; create query Q as {CHAIN}; P//c publish R") == ["P", "Q", "R"]
    made = next(name for name in quiet.catalog.names() if name.startswith("join."))
    assert quiet.catalog.names() == [made, "P", "Q", "R"]
    assert list(quiet.catalog.streams()) == ["S", made, "P"]
    with pytest.raises(QueryError, match=f"the query {made} is read by P, Q; drop them first"):
        quiet.drop(made)
    quiet.drop("Q")
    assert made in quiet.catalog.names()
    quiet.execute("delete R; delete P")
    assert quiet.catalog.names() == []
    assert list(quiet.catalog.streams()) == ["S"]
    quiet.execute(f"create query Q as {CHAIN} expire 2001-01-01")
    quiet._expire()
    assert quiet.catalog.names() == []
    with pytest.raises(QueryError, match=r"names with 'join\.'"):
        quiet.execute("create query join.1 as S//a")


def test_many_joins_keep_their_windows(quiet):
    rows = [{"name": f"j{i}", "t": t} for i, t in enumerate((5, 2.5, float("inf")))]
    assert quiet.register_many("create query $name as S//a->x JOIN{x=y, $t} S//b->y", rows) == 3
    planned = list(quiet.catalog.planned(0, quiet.catalog.version()))
    assert [constants for _, _, constants in planned] == [[5.0], [2.5], [float("inf")]]
    assert len({template for _, template, _ in planned}) == 1

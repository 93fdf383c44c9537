"""Queries that read what others publish, through the running job; what is read cannot go away."""

from __future__ import annotations

import pytest

import fishweir
from fishweir.errors import QueryError


def found(weir, name):
    return [(r.documents, r.timestamp, r.output) for r in weir.results(name)]


def test_outputs_are_documents_of_a_stream(weir):
    """A filter keeps documents and ids; parts and what is constructed are new documents of the query's stream."""
    weir.execute("""
        create stream S;
        S/shelf[@open = 'yes'] publish open;
        open//book[price > 5] publish dear;
        select <hit by=$a>{t}</hit> from dear/book[author->a][title->t] publish hits;
        select a, t from open//book[author->a][title->t] publish listed;
        create query of_hits as hits/hit->h[@by = 'A'];
        create query of_list as listed/result->r[author = 'B'];
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
    assert found(weir, "of_list") == [
        (["listed-2"], 10.0, "<result><author>B</author><title>y</title></result>")
    ]
    assert found(weir, "counted") == [(["dear-1"], 10.0, {"title": "x"})]
    assert found(weir, "news") == [(["dear-1"], 10.0, a), (["dear-2"], 10.0, b)]
    weir.publish("S", [f'<shelf open="yes">{c}{a}</shelf>'], timestamps=[5])
    weir.run(until_idle=True)
    assert [r[:2] for r in found(weir, "of_hits")] == [(["hits-1"], 10.0), (["hits-3"], 5.0)]


@pytest.fixture
def quiet(tmp_path):
    with fishweir.open(tmp_path / "home") as weir:
        weir.execute("create stream S")
        yield weir


def test_what_is_read_cannot_be_dropped(quiet):
    script = "S//a publish P; P//b publish Q; create feed F from P; register feed F as G; create query r as Q//c"
    quiet.execute(script)
    assert quiet.execute(script) == ["P", "Q", "F", "r"]
    for name, readers in (("P", "F, Q"), ("Q", "r")):
        with pytest.raises(QueryError, match=f"the query {name} is read by {readers}; drop them first"):
            quiet.drop(name)
    quiet.execute("drop feed G; delete r; delete F; delete Q; delete P")
    assert list(quiet.catalog.streams()) == ["S"]
    quiet.execute("create stream P")


def test_a_query_that_nobody_reads_makes_no_stream(quiet):
    quiet.register_many("S//a[b = $b] publish $name", [{"b": i, "name": f"p{i}"} for i in range(20)])
    assert list(quiet.catalog.streams()) == ["S"]
    quiet.execute("p7//b")
    assert list(quiet.catalog.streams()) == ["S", "p7"]


REFUSED = [
    ("P//a publish P", 1, "query P reads itself"),
    ("create query Q as P//a publish Q", 19, "neither a stream nor a file"),
    ("S//a publish S", 14, "query S: there is a stream of that name"),
    ("S//a publish T; create stream T", None, "stream T: there is a published query of that name"),
    ("S//a->x JOIN{x=y, 5} P//b->y", 22, "reads P, which is neither a stream nor a file"),
]


@pytest.mark.parametrize(("text", "column", "reason"), REFUSED)
def test_refused(quiet, text, column, reason):
    with pytest.raises(QueryError) as error:
        quiet.execute(text)
    assert reason in str(error.value)
    assert error.value.column == column
    assert quiet.catalog.names() == []


def test_a_name_that_became_free_closes_no_cycle(quiet):
    """The readers of a query that expired keep its stream."""
    quiet.execute("S//a publish P expire 2001-01-01; P//b publish Q")
    quiet._expire()
    assert quiet.catalog.names() == ["Q"]
    with pytest.raises(QueryError, match="the queries read each other: P -> Q -> P"):
        quiet.execute("Q//c publish P")
    quiet.execute("S//c publish P")

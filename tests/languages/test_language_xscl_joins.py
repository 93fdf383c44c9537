"""XSCL's joins: the paper's example row by row, windows, predicates, and errors with their positions."""

from __future__ import annotations

import json
import math

import pytest

from fishweir.algebra.clauses import constants_of, to_normals
from fishweir.algebra.codec import from_json, to_json
from fishweir.algebra.documents import Document, parse_document
from fishweir.algebra.join_oracle import JoinResult, evaluate_join
from fishweir.algebra.nodes import CreateQuery, ElementOutput, Shape, SideWindow, VariableOutput
from fishweir.errors import QueryError
from fishweir.languages.bulk import render_rows
from fishweir.languages.script import parse_script
from fishweir.languages.skeleton import SkeletonCache

BOOK = (
    "<book><authors><author>Danny Ayers</author><author>Andrew Watt</author></authors>"
    "<title>Beginning RSS and Atom Programming</title><category>Scripting &amp; Programming</category>"
    "<category>Web Site Development</category></book>"
)
BLOG = (
    "<blog><url>http://dannyayers.com/</url><author>Danny Ayers</author>"
    "<title>Beginning RSS and Atom Programming</title><category>Book Announcement</category>"
    "<category>Scripting &amp; Programming</category></blog>"
)
"""The documents of figures 1 and 2, with the node ids of table 4."""


def parsed(text: str) -> CreateQuery:
    (query,) = parse_script(text)
    assert isinstance(query, CreateQuery)
    return query


def document(id: str, time: float, body: str) -> Document:
    return Document(id, time, parse_document(body.encode()))


def joined(text: str, lefts: list[Document], rights: list[Document] | None = None) -> list[JoinResult]:
    query = parsed(text)
    assert isinstance(query.shape, Shape)
    return evaluate_join(query.shape, query.constants, [lefts, lefts if rights is None else rights])


def rows(pairs: list[JoinResult]) -> list[dict[str, str]]:
    return [{name: node.id for name, node in pair.binding.items() if name[0] != "_"} for pair in pairs]


Q1 = """S//book->x1[.//author->x2][.//title->x3]
    FOLLOWED BY{x2=x5 AND x3=x6, 10}
    S//blog->x4[.//author->x5][.//title->x6]"""
Q2 = """S//book->x1[.//author->x2][.//category->x7]
    FOLLOWED BY{x2=x5 AND x7=x8, 10}
    S//blog->x4[.//author->x5][.//category->x8]"""
Q3 = """S//blog->x4[.//author->x5][.//title->x6]
    FOLLOWED BY{x5=x5’ AND x6=x6’, 10}
    S//blog->x4’[.//author->x5’][.//title->x6’]"""


def test_the_example_of_the_paper() -> None:
    """Table 4(f), row by row."""
    stream = [document("d1", 1.0, BOOK), document("d2", 2.0, BLOG)]
    q1, q2, q3 = (joined(text, stream) for text in (Q1, Q2, Q3))
    assert rows(q1) == [{"x1": "0", "x2": "2", "x3": "4", "x4": "0", "x5": "2", "x6": "3"}]
    assert rows(q2) == [{"x1": "0", "x2": "2", "x7": "5", "x4": "0", "x5": "2", "x8": "5"}]
    assert q3 == []
    assert [pair.documents for pair in (*q1, *q2)] == [["d1", "d2"], ["d1", "d2"]]


def test_cross_postings() -> None:
    """Q3 with a blog that is posted again: primes are part of the names."""
    again = [document("d2", 2.0, BLOG), document("d3", 3.0, BLOG)]
    for text in (Q3, Q3.replace("’", "'")):
        assert rows(joined(text, again)) == [{"x4": "0", "x5": "2", "x6": "3", "x4'": "0", "x5'": "2", "x6'": "3"}]


def meetings(text: str, times: list[tuple[float, float]]) -> list[bool]:
    """For each pair of times of a left and a right document, whether they join."""
    return [
        bool(joined(text, [document("l", left, "<a>1</a>")], [document("r", right, "<b>1</b>")]))
        for left, right in times
    ]


TIMES = [(0, 5), (0, 5.001), (5, 0), (5.001, 0), (3, 3)]


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        ("JOIN{x=y, 5}", [True, False, True, False, True]),
        ("FOLLOWED BY{x=y, 5}", [True, False, False, False, False]),
        ("join{x=y, INF}", [True] * 5),
        ("Followed  By {x=y, ∞}", [True, True, False, False, False]),
        ("JOIN{x=y, 0}", [False, False, False, False, True]),
        ("FOLLOWED BY{x=y, 0}", [False] * 5),
    ],
)
def test_windows(operator: str, expected: list[bool]) -> None:
    assert meetings(f"S//a->x {operator} S//b->y", TIMES) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        ("JOIN{5}", [True, False, True, False, True]),
        ("FOLLOWED BY{5 seconds}", [True, False, False, False, False]),
        ("FOLLOWED BY{, 5}", [True, False, False, False, False]),
        ("FOLLOWED BY{true, 5}", [True, False, False, False, False]),
        ("FOLLOWED BY { inf }", [True, True, False, False, False]),
        ("JOIN{∞}", [True] * 5),
        ("FOLLOWED BY{x = '1', 5}", [True, False, False, False, False]),
        ("FOLLOWED BY{x = '2', 5}", [False] * 5),
    ],
)
def test_without_a_comparison_all_pairs_in_the_window(operator: str, expected: list[bool]) -> None:
    assert meetings(f"S//a->x {operator} S//b->y", TIMES) == expected  # type: ignore[arg-type]


def test_a_window_alone_may_be_a_parameter() -> None:
    one, two = parsed("S//a->x FOLLOWED BY{5 minutes} S//b->y"), parsed("S//a->x FOLLOWED BY{, 300} S//b->y")
    assert (one.shape, one.constants) == (two.shape, two.constants)


def test_windows_in_the_algebra() -> None:
    either, after = parsed("S//a->x JOIN{x=y, 5} T//b->y"), parsed("S//a->x FOLLOWED BY{x=y, 5} T//b->y")
    assert isinstance(either.shape, Shape)
    assert isinstance(after.shape, Shape)
    (slot,) = either.shape.slots
    assert (either.shape.windows, either.shape.strict) == ((SideWindow(slot), SideWindow(slot)), False)
    assert (after.shape.windows, after.shape.strict) == ((SideWindow(slot), SideWindow()), True)
    assert [block.source.name for block in either.shape.blocks] == ["S", "T"]


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("5", 5.0),
        ("2.5", 2.5),
        ("1e3", 1000.0),
        ("300 ms", 0.3),
        ("10s", 10.0),
        ("3 Minutes", 180.0),
        ("1 month", 30 * 86400.0),
        ("2 years", 2 * 365 * 86400.0),
        ("'1 day'", 86400.0),
        ("inf", math.inf),
        ("Infinity", math.inf),
        ("'INF'", math.inf),
    ],
)
def test_units(written: str, seconds: float) -> None:
    query = parsed(f"S//a->x JOIN{{x=y, {written}}} S//b->y")
    assert query.constants == (seconds,)
    assert query.shape == parsed("S//a->x JOIN{x=y, 7} S//b->y").shape
    assert tuple(json.loads(json.dumps(query.constants))) == query.constants


LEFT = '<a id="7"><n>3</n><who><author>A</author></who><author>B</author><w>x</w></a>'
RIGHT = '<b ref="7"><n>5</n><author>A</author><author>C</author><w>x</w><w>y</w></b>'
PREDICATES = [
    ("x//author = y/author", [{"x": "0", "y": "0"}]),
    ("x/author = y/author", []),
    ("x/author != y/author", [{"x": "0", "y": "0"}] * 2),
    ("x/@id = y/@ref", [{"x": "0", "y": "0"}]),
    ("$x/n < $y/n and x/n<=y/n", [{"x": "0", "y": "0"}]),
    ("x/n > y/n", []),
    ("y/n >= x/n AND y/n <> x/n", [{"x": "0", "y": "0"}]),
    ("x/w = y/w AND x/n = 3", [{"x": "0", "y": "0"}]),
    ("x/w = y/w AND 3 < x/n", []),
    ("x/w = y/w AND 'A' = y/author", [{"x": "0", "y": "0"}]),
    ("(x/w = y/w) and (y/w != y/author and true)", [{"x": "0", "y": "0"}]),
    ("x/w = y/w and x/missing", []),
    ("x/w = y/w and x/who/author", [{"x": "0", "y": "0"}]),
    ("x//author[. = 'A'] = y/author", [{"x": "0", "y": "0"}]),
    ("x//author[. = 'B'] = y/author", []),
    ("x[n = 3]/w = y[author = 'C']/w", [{"x": "0", "y": "0"}]),
    ("x/w->v = y/w", [{"x": "0", "v": "5", "y": "0"}]),
]


@pytest.mark.parametrize(("predicate", "expected"), PREDICATES)
def test_predicates(predicate: str, expected: list[dict[str, str]]) -> None:
    found = joined(f"S/a->x JOIN{{{predicate}, 5}} S/b->y", [document("l", 0.0, LEFT)], [document("r", 0.0, RIGHT)])
    assert rows(found) == expected


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("S//a->x JOIN{x/b = y/@c, 5} S//d->y", "S//a->x[b->v] JOIN{v = w, 5} S//d->y[@c->w]"),
        ("S//a->x JOIN{x//b[e = 1] = y, 5} S//d->y", "S//a->x[.//b->v[e = 1]] JOIN{v = y, 5} S//d->y"),
        ("S//a->x[b->v] JOIN{y = v AND v != 'k', 5} S//d->y", "S//a as x[b as u] join{'j'!=u and u=z, 6} S//d as z"),
    ],
)
def test_value_join_normal_form(one: str, other: str) -> None:
    """Steps on variables are branches of the pattern; names and constants do not count."""
    (a,), (b,) = to_normals(parsed(one).shape), to_normals(parsed(other).shape)  # type: ignore[arg-type]
    assert a.template == b.template


def test_attributes_and_whole_documents() -> None:
    left, right = document("l", 0.0, LEFT), document("r", 0.0, RIGHT)
    assert rows(joined("S//a[@id->i] JOIN{i=j, 5} S//b/@ref as j", [left], [right])) == [{"i": "0@id", "j": "0@ref"}]
    assert rows(joined("S->x JOIN{x//author = y//author, 5} T as y", [left], [right])) == [{"x": "0", "y": "0"}]


def test_outputs() -> None:
    query = parsed("S//a->x[b->v]/c JOIN{v=y, 5} S//d->y").shape
    assert isinstance(query, Shape)
    assert query.output == (ElementOutput("result", (), (VariableOutput("_1"), VariableOutput("y"))),)
    assert parsed("select * from S//a->x[b->v]/c JOIN{v=y, 5} S//d->y").shape == query
    chosen = parsed("select <hit by=$v>{y’}</hit>, v from S//a[b->v] JOIN{v=y', 5} S//d->y'").shape
    assert isinstance(chosen, Shape)
    assert chosen.output_variables == ("v", "y'")


def test_constants_come_in_the_order_of_the_template() -> None:
    query = parsed("S//a->x[k = 'p'] JOIN{x=y AND y/m < 7, 2 hours} S//b->y[l = 'q']")
    (normal,) = to_normals(query.shape)  # type: ignore[arg-type]
    assert sorted(map(str, constants_of(normal, query.constants)[:-1])) == ["7.0", "p", "q"]
    assert constants_of(normal, query.constants)[-1] == 7200.0
    assert from_json(json.loads(json.dumps(to_json(query.shape)))) == query.shape


MANY = [
    ("{x=y, $t}", [5, 2.5, math.inf, "3 days", 1e300], [5.0, 2.5, math.inf, 259200.0, 1e300]),
    ("{x=y, $t minutes}", [5, 0, 1.5], [300.0, 0.0, 90.0]),
    ("{x=y, '$t days'}", [1, 2], [86400.0, 172800.0]),
]


@pytest.mark.parametrize(("braces", "values", "seconds"), MANY)
def test_many_windows_are_one_shape(braces: str, values: list[object], seconds: list[float]) -> None:
    """The window is a constant of each query; texts that differ only in constants are parsed once."""
    cache = SkeletonCache()
    text = f"create query $name as S//a->x[k = $k] JOIN{braces} S//b->y"
    texts = list(render_rows(text, [{"name": f"n{i}", "k": i, "t": t} for i, t in enumerate(values)]))
    created = [parse_script(one, cache=cache)[0] for one in texts]
    assert [(q.name, q.constants) for q in created] == [(f"n{i}", (float(i), t)) for i, t in enumerate(seconds)]  # type: ignore[union-attr]
    assert len({q.shape for q in created}) == 1  # type: ignore[union-attr]
    assert cache.size <= 3
    assert [parsed(one) for one in texts] == created


def test_unlimited_windows_without_other_constants_are_parsed_once() -> None:
    cache = SkeletonCache()
    texts = [f"S//a->x JOIN{{x=y, INF}} S//b->y publish p{i}" for i in range(3)]
    created = [parse_script(one, cache=cache)[0] for one in texts]
    assert [(q.name, q.constants, q.published) for q in created] == [(f"p{i}", (math.inf,), True) for i in range(3)]
    assert len({id(q.shape) for q in created}) == cache.size == 1


REFUSED = [
    ("S//a->x JOIN{x=z, 5} S//b->y", 16, "the blocks do not bind z; bound variables: x, y"),
    ("S//a->x JOIN{x/q=z'/r, 5} S//b->y", 18, "the blocks do not bind z'"),
    ("S//a->x JOIN{x=y} S//b->y", 17, "expected ',' and how long documents wait"),
    ("S//a->x JOIN{} S//b->y", 14, "expected ',' and how long documents wait"),
    ("S//a->x JOIN{x=y, } S//b->y", 19, "expected 'inf', a time such as 10 minutes or quoted text, found '}'"),
    ("S//a->x JOIN{x=y, soon} S//b->y", 19, "found 'soon'"),
    ("S//a->x JOIN{x=y, -5} S//b->y", 19, "the interval '-5' is negative"),
    ("S//a->x JOIN{x=y, '-5 s'} S//b->y", 19, "the interval '-5 s' is negative"),
    ("S//a->x JOIN{x=y, 1e999} S//b->y", 19, "too long"),
    ("S//a->x JOIN{x=y, 5 fortnights} S//b->y", 21, "'fortnights' is not a unit of time"),
    ("S//a->x JOIN{x=y, 5 6} S//b->y", 21, "expected"),
    ("S//a->x[b->x] JOIN{x=y, 5} S//b->y", 12, "the variable x is bound twice"),
    ("S//a->x JOIN{x=x, 5} S//b->x", 28, "the variable x is bound in two blocks: write x' in one of them"),
    ("S//a->x JOIN{x=y and 1='1', 5} S//b->y", 22, "a comparison of two constants"),
    ("S//a->x[b->z] FOLLOWED BY{x=z, 5} S//b->y", 15, "all comparisons of this join are within one of its blocks"),
    ("S//a->x FOLLOWED BY{5 fortnights} S//b->y", 23, "'fortnights' is not a unit of time"),
    ("S//a->x FOLLOWED BY{-5} S//b->y", 21, "the interval '-5' is negative"),
    ("S//a->x FOLLOWED BY{5 5} S//b->y", 23, "expected"),
    ("S//a->x JOIN{x=y or x=z, 5} S//b->y", 23, "the blocks do not bind z"),
    ("S//a->x JOIN{not(x<y), 5} S//b->y", 19, "not(... < ...) is not supported between variables"),
    ("S//a->x JOIN{not(x/b=y), 5} S//b->y", 18, "not(...) compares two variables, not paths below them"),
    ("S//a->x JOIN{x/../b = y, 5} S//b->y", 16, "leads above the node that the path begins at"),
    ("S//a->x JOIN{count(x) = y, 5} S//b->y", 14, "functions other than"),
    ("S//a->x JOIN{x=y AND 5, 5} S//b->y", 22, "expected a comparison"),
    ("S//a->x JOIN S//b->y", 14, "expected '{', found 'S'"),
    ("S//a->x JOIN{x=y, 5}", 21, "expected '(', a tag's name or quoted text"),
    ("S//a/@id->x JOIN{x/b=y, 5} S//b->y", 20, "an attribute has no children"),
    ("S//a->x JOIN{x=y, 5} S//@*->y", 16, "an attribute that is joined needs a name"),
    ("S//a->x JOIN{x/@*=y, 5} S//b->y", 17, "an attribute that is joined needs a name"),
    ("S//a->x JOIN{x/b=y, 5} S//b->y//@*", 34, "an attribute that is output needs a name"),
    ("S->x//a JOIN{x=y, 5} S//b->y", 4, "cannot be followed by steps"),
    ("select z from S//a->x JOIN{x=y, 5} S//b->y", 8, "the blocks do not bind z; bound variables: x, y"),
]


@pytest.mark.parametrize(("text", "column", "reason"), REFUSED)
def test_refused(text: str, column: int, reason: str) -> None:
    for statement in (text, f"create query q as\n{text}"):
        with pytest.raises(QueryError) as error:
            parse_script(f"create stream S;\n{statement}")
        assert (error.value.line, error.value.column) == (2 + statement.count("\n"), column)
        assert reason in str(error.value)
        assert str(error.value).splitlines()[-1].rstrip() == f"{' ' * (column + 1)}^"


def test_keywords_in_any_case() -> None:
    one = "SELECT <h>{x}</h> FROM S//a AS x JOIN{x=y AND y!=x, INF} S//b AS y PUBLISH p"
    other = "select <h>{x}</h> from S//a as x join{x=y and y!=x, inf} S//b as y publish p"
    assert parsed(one).shape == parsed(other).shape
    assert parsed(one).name == parsed(other).name == "p"


def test_the_documents_match_table_4() -> None:
    """Tables 4(b) and 4(d): values by node."""
    elements = [list(document("d", 0.0, body).root.iter()) for body in (BOOK, BLOG)]
    assert [[e.text for e in listed[2:]] for listed in elements] == [
        [
            "Danny Ayers",
            "Andrew Watt",
            "Beginning RSS and Atom Programming",
            "Scripting & Programming",
            "Web Site Development",
        ],
        ["Danny Ayers", "Beginning RSS and Atom Programming", "Book Announcement", "Scripting & Programming"],
    ]

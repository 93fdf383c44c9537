"""XSCL texts: what they mean, that queries share one shape, and what is refused where."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from fishweir.algebra.documents import Document, parse_document
from fishweir.algebra.nodes import CreateQuery, Shape
from fishweir.algebra.normal import to_normal
from fishweir.algebra.oracle import evaluate
from fishweir.errors import QueryError
from fishweir.languages.bulk import render_rows
from fishweir.languages.script import parse_script
from fishweir.languages.skeleton import SkeletonCache

BOOKS = """<shelf xmlns:p="urn:p"><book id="1"><author>A</author><author>B</author><title>abc</title></book>
<p:book p:id="2"><part><title>abc</title><book><title>x</title></book></part><price> 7 </price></p:book></shelf>"""


def parsed(text: str) -> CreateQuery:
    (query,) = parse_script(text)
    assert isinstance(query, CreateQuery)
    return query


def results(text: str, body: str = BOOKS) -> list[dict[str, str]]:
    """The node ids that the oracle binds, by variable."""
    query = parsed(text)
    assert isinstance(query.shape, Shape)
    found = evaluate(query.shape, query.constants, Document("d", 0.0, parse_document(body.encode())))
    return [{name: node.id for name, node in binding.items()} for binding in found]


MEANINGS = [
    ("S//book->x", [{"x": "1"}, {"x": "5"}, {"x": "8"}]),
    ("S/shelf/book->x", [{"x": "1"}, {"x": "5"}]),
    ("S/book->x", []),
    ("S//{urn:p}book->x", [{"x": "5"}]),
    ("S//{}book->x", [{"x": "1"}, {"x": "8"}]),
    ("S/shelf/*->x", [{"x": "1"}, {"x": "5"}]),
    ("S//book->x[.//title = 'abc']", [{"x": "1"}, {"x": "5"}]),
    ("S//book as x[title = 'abc']", [{"x": "1"}]),
    ("S//book->x[author->a]", [{"x": "1"}]),
    ("select x, a from S//book->x[author->a]", [{"x": "1", "a": "2"}, {"x": "1", "a": "3"}]),
    ("select $b from S//book->a//book->b", [{"b": "8"}]),
    ("S//book->x[author = 'A'][author = 'B']", [{"x": "1"}]),
    ("S//book->x[author = 'A' and author = 'C']", []),
    ("S//book->x[author[. = 'A']]", [{"x": "1"}]),
    ("S//book->x[(price < 8 and 6.5 <= price) and part[book/title]]", [{"x": "5"}]),
    ("S//book->x[.//title != .//title]", [{"x": "5"}]),
    ("S//book->x[@id]", [{"x": "1"}, {"x": "5"}]),
    ("S//book[@{urn:p}id->i]/price->x", [{"x": "10"}]),
    ("S//@id->i", [{"i": "1@id"}, {"i": "5@id"}]),
    ("S//shelf//@id->i", [{"i": "1@id"}, {"i": "5@id"}]),
    ("S/shelf/@id->i", []),
    ("S//book->x[@* = '2']", [{"x": "5"}]),
]


@pytest.mark.parametrize(("text", "expected"), MEANINGS)
def test_meaning(text: str, expected: list[dict[str, str]]) -> None:
    assert results(text) == expected


NAMES = ["a", "b", "*"]


@st.composite
def paths(draw: st.DrawFn, depth: int = 2) -> str:
    """The part of XSCL that lxml reads too, without the stream's name."""
    text = ""
    for _ in range(draw(st.integers(1, 3))):
        text += draw(st.sampled_from(["/", "//"])) + draw(st.sampled_from(NAMES))
        if depth and draw(st.booleans()):
            relative = "." + draw(paths(depth - 1)) + draw(st.sampled_from(["", "", "/@k", "//@k"]))
            text += f"[{relative}{draw(st.sampled_from(['', ' = ' + repr('1'), ' and @k = 1 and .//b']))}]"
    return text


@st.composite
def trees(draw: st.DrawFn, depth: int = 4) -> str:
    name, key = draw(st.sampled_from(["a", "b"])), draw(st.sampled_from(["", ' k="1"', ' k="2"']))
    inner = "".join(draw(st.lists(trees(depth - 1), max_size=2))) if depth else draw(st.sampled_from(["", "1"]))
    return f"<{name}{key}>{inner}</{name}>"


@given(paths(), trees())
def test_a_block_selects_what_xpath_does(path: str, body: str) -> None:
    root = etree.fromstring(body)
    ids = {element: str(i) for i, element in enumerate(root.iter())}
    expected = [ids[element] for element in root.getroottree().xpath(path)]
    assert [one for binding in results(f"S{path}", body) for one in binding.values()] == expected


def test_queries_of_one_shape_are_parsed_once() -> None:
    cache = SkeletonCache()
    text = "create query $name as S//book->x[.//title = $title][price < $price]"
    rows = [{"name": f"q{i}", "title": f"it's {i}", "price": i} for i in range(3)]
    created = [parse_script(one, cache=cache)[0] for one in render_rows(text, rows)]
    assert [(q.name, q.constants) for q in created] == [(f"q{i}", (f"it's {i}", float(i))) for i in range(3)]
    assert len({id(q.shape) for q in created}) == cache.size == 1


def test_published_names_do_not_part_the_shapes() -> None:
    cache = SkeletonCache()
    texts = render_rows("S//a[b = $b] publish $name", [{"b": i, "name": f"p{i}"} for i in range(3)])
    created = [parse_script(one, cache=cache)[0] for one in texts]
    assert [(q.name, q.constants) for q in created] == [(f"p{i}", (float(i),)) for i in range(3)]
    assert len({id(q.shape) for q in created}) == cache.size == 1


def test_a_word_that_only_looks_published_names_nothing() -> None:
    cache = SkeletonCache()
    for target in ("x", "y"):
        text = f"where <a/> element_as $a in 's' construct $a do mail publish {target}"
        (query,) = parse_script(text, cache=cache)
        assert (query.name, query.action.arguments) == (None, ("publish", target))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("S//a->x[b][b/c]", "S//a->y[./b[c]]"),
        ("S//a[.//b][b->v = 1]", "S//a->x[b = 2]"),
        ("S//a[*][b]", "S//a[b]"),
        ("S//a[@k][@k = '1']", "S//a[@k = '2']"),
    ],
)
def test_what_must_only_exist_is_no_node_of_its_own(one: str, other: str) -> None:
    assert to_normal(parsed(one).shape).template == to_normal(parsed(other).shape).template


REFUSED = [
    ("S//a[b or c]", 8, "'or' is not supported"),
    ("S//a[not(b)]", 6, "'not(...)' is not supported"),
    ("select y from S//a->x", 8, "the block does not bind y; bound variables: x"),
    ("S//a[1]", 6, "positions are not supported"),
    ("S//a['1' = 1]", 6, "two constants"),
    ("S//a[../b]", 6, "parent axis"),
    ("S//dc:a", 4, "write '{uri}a'"),
    ("S//@*", 5, "needs a name"),
    ("S/@id", 4, "a document has no attributes"),
    ("S//@id/a", 8, "an attribute has nothing below it"),
    ("S//a->x[b->x]", 12, "the variable x is bound twice"),
    ("S//a->_x", 7, "begins with a letter"),
    ("S//a[b = 1e999]", 10, "too large"),
    ("S//a[b = ]", 10, "expected"),
    ("S//a[text()]", 10, "expected"),
    ("S//a//", 7, "expected"),
    ("select <h>$x</g> from S//a->x", 15, "to close '<h>'"),
    ("create query q as S//a publish r", 19, "it has one name"),
    ("S//a->x FOLLOWED{x=y, 1} S//b->y", 9, "'followed by{', 'join{'"),
    ("S publish", 10, "expected a name or quoted text, found the end of the statement"),
    ("S[a]", 2, "found '['"),
    ("S join T", 8, "expected '{', found 'T'"),
    ("select <o>{x} &amp; y</o> from S//a->x", 19, "';' ends it; text is written as it is, '&' and not '&amp;'"),
]


@pytest.mark.parametrize(("text", "column", "reason"), REFUSED)
def test_refused(text: str, column: int, reason: str) -> None:
    with pytest.raises(QueryError) as error:
        parse_script(f"create stream S;\n{text}")
    assert (error.value.line, error.value.column) == (2, column)
    assert reason in str(error.value)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("select a from R where x = 'from S//a'", "sql"),
        ("select * from R where x like 'a//b'", "sql"),
        ("SELECT * FROM S//a", "xscl"),
        ("select $x S//a->x", "xscl"),
        ("select 'from R' , x from S//a->x", None),
        ("'S'//a[b = \"from R\"]", "xscl"),
        ("from S -- a comment\n//a", None),
        ("S", "xscl"),
        ("S -- a comment\n publish P", "xscl"),
        ("create query q as 'a file.xml'", "xscl"),
        ("S as x every 1 hour", "xscl"),
        ("from S publish P", "xscl"),
        ("select x from S as x publish P", "xscl"),
        ("with", None),
        ("no statement", None),
    ],
)
def test_recognised(text: str, language: str | None) -> None:
    if language is None:
        with pytest.raises(QueryError):
            parse_script(text)
    else:
        assert parsed(text).shape.language == language

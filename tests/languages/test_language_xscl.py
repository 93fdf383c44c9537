"""XSCL texts: their meaning, shared shapes, and errors with their positions."""

from __future__ import annotations

import pytest
from hypothesis import given
from lxml import etree

from fishweir.algebra.documents import Document, parse_document
from fishweir.algebra.nodes import CreateQuery, Shape
from fishweir.algebra.normal import to_normal
from fishweir.algebra.oracle import evaluate
from fishweir.errors import QueryError
from fishweir.languages.bulk import render_rows
from fishweir.languages.script import parse_script
from fishweir.languages.skeleton import SkeletonCache
from tests import strategies as st

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
    # or and not
    ("S//book->x[author = 'B' or price = 7]", [{"x": "1"}, {"x": "5"}]),
    ("S//book->x[not(@id)]", [{"x": "8"}]),
    ("S//book->x[not(title = 'abc')]", [{"x": "5"}, {"x": "8"}]),
    ("S//book->x[not(price > 8 or author)]", [{"x": "5"}, {"x": "8"}]),
    ("S//book->x[not(title = 'x' and .//title) and (price or author)]", [{"x": "1"}, {"x": "5"}]),
    ("S//book->x[not(author[not(. = 'A')])]", [{"x": "5"}, {"x": "8"}]),
    ("S//price->x[not(. > 7)]", [{"x": "10"}]),
    ("S//title->x[not(. > 7)]", [{"x": "4"}, {"x": "7"}, {"x": "9"}]),
    ("select t from S//book[title->t or part/title->t]", [{"t": "4"}, {"t": "7"}, {"t": "9"}]),
    # XPath's other spellings
    ("S/descendant::book->x[child::title][attribute::id = '1']", [{"x": "1"}]),
    ("S//part/parent::book->x", [{"x": "5"}]),
    ("S//title->x[ancestor::part]", [{"x": "7"}, {"x": "9"}]),
    ("S//title/ancestor::book->x", [{"x": "1"}, {"x": "5"}, {"x": "8"}]),
    ("S//title->x[../author]", [{"x": "4"}]),
    ("S//*->x[self::author or self::price]", [{"x": "2"}, {"x": "3"}, {"x": "10"}]),
    ("S/shelf//*->x[not(self::book) and not(parent::book)]", [{"x": "7"}]),
    ("S//author | S//price", [{"_last0": "2"}, {"_last0": "3"}, {"_last0": "10"}]),
    ("S//author->x | S//price->x", [{"x": "2"}, {"x": "3"}, {"x": "10"}]),
    ("S//book->x[author | price = 7]", [{"x": "5"}]),
    ("S//book->x[title/text() = 'abc']", [{"x": "1"}]),
    ("S/shelf/node()/title->x", [{"x": "4"}]),
    ("S//book->x[contains(title, 'b')]", [{"x": "1"}]),
    ("S//book->x[starts-with(title, 'b') or starts-with(title, 'x')]", [{"x": "8"}]),
    ("S//author[2]->x", [{"x": "3"}]),
    ("S//book[author[last()]->x = 'B']", [{"_1": "1"}]),
    ("S//author[position() = 1]->x", [{"x": "2"}]),
    ("with namespace q = 'urn:p' S//q:book->x", [{"x": "5"}]),
    ("with namespace q = 'urn:p', r = 'urn:r' select x from S//book[@q:id]->x[not(r:title)]", [{"x": "5"}]),
    # optional branches
    ("select x, p from S//book->x[price->p]?", [{"x": "1"}, {"x": "5", "p": "10"}, {"x": "8"}]),
    ("select x, a from S//book->x[author->a = 'A']?[@id]", [{"x": "1", "a": "2"}, {"x": "5"}]),
    ("S//book->x[title like 'a%']", [{"x": "1"}]),
    ("S//book->x[title like 'A%']", []),
    ("S//book->x[title ilike 'A_C' and author Starts_With 'B']", [{"x": "1"}]),
    ("S//title->x[. substring 'b']", [{"x": "4"}, {"x": "7"}]),
    ("S//book->x[.//title contains 'X']", [{"x": "5"}, {"x": "8"}]),
    ("S//author->x[. similar 'a b']", [{"x": "2"}, {"x": "3"}]),
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
def test_a_block_agrees_with_xpath(path: str, body: str) -> None:
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


def test_published_names_are_not_part_of_the_shape() -> None:
    cache = SkeletonCache()
    texts = render_rows("S//a[b = $b] publish $name", [{"b": i, "name": f"p{i}"} for i in range(3)])
    created = [parse_script(one, cache=cache)[0] for one in texts]
    assert [(q.name, q.constants) for q in created] == [(f"p{i}", (float(i),)) for i in range(3)]
    assert len({id(q.shape) for q in created}) == cache.size == 1


def test_publish_as_an_element_name_is_not_a_clause() -> None:
    cache = SkeletonCache()
    for target in ("x", "y"):
        text = f"where <a/> element_as $a in 's' construct $a do mail publish {target}"
        (query,) = parse_script(text, cache=cache)
        assert (query.name, query.actions[0].arguments) == (None, ("publish", target))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("S//a->x[b][b/c]", "S//a->y[./b[c]]"),
        ("S//a[.//b][b->v = 1]", "S//a->x[b = 2]"),
        ("S//a[*][b]", "S//a[b]"),
        ("S//a[@k][@k = '1']", "S//a[@k = '2']"),
    ],
)
def test_existence_conditions_create_no_node(one: str, other: str) -> None:
    assert to_normal(parsed(one).shape).template == to_normal(parsed(other).shape).template


REFUSED = [
    ("S//a[not(b->x)]", 13, "the variable x cannot be bound inside not(...)"),
    ("select x from S//a[b->x or c]", 8, "an output variable must be bound in every part of an 'or'"),
    ("select x from S//a[b->x or @c->x]", 15, "x is an element in one part of the 'or'"),
    ("S//a[@*[not(. = 1)]]", 13, "not(...) needs the name of the attribute"),
    (f"S//a{'[b or c]' * 9}", 1, "more than 256 alternatives"),
    ("select y from S//a->x", 8, "the block does not bind y; bound variables: x"),
    ("S//a[b][1]", 9, "a position is the first predicate of its step"),
    ("S//a[1 or b]", 6, "a position must be the only condition"),
    ("S//a[0]", 6, "0 is not a position: positions count from 1"),
    ("S//a[position() < 3]", 6, "position() can only be compared with a number or last(), using '='"),
    ("S/descendant::a[2]", 17, "a position counts the children"),
    ("S//a[count(b) > 1]", 6, "functions other than contains(), starts-with(), not(), position() and last() are not"),
    ("S//a[contains(string(b), 'x')]", 15, "are not supported: string()"),
    ("S//a[contains(b)]", 6, "contains() takes a path and a quoted text"),
    ("S//a[b + 1]", 8, "arithmetic is not supported"),
    ("S//a[b = c + 1]", 12, "arithmetic is not supported"),
    ("S//a[b * 2 = 4]", 8, "arithmetic is not supported"),
    ("S//a[last() - 1]", 13, "arithmetic is not supported"),
    ("S//a[position() = last()-1]", 25, "arithmetic is not supported"),
    ("S//a[b = c = d]", 12, "a comparison has two sides"),
    ("S//a | S//a/@b", 1, "the result is an element in one part of the 'or'"),
    ("S/following::a", 3, "the axis following:: is not supported"),
    ("S//a[preceding-sibling::b]", 6, "the axis preceding-sibling:: is not supported"),
    ("S//comment()", 4, "comment() is not supported"),
    ("S//a/text()", 6, "text() can be compared, but not selected"),
    ("S//a[node()]", 6, "node() at the end of a path"),
    ("S//a[not(ancestor::b)]", 20, "ancestor:: is not supported inside not(...)"),
    ("S//a[not(self::b[c])]", 16, "a predicate there is not supported inside not(...)"),
    ("S//a[../b = c]", 6, "a comparison of two paths begins at one node"),
    ("S/a/..", 5, "the path leads above the document element"),
    ("S//a | T//b", 8, "the parts of a union read one stream"),
    ("select y from S//a[b->x]?", 8, "does not bind y"),
    ("S//a->x[b->z]? JOIN{x = y and z = y, 1} S//c->y", 31, "the variable z is optional"),
    ("S//a['1' = 1]", 6, "two constants"),
    ("S//dc:a", 4, "the prefix dc is not declared: write \"with namespace dc = '...'\" before the query"),
    ("S//a[b like 5]", 13, "expected quoted text after 'like'"),
    ("S//a[b like c]", 13, "expected quoted text after 'like'"),
    ("S//a['b' like c]", 6, "expected a path before 'like'"),
    ("S//a[b contains '!']", 17, "does not contain a word"),
    ("S//a[b resembles 'c']", 8, "a condition such as contains, found 'resembles'"),
    ("S//a->x JOIN{x = y and 'a' like y, 5} T//b->y", 24, "expected a variable before 'like'"),
    ("S//a->x JOIN{x like y, 5} T//b->y", 21, "expected quoted text after 'like'"),
    ("S//@*", 5, "needs a name"),
    ("S/@id", 4, "a document has no attributes"),
    ("S//@id/a", 8, "an attribute has no children"),
    ("S//a->x[b->x]", 12, "the variable x is bound twice"),
    ("S//a->_x", 7, "begins with a letter"),
    ("S//a[b = 1e999]", 10, "too large"),
    ("S//a[b = ]", 10, "expected"),
    ("S//a//", 7, "expected"),
    ("select <h>$x</g> from S//a->x", 15, "to close '<h>'"),
    ("create query q as S//a publish r", 19, "it can have only one name"),
    ("S//a->x FOLLOWED{x=y, 1} S//b->y", 9, "'followed by{', 'join{'"),
    ("S publish", 10, "expected a name or quoted text, found the end of the statement"),
    ("S[a]", 2, "found '['"),
    ("S join T", 8, "expected '{', found 'T'"),
    ("select <o>{x} &amp; y</o> from S//a->x", 19, "';' ends the statement; write '&' instead of '&amp;'"),
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
        query = text.removeprefix("create query q as ")
        assert parsed(text).shape == parsed(f"create query P using {language} as {query}").shape

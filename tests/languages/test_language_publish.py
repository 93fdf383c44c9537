"""`publish NAME` after a query of any language: its language, its name, and where it is refused."""

# ruff: noqa: E501 (tables read better in long lines)

from __future__ import annotations

import pytest

from fishweir.algebra.feeds import FeedQuery, Selection
from fishweir.algebra.nodes import CreateQuery, Shape
from fishweir.errors import QueryError, QuerySyntaxError
from fishweir.languages.bulk import render_rows
from fishweir.languages.script import parse_script
from fishweir.languages.skeleton import SkeletonCache

PUBLISHED = [
    # text, language, name, whether it is published
    ("select symbol, price from trades where price > 100 publish expensive", "sql", "expensive", True),
    ("select * from R publish P", "sql", "P", True),
    ("select x from R r publish P", "sql", "P", True),
    ("select x, y from R publish P", "sql", "P", True),
    ('SELECT * FROM R PUBLISH "a name" every 5 do mail me', "sql", "a name", True),
    ("select R.x from R [range 5], S [rows 3] where R.x = S.x publish both expire 100", "sql", "both", True),
    ("select publish from R as publish where publish.publish = 'a' publish P", "sql", "P", True),
    ("select x from R where publish > 5", "sql", None, False),
    ("create query N as select * from R publish N", "sql", "N", True),
    ("create query N as select * from R", "sql", "N", False),
    ("where <a>$x</> in s construct <o>$x</o> publish P do mail me", "niagaracq", "P", True),
    ("where <a>$x</> in s construct $x do mail publish P", "niagaracq", None, False),
    ("S//a publish P", "xscl", "P", True),
    ("from S publish P", "xscl", "P", True),
    ("select x from S as x publish P", "xscl", "P", True),
    ("select * from S//a publish P", "xscl", "P", True),
    ("select * S publish P", "xscl", "P", True),
    ("from R where [x = 5] publish P", "roses", "P", True),
    ("create query N as from R | S publish N every 5", "roses", "N", True),
]


@pytest.mark.parametrize(("text", "language", "name", "published"), PUBLISHED)
def test_published(text: str, language: str, name: str | None, published: bool) -> None:
    cache = SkeletonCache()
    for _ in ("in full", "from the cache"):
        (query,) = parse_script(text, now=50.0, cache=cache)
        assert isinstance(query, CreateQuery)
        assert (query.name, query.published) == (name, published)
        assert made_of(query.shape) == ("patterns" if language in ("xscl", "niagaracq") else language)


def made_of(shape: object) -> str:
    """The parts of a query, by language: feeds, columns or patterns."""
    if isinstance(shape, FeedQuery):
        return "roses"
    columns = shape.columns if isinstance(shape, Selection) else isinstance(shape, Shape) and shape.formula is not None
    return "sql" if columns else "patterns"


@pytest.mark.parametrize(
    "text", ["select x from R where x > $lo publish $name", "from R where [x > $lo] publish $name"]
)
def test_published_names_are_not_part_of_the_shape(text: str) -> None:
    cache = SkeletonCache()
    texts = render_rows(text, [{"lo": i, "name": f"p{i}"} for i in range(3)])
    queries = [query for one in texts for query in parse_script(one, cache=cache)]
    assert [(q.name, q.constants, q.published) for q in queries] == [(f"p{i}", (float(i),), True) for i in range(3)]  # type: ignore[union-attr]
    assert len({id(q.shape) for q in queries}) == 1  # type: ignore[union-attr]


REFUSED = [
    # text, the place is at this text (or the end), kind, words of the message
    ("select * from R publish", "", QuerySyntaxError, "expected a name or quoted text, found the end of the statement"),
    ("select * from R publish 5", "5", QuerySyntaxError, "expected a name or quoted text, found '5'"),
    ("select * from R publish ''", "''", QuerySyntaxError, "expected a name after 'publish', found an empty text"),
    ("select * from R publish P publish Q", "publish Q", QuerySyntaxError, "expected 'do', 'every', 'expire', 'pref', 'start' or the end of the statement, found 'publish'"),
    ("select * from R every 5 s publish P", "publish", QuerySyntaxError, "found 'publish'"),
    ("where <a>$x</> in s construct $x publish", "", QuerySyntaxError, "expected a name or quoted text"),
    ("where <a>$x</> in s construct $x every 5 s publish P", "publish", QuerySyntaxError, "found 'publish'"),
    ("create N where <a>$x</> in s construct $x publish P", "where", QueryError, "the query is named N and published as P: it can have only one name"),
    ("create query N as select * from R publish P", "select", QueryError, "the query is named N and published as P: it can have only one name"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "place", "kind", "words"), REFUSED)
def test_refused(text: str, place: str, kind: type[QueryError], words: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse_script(f"create stream S;\n  {text} ;")
    column = 3 + (text.rindex(place) if place else len(text))
    assert type(caught.value) is kind
    assert words in caught.value.reason
    assert (caught.value.line, caught.value.column) == (2, column)
    assert str(caught.value).split("\n")[2].strip() == "^"

"""Tree patterns with or, not and the rest of XPath that XSCL supports: lxml, the oracle and the shared plan agree."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import assume, given
from lxml import etree

from fishweir.algebra.clauses import constants_of, to_normals
from fishweir.algebra.documents import Document, parse_document
from fishweir.algebra.nodes import CreateQuery, Shape, Source
from fishweir.algebra.oracle import evaluate
from fishweir.errors import QueryError
from fishweir.evaluate.plan.plan import plan_of
from fishweir.evaluate.plan.segments import build_groups, planned_segment
from fishweir.languages.script import parse_script
from tests import strategies as st
from tests.evaluate.support import expanded
from tests.xpath_texts import absolute_paths, trees

Found = set[tuple[int, int, tuple[int, ...]]]


def parsed(text: str) -> CreateQuery:
    (query,) = parse_script(text)
    assert isinstance(query, CreateQuery)
    assert isinstance(query.shape, Shape)
    return query


REFUSED = (
    "begins at one node",
    "does not lead above",
    "is not supported inside not",
    "leads above the node",
    "a position",
    "alternatives",
)
"""The messages for paths that cannot be rewritten into a pattern."""


def readable(path: str) -> CreateQuery | None:
    """The query of a path; None if it selects nothing in any document."""
    try:
        return parsed(f"S{path}")
    except QueryError as error:
        assume(not any(reason in str(error) for reason in REFUSED))
        if "it selects nothing" in str(error):
            return None
        raise


def by_oracle(queries: Sequence[CreateQuery], documents: Sequence[Document]) -> Found:
    """(query, document, output nodes)."""
    found = set()
    for number, query in enumerate(queries):
        assert isinstance(query.shape, Shape)
        for i, document in enumerate(documents):
            for binding in evaluate(query.shape, query.constants, document):
                ids = [binding[n].number if n in binding else -1 for n in query.shape.output_variables]
                found.add((number, i, tuple(ids)))
    return found


def by_plan(queries: Sequence[CreateQuery], documents: Sequence[Document]) -> Found:
    """The same by one segment of all queries; alternatives may find a result several times."""
    rows = [
        (number, normal.template, constants_of(normal, query.constants))
        for number, query in enumerate(queries)
        for normal in to_normals(query.shape)  # type: ignore[arg-type]
    ]
    segment = planned_segment("1", build_groups(rows, {}), {})
    plan = plan_of([segment], [Source("S")])
    walk = plan.start()
    for i, document in enumerate(documents):
        walk.add(i, document.root, document.context)
    return {one for _, index, matches in plan.match(walk.tables()) for one in expanded(segment.groups[index], matches)}


def documents_of(texts: Sequence[str]) -> list[Document]:
    return [Document(str(i), 0.0, parse_document(text.encode())) for i, text in enumerate(texts)]


@st.examples(200)
@given(absolute_paths(), trees())
def test_the_oracle_agrees_with_xpath(path: str, body: str) -> None:
    root = etree.fromstring(body)
    ids = {element: i for i, element in enumerate(root.iter())}
    expected = {(0, 0, (ids[element],)) for element in root.getroottree().xpath(path)}
    query = readable(path)
    assert (by_oracle([query], documents_of([body])) if query else set()) == expected


@st.examples(60)
@given(st.lists(absolute_paths(), min_size=1, max_size=6), st.lists(trees(), min_size=1, max_size=4))
def test_the_plan_agrees_with_the_oracle(paths: list[str], bodies: list[str]) -> None:
    queries, documents = [query for query in map(readable, paths) if query], documents_of(bodies)
    assert by_plan(queries, documents) == by_oracle(queries, documents)


@pytest.mark.parametrize(
    "path", ["//*[not(./descendant-or-self::b)]", "//*[not(./descendant-or-self::b/a = '1')]", "//a[not(./self::b)]"]
)
def test_negated_paths_that_may_stay_at_the_node(path: str) -> None:
    body = "<a><a><b k='1'><a>1</a></b></a><b><b/></b><a/></a>"
    root = etree.fromstring(body)
    expected = {i for i, element in enumerate(root.iter()) if element in root.getroottree().xpath(path)}
    query = readable(path)
    assert query
    assert {nodes for _, _, nodes in by_oracle([query], documents_of([body]))} == {(i,) for i in expected}
    assert by_plan([query], documents_of([body])) == by_oracle([query], documents_of([body]))

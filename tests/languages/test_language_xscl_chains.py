"""Several joins in one XSCL query: each reads the output of the previous one."""

from __future__ import annotations

import pytest
from hypothesis import given

from fishweir.algebra.construct import Bound, construct
from fishweir.algebra.documents import Document, parse_document
from fishweir.algebra.join_oracle import JoinResult, evaluate_join
from fishweir.algebra.nodes import CreateQuery, Shape
from fishweir.errors import QueryError
from fishweir.languages.script import parse_script
from tests import strategies as st

Row = tuple[str, int, str, str]


def output(shape: Shape, pair: JoinResult) -> str:
    bound: dict[str, Bound] = {
        name: (node.element, node.id.partition("@")[2] or None) for name, node in pair.binding.items()
    }
    return construct(shape.output, bound)


def run(text: str, streams: dict[str, list[Document]]) -> list[str]:
    """The outputs of the last join; each join reads the documents that the previous one outputs."""
    found: list[str] = []
    streams = dict(streams)
    for query in parse_script(text):
        assert isinstance(query, CreateQuery)
        assert isinstance(query.shape, Shape)
        sides = [streams[block.source.name] for block in query.shape.blocks]
        pairs = evaluate_join(query.shape, query.constants, sides)
        found = [output(query.shape, pair) for pair in pairs]
        bodies = (parse_document(body.encode()) for body in found)
        name = str(query.name)
        streams[name] = [
            Document(f"{name}-{i}", pair.timestamp, body)
            for i, (pair, body) in enumerate(zip(pairs, bodies, strict=True), 1)
        ]
    return found


def to_document(number: int, row: Row) -> Document:
    key, time, p, q = row
    body = f'<w><r n="{number}" k="{key}"><p>{p}</p><q>{q}</q></r></w>'
    return Document(f"d{number}", float(time), parse_document(body.encode()))


VALUES = st.sampled_from(["1", "2", ""])
ROWS = st.lists(st.tuples(VALUES, st.integers(0, 8), VALUES, VALUES), max_size=5)
CHAIN = """select <t a=$m b=$n c=$o/> from S//r->x[p->u][@n->m] JOIN{u=v, 3} S//r->y[p->v][@n->n]
    FOLLOWED BY{x/q = w AND y/@k != z/@k, 2} S//r->z[p->w][@n->o]"""


@given(ROWS)
def test_a_chain_is_a_sequence_of_joins(rows: list[Row]) -> None:
    documents = [to_document(i, row) for i, row in enumerate(rows)]
    expected = [
        f'<t a="{i}" b="{j}" c="{k}"/>'
        for i, x in enumerate(rows)
        for j, y in enumerate(rows)
        for k, z in enumerate(rows)
        if i != j and abs(x[1] - y[1]) <= 3 and x[2] == y[2]
        if 0 < z[1] - max(x[1], y[1]) <= 2 and x[3] == z[2] and y[0] != z[0]
    ]
    assert sorted(run(CHAIN, {"S": documents})) == sorted(expected)


RIGHT = """select <t a=$m b=$n c=$o/> from S//r->x[p->u][@n->m] FOLLOWED BY{x/q = w AND u != y/@k, 3}
    (S//r->y[p->v][@n->n] JOIN{v=w, 2} S//r->z[p->w][@n->o])"""


@given(ROWS)
def test_a_join_in_parentheses_is_one_side(rows: list[Row]) -> None:
    """Its time is that of its later document."""
    documents = [to_document(i, row) for i, row in enumerate(rows)]
    expected = [
        f'<t a="{i}" b="{j}" c="{k}"/>'
        for i, x in enumerate(rows)
        for j, y in enumerate(rows)
        for k, z in enumerate(rows)
        if j != k and abs(y[1] - z[1]) <= 2 and y[2] == z[2]
        if 0 < max(y[1], z[1]) - x[1] <= 3 and x[3] == z[2] and x[2] != y[0]
    ]
    assert sorted(run(RIGHT, {"S": documents})) == sorted(expected)


SEQUENCE = """select <t a=$m b=$n c=$o/> from (S//r[@n->m] FOLLOWED BY{2} S//r[@n->n]) FOLLOWED BY{, 3 s}
    ((S//r[@n->o][p = '1']))"""


@given(ROWS)
def test_a_pure_sequence_of_three(rows: list[Row]) -> None:
    documents = [to_document(i, row) for i, row in enumerate(rows)]
    expected = [
        f'<t a="{i}" b="{j}" c="{k}"/>'
        for i, x in enumerate(rows)
        for j, y in enumerate(rows)
        for k, z in enumerate(rows)
        if 0 < y[1] - x[1] <= 2 and 0 < z[1] - y[1] <= 3 and z[2] == "1"
    ]
    assert sorted(run(SEQUENCE, {"S": documents})) == sorted(expected)


def test_parentheses_on_the_left_change_nothing() -> None:
    with_them = THREE.replace("A/a", "(A/a").replace(" JOIN{f=h", ") JOIN{f=h")
    one, two = parse_script(f"{THREE} publish P"), parse_script(f"from ({with_them}) publish P")
    assert [(q.name, q.shape, q.constants) for q in one] == [(q.name, q.shape, q.constants) for q in two]  # type: ignore[union-attr]


def test_both_sides_may_be_joins() -> None:
    """The default output has the results of all blocks in the order of the text."""
    text = "(A/a->x[b->b] JOIN{b=e, 5} B/d->y[e->e]/f->f) JOIN{f=h, 5} (C/g->z[h->h] FOLLOWED BY{INF} D/k)"
    a = '<a i="&lt;7"><n:b xmlns:n="urn:n"> 1 <c/></n:b></a>'
    assert run(text, STREAMS) == [f'<result>{a}<f>x</f><g><h>x</h></g><k j="&lt;7"/></result>']


A = Document("a", 0.0, parse_document(b'<a i="&lt;7"><n:b xmlns:n="urn:n"> 1 <c/></n:b></a>'))
B = Document("b", 1.0, parse_document(b"<d><e> 1 </e><f>x</f></d>"))
C = Document("c", 2.0, parse_document(b"<g><h>x</h></g>"))
D = Document("d", 3.0, parse_document(b'<k j="&lt;7"/>'))
STREAMS = {"A": [A], "B": [B], "C": [C], "D": [D]}
THREE = "A/a->x[b->b] JOIN{b=e, 5} B/d->y[e->e]/f->f JOIN{f=h, 5} C/g->z[h->h]"


def test_the_default_output_has_the_results_of_all_blocks() -> None:
    a = '<a i="&lt;7"><n:b xmlns:n="urn:n"> 1 <c/></n:b></a>'
    assert run(THREE, STREAMS) == [f"<result>{a}<f>x</f><g><h>x</h></g></result>"]
    four = f"{THREE} FOLLOWED BY{{x/@i = j, 1}} D/k/@j->j"
    assert run(four, STREAMS) == [f"<result>{a}<f>x</f><g><h>x</h></g>&lt;7</result>"]


def test_attributes_are_kept_as_their_text() -> None:
    text = "A/a/@i->i JOIN{i != f, 5} B//f->f JOIN{f = h, 5} C//h->h FOLLOWED BY{i = j, 5} D/k[@j->j]"
    assert run(text, STREAMS) == ['<result>&lt;7<f>x</f><h>x</h><k j="&lt;7"/></result>']
    assert run(f"select <t v=$i>{{i}}</t> from {text}", STREAMS) == ['<t v="&lt;7">&lt;7</t>']
    first, second, last = parse_script(f"create query q as {text}")
    assert [s.derived for s in (first, second, last)] == [True, True, False]  # type: ignore[union-attr]
    assert last.name == "q"  # type: ignore[union-attr]


def test_chains_share_common_prefixes() -> None:
    first, second = (
        parse_script(f"{THREE.replace('h->h', 'h->h' + more)} publish {name}")
        for more, name in (("", "P"), ("[. = 'k']", "Q"))
    )
    assert first[0] == second[0]
    assert first[1].shape != second[1].shape  # type: ignore[union-attr]


REFUSED = [
    ("S/a->x JOIN{x=y, 5} S/b->y JOIN{x=w, 5} S/c->z", 35, "the blocks do not bind w; bound variables: x, y, z"),
    ("S/a->x JOIN{x=z, 5} S/b->y JOIN{x=z, 5} S/c->z", 15, "the blocks do not bind z; bound variables: x, y"),
    ("S/a->x JOIN{x=y, 5} S/b->y JOIN{y=x, 5} S/c->z", 28, "all comparisons of this join are within one of its"),
    ("S/a->x JOIN{x=y, 5} (S/b->y JOIN{x=z, 5} S/c->z)", 34, "the blocks do not bind x; bound variables: y, z"),
    ("S/a->x JOIN{x=z, 5} (S/b->y JOIN{y=z, 5} S/c->z[d->x])", 52, "the variable x is bound in two blocks"),
    ("S/a->x JOIN{x=y, 5} (S/b->y JOIN{y=z, 5} S/c->z", 48, "')'"),
    ("(S/a->x JOIN{x=y, 5} S/b->y)) JOIN{y=z, 5} S/c->z", 29, "found ')'"),
    ("S/a->x JOIN{x=y, 5} S/b->y JOIN{y=z, 5} S/c->z[d->x]", 51, "the variable x is bound in two blocks"),
    ("S//@i->x JOIN{x=y, 5} S/b->y JOIN{x/b=z, 5} S/c->z", 37, "an attribute has no children"),
    ("select w from S/a->x JOIN{x=y, 5} S/b->y JOIN{y=z, 5} S/c->z", 8, "the blocks do not bind w"),
    ("S//@*->x JOIN{x=y, 5} S/b->y JOIN{x=z, 5} S/c->z", 15, "needs a name"),
]


@pytest.mark.parametrize(("text", "column", "reason"), REFUSED)
def test_refused(text: str, column: int, reason: str) -> None:
    with pytest.raises(QueryError) as error:
        parse_script(text)
    assert error.value.column == column
    assert reason in str(error.value)

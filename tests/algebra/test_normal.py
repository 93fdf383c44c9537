"""Normal form: equivalent queries have one template, and each constant has its own slot."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from fishweir.algebra.documents import Document, parse_document
from fishweir.algebra.nodes import (
    MIRRORED,
    Block,
    Comparison,
    CreateQuery,
    ElementOutput,
    PatternNode,
    Shape,
    VariableOutput,
)
from fishweir.algebra.normal import Normal, to_normal
from fishweir.algebra.oracle import evaluate
from fishweir.languages.script import parse_script
from tests import strategies as st
from tests.generators import documents, shapes


def query(text: str) -> CreateQuery:
    (statement,) = parse_script(text)
    assert isinstance(statement, CreateQuery)
    return statement


def constants_by_path(text: str) -> set[tuple[str, str, str | float]]:
    """The constants of a query by path."""
    statement = query(text)
    normal = to_normal(statement.shape)
    return {
        (".".join(map(str, normal.template.path(c.node))), c.op, statement.constants[normal.slots[c.slot]])
        for c in normal.template.constants
    }


SAME = [
    ("where <Q><A/></> element_as $q in 's' construct $q", "where <Q><A/><A/></> element_as $q in 's' construct $q"),
    (
        "where <Q><S>'INTC'</><P>$p</></> element_as $g in 's', $p < 100 construct $g",
        "where <Q><P>$price</><S>'MSFT'</></> element_as $it in 's', $price < 5 construct <r>$it</r>",
    ),
    (
        "where <Q><S>$s</></> in 's', $s = 'INTC' construct $s",
        "where <Q><S>'INTC'</> element_as $s </> in 's' construct $s",
    ),
    (
        "where <Q><P>$p</></> in 's', $p > 1, $p < 5 construct $p",
        "where <Q><P>$p</></> in 's', 9 > $p, 2 < $p construct $p",
    ),
    (
        "where <Q><A>$a</><B>$b</></> in 's', $a < $b construct $a",
        "where <Q><B>$y</><A>$x</></> in 's', $y > $x construct $x",
    ),
    (
        "where <Q><A>$a</><A>$b</></> in 's', $a < $b construct $a",
        "where <Q><A>$b</><A>$a</></> in 's', $a < $b construct $a",
    ),
    (
        "where <Q><A>$a</><A>$b</></> in 's', $a < $b construct <x/>",
        "where <Q><A>$b</><A>$a</></> in 's', $a < $b construct <x/>",
    ),
    (
        "where <Q><A>$a</><B>$a</></> in 's' construct $a",
        "where <Q><A>$a</><B>$b</></> in 's', $b = $a construct $a",
    ),
    (
        "where <Q k=$k><A/><A><B/></></> in 's', $k != 1 construct $k",
        "where <Q k=$z><A><B/></><A/></> in 's', $z != 7 construct $z",
    ),
]
DIFFERENT = [
    ("where <Q><A>$a</></> in 's' construct $a", "where <Q><A>$a</></> in 't' construct $a"),
    ("where <Q><A>$a</></> in 's' construct $a", "where <Q><A>$a</></> element_as $q in 's' construct $q"),
    ("where <Q><A>$a</></> in 's', $a > 1 construct $a", "where <Q><A>$a</></> in 's', $a >= 1 construct $a"),
    ("where <Q><A>$a</></> in 's', $a > 1 construct $a", "where <Q><A>$a</></> in 's', $a > '1' construct $a"),
    ("where <Q><A>$a</></> in 's' construct $a", "where <Q A=$a></> in 's' construct $a"),
    (
        "where <Q><A>$a</><B>$b</></> in 's', $a < $b construct $a",
        "where <Q><A>$a</><B>$b</></> in 's', $b < $a construct $a",
    ),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_same_template(one: str, other: str) -> None:
    assert to_normal(query(one).shape).template == to_normal(query(other).shape).template


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_different_template(one: str, other: str) -> None:
    assert to_normal(query(one).shape).template != to_normal(query(other).shape).template


def test_constants_go_to_their_conditions() -> None:
    first = "where <Q><S>'INTC'</><P>$p</></> in 's', $p < 100, $p >= 5, $p != 7 construct $p"
    other = "where <Q><P>$p</><S>'INTC'</></> in 's', 7 != $p, 5 <= $p, $p < 100 construct $p"
    expected = {("Q.S", "=", "INTC"), ("Q.P", "<", 100.0), ("Q.P", ">=", 5.0), ("Q.P", "!=", 7.0)}
    assert constants_by_path(first) == constants_by_path(other) == expected


def test_equal_siblings_keep_their_own_constants() -> None:
    text = "where <Q><A x='1'>$a</><A x='2'>$b</></> in 's' construct $b"
    normal, nodes = to_normal(query(text).shape), dict(to_normal(query(text).shape).variables)
    chosen = {query(text).constants[normal.slots[c.slot]]: c.node for c in normal.template.constants}
    assert normal.template.nodes[chosen["2"]].parent == nodes["b"]
    assert normal.template.nodes[chosen["1"]].parent == nodes["a"]


def test_signatures_are_the_paper_s() -> None:
    template = to_normal(query("where <Quotes><Quote><Symbol>INTC</></></> in 'q' construct <x/>").shape).template
    assert template.signature(*template.constants) == "Quotes.Quote.Symbol = constant in q"
    assert str(template) == "q: Quotes.Quote.Symbol | Quotes.Quote.Symbol = constant | -"


def shuffled(pattern: PatternNode, draw) -> PatternNode:  # type: ignore[no-untyped-def]
    children = [shuffled(child, draw) for child in draw(st.permutations(pattern.children))]
    return replace(pattern, variables=tuple(f"n_{v}" for v in pattern.variables), children=tuple(children))


def renamed(shape: Shape, draw) -> Shape:  # type: ignore[no-untyped-def]
    """The same query with other names, siblings and conditions in another order, and mirrored comparisons."""
    (block,) = shape.blocks

    def output(part):  # type: ignore[no-untyped-def]
        if isinstance(part, VariableOutput):
            return replace(part, name=f"n_{part.name}")
        return replace(part, children=tuple(map(output, part.children))) if isinstance(part, ElementOutput) else part

    def condition(c: Comparison) -> Comparison:
        if not isinstance(c.right, str):
            return replace(c, left=f"n_{c.left}")
        if c.left != c.right and draw(st.booleans()):
            return Comparison(f"n_{c.right}", MIRRORED[c.op], f"n_{c.left}")
        return Comparison(f"n_{c.left}", c.op, f"n_{c.right}")

    conditions = [condition(c) for c in draw(st.permutations(shape.conditions))]
    pattern = Block(block.source, shuffled(block.pattern, draw))
    return replace(shape, blocks=(pattern,), conditions=tuple(conditions), output=tuple(map(output, shape.output)))


def joined_siblings(shape: Shape) -> bool:
    """Joins between nodes that nothing else distinguishes: their order may be arbitrary."""
    return sum(isinstance(c.right, str) for c in shape.conditions) > 1


@given(shapes(), st.data())
def test_names_and_orders_do_not_matter(drawn, data) -> None:  # type: ignore[no-untyped-def]
    shape, constants = drawn
    other = renamed(shape, data.draw)
    if not joined_siblings(shape):
        assert to_normal(other).template == to_normal(shape).template
    assert sorted(map(repr, in_slots(to_normal(other), constants))) == sorted(
        map(repr, in_slots(to_normal(shape), constants))
    )


def in_slots(normal: Normal, constants: tuple[str | float, ...]) -> list[tuple[object, ...]]:
    path = normal.template.path
    return [(path(c.node), c.op, constants[normal.slots[c.slot]]) for c in normal.template.constants]


@given(shapes(), documents(), st.data())
def test_the_oracle_does_not_see_names_and_orders(drawn, text: str, data) -> None:  # type: ignore[no-untyped-def]
    shape, constants = drawn
    document = Document("d", 0.0, parse_document(text.encode()))
    found = [
        [
            {name.removeprefix("n_"): node.id for name, node in binding.items()}
            for binding in evaluate(s, constants, document)
        ]
        for s in (shape, renamed(shape, data.draw))
    ]
    assert found[0] == found[1]

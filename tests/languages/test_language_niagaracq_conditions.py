"""and, or and not between NiagaraCQ's conditions: a formula selects the bindings for which it is true."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given

from fishweir.algebra.documents import Document, parse_document
from fishweir.algebra.nodes import CreateQuery, Shape
from fishweir.algebra.oracle import evaluate, values_compare
from fishweir.algebra.values import satisfies
from fishweir.errors import QueryError
from fishweir.languages.bulk import render_rows
from fishweir.languages.script import parse_script
from fishweir.languages.skeleton import SkeletonCache
from tests import strategies as st

BODY = "<r>" + "".join(f"<a>{v}</a><b>{w}</b>" for v, w in zip("012x", ["", "1", "2.0", "x"], strict=True)) + "</r>"
OPERATORS = ["=", "!=", "<", ">="]


def found(condition: str) -> set[tuple[str, str]]:
    """The nodes of $p and $q for which a condition holds."""
    text = f"where <r><a>$p</> <b>$q</></> in 'S'{condition} construct $p, $q"
    (query,) = parse_script(text)
    assert isinstance(query, CreateQuery)
    assert isinstance(query.shape, Shape)
    bindings = evaluate(query.shape, query.constants, Document("d", 0.0, parse_document(BODY.encode())))
    return {(binding["p"].id, binding["q"].id) for binding in bindings}


@st.composite
def formulas(draw: st.DrawFn, depth: int = 3) -> Any:
    """A comparison, ("not", formula) or ("and" or "or", formula, formula)."""
    kind = draw(st.sampled_from(["atom", "not", "and", "or"])) if depth else "atom"
    if kind == "not":
        return kind, draw(formulas(depth - 1))
    if kind != "atom":
        return kind, draw(formulas(depth - 1)), draw(formulas(depth - 1))
    right = draw(st.sampled_from(["1", "x", 1.0, 2.0, "$q"]))
    return draw(st.sampled_from(["$p", "$q"])), draw(st.sampled_from(OPERATORS)), right


def shown(formula: Any) -> str:
    match formula:
        case ("not", part):
            return f"not({shown(part)})"
        case ("and" | "or" as word, left, right):
            return f"({shown(left)} {word} {shown(right)})"
    left, op, right = formula
    return f"{left} {op} {right if right == '$q' or isinstance(right, float) else repr(right)}"


def holds(formula: Any, values: dict[str, str]) -> bool:
    match formula:
        case ("not", part):
            return not holds(part, values)
        case ("and", left, right):
            return holds(left, values) and holds(right, values)
        case ("or", left, right):
            return holds(left, values) or holds(right, values)
    left, op, right = formula
    return values_compare(values[left], op, values["$q"]) if right == "$q" else satisfies(values[left], op, right)


@given(formulas())
def test_a_formula_selects_the_bindings_that_satisfy_it(formula: Any) -> None:
    root = parse_document(BODY.encode())
    ids = {element: str(i) for i, element in enumerate(root.iter())}
    pairs = [(a, b) for a in root.iter("a") for b in root.iter("b")]
    expected = {(ids[a], ids[b]) for a, b in pairs if holds(formula, {"$p": a.text or "", "$q": b.text or ""})}
    try:
        assert found(f", {shown(formula)}") == expected
    except QueryError as error:
        assume("between variables" not in str(error))
        raise


@pytest.mark.parametrize(
    ("condition", "column", "reason"),
    [
        (", not($p < $q)", 46, "not(... < ...) is not supported between variables"),
        (", $p > 1 or", 49, "expected"),
        (", not $p = 1", 39, "expected"),
        (", $p = 1 or $z = 1", 49, "no pattern binds $z"),
    ],
)
def test_refused(condition: str, column: int, reason: str) -> None:
    with pytest.raises(QueryError) as error:
        found(condition)
    assert reason in str(error.value)
    assert error.value.column == column


def test_queries_of_one_shape_are_parsed_once() -> None:
    cache = SkeletonCache()
    text = "create $name where <r><a>$p</></> in 'S', $p > $lo or not($p = $text) construct $p"
    rows = [{"name": f"q{i}", "lo": i, "text": f"t{i}"} for i in range(3)]
    created = [parse_script(one, cache=cache)[0] for one in render_rows(text, rows)]
    assert [(q.name, q.constants) for q in created] == [(f"q{i}", (float(i), f"t{i}")) for i in range(3)]
    assert len({id(q.shape) for q in created}) == cache.size == 1


def test_a_path_in_a_tag_is_the_same_as_nested_tags() -> None:
    shapes = [
        parse_script(f"where {pattern} in 'S' construct $x")[0].shape  # type: ignore[union-attr]
        for pattern in ("<r.a><b.c>1</> <d>$x</></>", "<r><a><b><c>1</></> <d>$x</></></>")
    ]
    assert shapes[0] == shapes[1]

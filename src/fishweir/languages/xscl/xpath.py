"""The XPath features of XSCL beyond names and slashes: axes, node tests, functions, positions, prefixes.

In: tokens and operands as split by the grammar. Out: steps and comparisons. Unsupported features are rejected by name,
with their position.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lark import Token

from fishweir.algebra.nodes import LAST
from fishweir.languages.connectives import NotSyntax, OrSyntax
from fishweir.languages.statement_text import Rejected
from fishweir.languages.xscl.syntax import (
    CallSyntax,
    ComparisonSyntax,
    ConditionSyntax,
    Namespaces,
    OptionalSyntax,
    PositionSyntax,
    RelativeSyntax,
    StepSyntax,
    UnionSyntax,
    changed,
)

AXES = (
    "child", "attribute", "descendant", "descendant-or-self", "self", "parent", "ancestor", "ancestor-or-self",
)  # fmt: skip
ON_TEXTS = {"contains": "substring", "starts-with": "starts-with"}
"""XPath functions that are conditions; the engine's `contains` is about words."""
FUNCTIONS = "contains(), starts-with(), not(), position() and last()"

NodeTest = tuple[Token, str, str]
"""The name, the axis, and a node test instead of the name."""
Operand = RelativeSyntax | UnionSyntax | CallSyntax | Token


def with_namespaces(node: Any, declared: Namespaces) -> Any:
    """The same syntax with `{uri}name` instead of prefixes. Raises Rejected for an undeclared prefix."""

    def spelled_out(part: Any) -> Any:
        return _spelled_out(part, declared.prefixes) if isinstance(part, Token) and part.type == "PREFIXED" else part

    return changed(node, spelled_out)


def to_optional(condition: ConditionSyntax, mark: Token) -> OptionalSyntax:
    """`[b->x]?`: the condition, or its negation with nothing bound."""

    def unbound(node: Any) -> Any:
        return replace(node, variables=()) if isinstance(node, StepSyntax) else node

    condition = compared(condition)
    return OptionalSyntax((condition, NotSyntax(mark, changed(condition, unbound))))


def _spelled_out(token: Token, declared: Mapping[str, str]) -> Token:
    prefix, _, local = token.rpartition(":")
    if prefix not in declared:
        how = f"write \"with namespace {prefix} = '...'\" before the query, or '{local}' for any namespace"
        raise Rejected(f"the prefix {prefix} is not declared: {how}", at(token))
    return token.update(type="CLARK", value=f"{{{declared[prefix]}}}{local}")


def to_test(tokens: tuple[Token, ...]) -> NodeTest:
    """The test of a step: `@k`, `child::a`, `parent::node()`, `.`, `..`."""
    *before, test = tokens
    if test.type in ("DOT", "PARENT"):
        return test, "self" if test.type == "DOT" else "parent", "node"
    axis = "child"
    if before:
        axis = "attribute" if before[0].type == "AT" else before[0].rstrip(": \t\r\n")
        if axis not in AXES:
            raise Rejected(f"the axis {axis}:: is not supported", at(before[0]))
    kind = test.partition("(")[0].rstrip() if test.type == "KIND" else ""
    if kind not in ("", "node", "text"):
        raise Rejected(f"{kind}() is not supported: patterns consist of elements and attributes", at(test))
    return test, axis, kind


def to_step(test: NodeTest, deep: bool, marks: tuple[Token | ConditionSyntax | PositionSyntax, ...]) -> StepSyntax:
    """The step with its variables and predicates; a position must be the first of these."""
    name, axis, kind = test
    variables = tuple(mark for mark in marks if isinstance(mark, Token))
    predicates = [mark for mark in marks if not isinstance(mark, Token)]
    first, position = predicates[0] if predicates else None, 0
    if isinstance(first, PositionSyntax):
        if axis != "child" or kind:
            reason = "a position counts the children with one name, or all children: it must follow child:: or '//'"
            raise Rejected(reason, at(first.at))
        position, predicates = first.number, predicates[1:]
    conditions = tuple(compared(predicate, "a position is the first predicate of its step") for predicate in predicates)
    return StepSyntax(name, deep, axis, kind, variables, conditions, position)


ALONE = "expected a comparison: a position must be the only condition in the first predicate of a step"


def compared(condition: Any, reason: str = ALONE) -> Any:
    """A condition, which must not be a position."""
    if isinstance(condition, PositionSyntax):
        raise Rejected(reason, at(condition.at))
    return condition


def check_operators(operators: Sequence[Token]) -> None:
    """Checks that a comparison has one operator, and no arithmetic."""
    for op in operators:
        if op.type == "ARITHMETIC":
            raise Rejected(f"arithmetic is not supported: '{op}' cannot be used here", at(op))
    if len(operators) > 1:
        raise Rejected("a comparison has two sides: combine several with 'and'", at(operators[1]))


def to_condition(left: Operand, op: Token | None, right: Operand | None) -> ConditionSyntax | PositionSyntax:
    """The comparison as written. Functions become conditions, positions are recognized, unions are expanded."""
    position = _position(left, op, right)
    if position is not None:
        return position
    if isinstance(left, CallSyntax) and op is None:
        return _on_text(left)
    for side in (left, right):
        if isinstance(side, CallSyntax):
            _refuse(side)
    lefts, rights = (_parts(side) for side in (left, right))
    found = tuple(ComparisonSyntax(one, op, two) for one in lefts for two in rights)
    return found[0] if len(found) == 1 else OrSyntax(found)


def _parts(operand: Operand | None) -> tuple[Any, ...]:
    return operand.parts if isinstance(operand, UnionSyntax) else (operand,)


def _position(left: Operand, op: Token | None, right: Operand | None) -> PositionSyntax | None:
    """`2`, `last()`, `position() = 2`, `2 = position()`, `position() = last()`."""
    if op is None:
        return _place(left)
    sides = [left, right] if _is_call(left, "position") else [right, left]
    if not _is_call(sides[0], "position"):
        return None
    assert isinstance(sides[0], CallSyntax)
    found = _place(sides[1]) if op == "=" else None
    if found is None:
        raise Rejected("position() can only be compared with a number or last(), using '='", at(sides[0].name))
    return found


def _place(operand: Operand | None) -> PositionSyntax | None:
    if isinstance(operand, CallSyntax) and _is_call(operand, "last"):
        return PositionSyntax(operand.name, LAST)
    if not isinstance(operand, Token) or operand.type != "NUMBER":
        return None
    if not operand.isdigit() or int(operand) < 1 or int(operand) >= 1 << 31:
        raise Rejected(f"{operand} is not a position: positions count from 1", at(operand))
    return PositionSyntax(operand, int(operand))


def _is_call(operand: Operand | None, name: str) -> bool:
    return isinstance(operand, CallSyntax) and function_name(operand) == name and not operand.arguments


def function_name(call: CallSyntax) -> str:
    return call.name.rstrip("(").rstrip()


def _on_text(call: CallSyntax) -> ConditionSyntax:
    """`contains(path, 'text')` and `starts-with(path, 'text')`, which hold if they do for any node of the path.

    XPath uses only the first node. Any node is used here for consistency with comparisons.
    """
    name = function_name(call)
    if name not in ON_TEXTS:
        _refuse(call)
    match call.arguments:
        case (RelativeSyntax() | UnionSyntax() as path, Token(type="STRING") as text):
            op = call.name.update(type="CONDITION", value=ON_TEXTS[name])
            found = tuple(ComparisonSyntax(one, op, text) for one in _parts(path))
            return found[0] if len(found) == 1 else OrSyntax(found)
    for argument in call.arguments:
        if isinstance(argument, CallSyntax):
            _refuse(argument)
    raise Rejected(f"{name}() takes a path and a quoted text: {name}(title, 'XML')", at(call.name))


def _refuse(call: CallSyntax) -> None:
    name = function_name(call)
    if name in ("position", "last", *ON_TEXTS):
        raise Rejected(f"{name}() cannot be used here", at(call.name))
    raise Rejected(f"functions other than {FUNCTIONS} are not supported: {name}()", at(call.name))


def at(token: Token) -> int:
    return token.start_pos or 0

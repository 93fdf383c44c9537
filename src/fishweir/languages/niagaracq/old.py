"""`$old.p` in XML-QL: the value of $p before the row changed.

In: a query with $p in an element or attribute of the row. Out: the same query with an `<old>` next to that element, as
in change documents, which binds `$old.p`. `$p < 0.95 * $old.p` compares `<ratio>`, the new value divided by the old
one, with 0.95.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from lark import Token

from fishweir.algebra.nodes import MIRRORED, OLD, RATIO
from fishweir.languages.connectives import AndSyntax, NotSyntax, OrSyntax
from fishweir.languages.lexical import to_operator
from fishweir.languages.niagaracq.syntax import (
    ConditionSyntax,
    ElementSyntax,
    OutputSyntax,
    PatternSyntax,
    PredicateSyntax,
    QuerySyntax,
    ScaledSyntax,
)
from fishweir.languages.statement_text import Rejected

BEFORE = {f"${part}.": part for part in (OLD, RATIO)}


def unscaled(left: Token | ScaledSyntax, op: Token, right: Token | ScaledSyntax) -> PredicateSyntax:
    """The comparison of a ratio, if one side is a product."""
    if isinstance(left, ScaledSyntax):
        if isinstance(right, ScaledSyntax):
            raise Rejected("a comparison of two products: one side must be a $variable", _at(right.factor))
        left, op, right = right, op.update(value=MIRRORED[to_operator(op)]), left
    if not isinstance(right, ScaledSyntax):
        return PredicateSyntax(left, op, right)
    name = right.old.removeprefix("$old.")
    if left != f"${name}":
        raise Rejected(f"'{right.old}' times a number can only be compared with ${name}", _at(left))
    return PredicateSyntax(left.update(value=f"$ratio.{name}"), op, right.factor)


def with_old(query: QuerySyntax) -> QuerySyntax:
    """The query with patterns that bind the old values that it mentions."""
    requested = {str(token): token for token in _mentioned(query) if token.startswith(tuple(BEFORE))}
    items = tuple(
        replace(item, element=_bound(item.element, requested)) if isinstance(item, PatternSyntax) else item
        for item in query.items
    )
    for token in requested.values():
        name = token.partition(".")[2]
        raise Rejected(f"no element of a pattern has ${name} as its content or an attribute", _at(token))
    return replace(query, items=items)


def _bound(element: ElementSyntax, requested: dict[str, Token]) -> ElementSyntax:
    """The element with the requested old values of its children and attributes, which are removed from `requested`."""
    added: list[ElementSyntax] = []
    for prefix, part in BEFORE.items():
        attributes, children = [], []
        for name, value in element.attributes:
            if (token := requested.pop(f"{prefix}{value[1:]}", None)) is not None:
                attributes.append((name, token))
        for child in element.content:
            if not isinstance(child, ElementSyntax):
                continue
            for value in (one for one in child.content if isinstance(one, Token) and one.type == "VARIABLE"):
                if (token := requested.pop(f"{prefix}{value[1:]}", None)) is not None:
                    children.append(ElementSyntax(child.tag, (), (token,)))
        if attributes or children:
            added.append(ElementSyntax(element.tag.update(value=part), tuple(attributes), tuple(children)))
    content = tuple(_bound(one, requested) if isinstance(one, ElementSyntax) else one for one in element.content)
    return replace(element, content=(*content, *added))


def _mentioned(query: QuerySyntax) -> Iterator[Token]:
    for item in query.items:
        if not isinstance(item, PatternSyntax):
            yield from _compared(item)
    for part in query.output:
        yield from _shown(part)


def _compared(condition: ConditionSyntax) -> Iterator[Token]:
    match condition:
        case NotSyntax(_, part):
            yield from _compared(part)
        case AndSyntax(parts) | OrSyntax(parts):
            for part in parts:
                yield from _compared(part)
        case PredicateSyntax(left, _, right):
            yield from (left, right)


def _shown(part: OutputSyntax | Token) -> Iterator[Token]:
    if isinstance(part, Token):
        yield part
        return
    yield from (value for _, value in part.attributes)
    for inner in part.content:
        yield from _shown(inner)


def _at(token: Token) -> int:
    return token.start_pos or 0

"""XQuery over one stream: `for $a in stream('S')/... where ... return ...` (utility-driven shedding, section 2.1).

In: the text of a query. Out: a ParsedQuery. The transformer creates syntax nodes; `binding` turns them into algebra.
"""

from __future__ import annotations

from typing import Any

from lark import Token, v_args

from fishweir.algebra.nodes import MIRRORED, Step
from fishweir.languages.grammar import Grammar
from fishweir.languages.lexical import to_operator
from fishweir.languages.parsed import ParsedQuery
from fishweir.languages.schedule import Clauses, ScheduleTransformer
from fishweir.languages.statement_text import Rejected, StatementText
from fishweir.languages.xquery.binding import bind
from fishweir.languages.xquery.syntax import (
    BindingSyntax,
    ElementSyntax,
    FwrSyntax,
    ItemSyntax,
    PathSyntax,
    PredicateSyntax,
    QuerySyntax,
    StepSyntax,
)


@v_args(inline=True)
class XQueryTransformer(ScheduleTransformer):
    """Converts trees of xquery.lark to syntax nodes."""

    def start(self, fwr: FwrSyntax, clauses: Clauses) -> QuerySyntax:
        return QuerySyntax(fwr, clauses)

    def fwr(self, *parts: Any) -> FwrSyntax:
        bindings = tuple(part for part in parts if isinstance(part, BindingSyntax))
        *others, items = (part for part in parts if isinstance(part, tuple))
        return FwrSyntax(bindings, others[0] if others else (), items)

    def binding(self, variable: Token, _in: Token, path: PathSyntax) -> BindingSyntax:
        return BindingSyntax(variable, path)

    def stream(self, _word: Token, name: Token, *steps: StepSyntax) -> PathSyntax:
        return PathSyntax(name, steps, stream=True)

    def path(self, variable: Token, *steps: StepSyntax) -> PathSyntax:
        return PathSyntax(variable, steps)

    def step(self, axis: Token, test: tuple[int, Step | None], *filters: tuple[PredicateSyntax, ...]) -> StepSyntax:
        return _stepped(axis == "//", test, tuple(one for some in filters for one in some))

    def test(self, *parts: Token) -> tuple[int, Step | None]:
        if parts[0].type == "TEXT_TEST":
            return _at(parts[0]), None
        name = str(parts[-1]).rpartition(":")[2]
        return _at(parts[0]), Step(name, "attribute" if parts[0].type == "AT" else "child")

    def filter(self, *parts: Any) -> tuple[PredicateSyntax, ...]:
        return tuple(part for part in parts if isinstance(part, PredicateSyntax))

    def relative(self, first: tuple[int, Step | None], *steps: StepSyntax) -> PathSyntax:
        return PathSyntax(None, (_stepped(False, first, ()), *steps))

    def inside(self, first: Any, *rest: Any) -> PredicateSyntax:
        if isinstance(first, Token):
            return self.mirrored(first, *rest)
        return self.compared(first, *rest)

    def where(self, *parts: Any) -> tuple[PredicateSyntax, ...]:
        return self.filter(*parts)

    def alone(self, predicate: PredicateSyntax) -> PredicateSyntax:
        return predicate

    def compared(self, path: PathSyntax, *rest: Token) -> PredicateSyntax:
        if not rest:
            return PredicateSyntax(path)
        op, constant = rest
        return PredicateSyntax(path, to_operator(op) if op.type == "OP" else op.lower(), constant)

    def mirrored(self, constant: Token, op: Token, path: PathSyntax) -> PredicateSyntax:
        return PredicateSyntax(path, MIRRORED[to_operator(op)], constant)

    def items(self, *items: Any) -> tuple[ItemSyntax, ...]:
        return tuple(one for item in items for one in (item if isinstance(item, tuple) else (item,)))

    def group(self, items: tuple[ItemSyntax, ...] = ()) -> tuple[ItemSyntax, ...]:
        return items

    def element(self, tag: Token, attributes: Any, content: Any = (), closing: Token | None = None) -> ElementSyntax:
        if closing is not None and closing != tag:
            raise Rejected(f"expected '</{tag}>' to close '<{tag}>', found '</{closing}>'", _at(closing), syntax=True)
        return ElementSyntax(tag, attributes, content)

    def attributes(self, *attributes: tuple[Token, Token | PathSyntax]) -> Any:
        return attributes

    def attribute(self, name: Token, value: Token | PathSyntax) -> tuple[Token, Token | PathSyntax]:
        return name, value

    def content(self, *parts: Any) -> tuple[ItemSyntax, ...]:
        return self.items(*parts)

    def enclosed(self, items: tuple[ItemSyntax, ...]) -> tuple[ItemSyntax, ...]:
        return items


def _stepped(deep: bool, test: tuple[int, Step | None], filters: tuple[PredicateSyntax, ...]) -> StepSyntax:
    at, step = test
    if step is not None and deep:
        step = Step(step.name, "descendant-attribute" if step.is_attribute else "descendant")
    return StepSyntax(at, step, filters)


def _at(token: Token) -> int:
    return token.start_pos or 0


GRAMMAR = Grammar("xquery/xquery.lark", XQueryTransformer())


def parse_query(piece: StatementText) -> ParsedQuery:
    """A query from `for` to its clauses. Raises Rejected with the position if it does not parse or bind."""
    return bind(GRAMMAR.parse(piece))

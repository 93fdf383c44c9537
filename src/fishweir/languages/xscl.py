"""XSCL: selections by XPath query blocks (MMQJP section 2).

In comes the text of a query from `select`, `from` or the stream's name on, out comes a ParsedQuery.
The transformer makes syntax nodes that still know their tokens; `xscl_binding` makes algebra of them.
"""

from __future__ import annotations

from typing import Any

from lark import Token, v_args

from fishweir.languages.grammar import Grammar
from fishweir.languages.parsed import ParsedQuery
from fishweir.languages.pieces import Piece, Rejected
from fishweir.languages.schedule import ScheduleTransformer
from fishweir.languages.xscl_binding import bind
from fishweir.languages.xscl_syntax import (
    BlockSyntax,
    ComparisonSyntax,
    ElementSyntax,
    QuerySyntax,
    RelativeSyntax,
    StepSyntax,
)

Conjunction = tuple[ComparisonSyntax, ...]
Selected = tuple[ElementSyntax | Token, ...]


@v_args(inline=True)
class XsclTransformer(ScheduleTransformer):
    """Trees of xscl.lark to syntax nodes."""

    def start(self, *parts: Any) -> QuerySyntax:
        block = next(part for part in parts if isinstance(part, BlockSyntax))
        select = next((part for part in parts if isinstance(part, tuple)), None)
        name = next((part for part in parts if isinstance(part, Token)), None)
        return QuerySyntax(select, block, name, parts[-1])

    def select(self, _select: Token, *items: ElementSyntax | Token) -> Selected | None:
        return None if isinstance(items[0], Token) and items[0].type == "STAR" else items

    def publish(self, _publish: Token, name: Token) -> Token:
        return name

    def join(self, word: Token, _condition: Token, _block: BlockSyntax) -> None:
        raise Rejected("joins between documents are not supported yet", _at(word))

    def block(self, source: Token, *steps: StepSyntax) -> BlockSyntax:
        return BlockSyntax(source, steps)

    def step(self, slash: Token, test: tuple[bool, Token], *marks: Token | Conjunction) -> StepSyntax:
        return _step(slash.type == "DEEP", test, marks)

    def first(self, test: tuple[bool, Token], *marks: Token | Conjunction) -> StepSyntax:
        return _step(False, test, marks)

    def test(self, *tokens: Token) -> tuple[bool, Token]:
        return len(tokens) > 1, tokens[-1]

    def binding(self, name: Token) -> Token:
        return name

    def predicate(self, conditions: Conjunction) -> Conjunction:
        return conditions

    def either(self, *parts: Conjunction | Token) -> Conjunction:
        if len(parts) > 1:
            assert isinstance(parts[1], Token)
            raise Rejected("'or' is not supported in a predicate: register a query for each part", _at(parts[1]))
        assert not isinstance(parts[0], Token)
        return parts[0]

    def both(self, *parts: ComparisonSyntax | Conjunction | Token) -> Conjunction:
        found: list[ComparisonSyntax] = []
        for part in parts:
            if not isinstance(part, Token):
                found += (part,) if isinstance(part, ComparisonSyntax) else part
        return tuple(found)

    def negation(self, word: Token, _inner: Conjunction) -> None:
        raise Rejected("'not(...)' is not supported: all of a tree pattern must be there", _at(word))

    def comparison(self, left: Any, op: Token | None = None, right: Any = None) -> ComparisonSyntax:
        return ComparisonSyntax(left, op, right)

    def relative(self, first: Token | StepSyntax, *steps: StepSyntax) -> RelativeSyntax:
        if isinstance(first, StepSyntax):
            return RelativeSyntax(first.name, (first, *steps))
        if first.type == "PARENT":
            raise Rejected("the parent axis '..' is not supported: put the condition on the parent", _at(first))
        return RelativeSyntax(first, steps)

    def element(
        self, tag: Token, attributes: tuple[tuple[Token, Token], ...], content: Selected = (), closing: Any = None
    ) -> ElementSyntax:
        if closing is not None and closing != tag:
            reason = f"expected '</>' or '</{tag}>' to close '<{tag}>', found '</{closing}>'"
            raise Rejected(reason, _at(closing), syntax=True)
        return ElementSyntax(tag, attributes, content)

    def closing(self, tag: Token | None = None) -> Token | None:
        return tag

    def attributes(self, *attributes: tuple[Token, Token]) -> tuple[tuple[Token, Token], ...]:
        return attributes

    def attribute(self, name: Token, value: Token) -> tuple[Token, Token]:
        return name, value

    def content(self, *content: ElementSyntax | Token) -> Selected:
        return content


def _step(deep: bool, test: tuple[bool, Token], marks: tuple[Token | Conjunction, ...]) -> StepSyntax:
    attribute, name = test
    variables = tuple(mark for mark in marks if isinstance(mark, Token))
    conditions = tuple(one for mark in marks if not isinstance(mark, Token) for one in mark)
    return StepSyntax(name, deep, attribute, variables, conditions)


def _at(token: Token) -> int:
    return token.start_pos or 0


GRAMMAR = Grammar("xscl.lark", XsclTransformer())


def parse_query(piece: Piece) -> ParsedQuery:
    """A query from its select clause to its schedule; Rejected with the place where it does not parse or bind."""
    return bind(GRAMMAR.parse(piece))

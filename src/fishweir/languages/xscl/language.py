"""XSCL: selections by XPath query blocks, and joins of them (MMQJP section 2).

In comes the text of a query from `select`, `from` or the stream's name on, out comes a ParsedQuery.
The transformer makes syntax nodes that still know their tokens; `xscl_binding` and `xscl_joins`
make algebra of them.
"""

from __future__ import annotations

from typing import Any

from lark import Token, v_args

from fishweir.languages.grammar import Grammar
from fishweir.languages.parsed import ConstantPlace, LiteralKind, ParsedQuery
from fishweir.languages.pieces import Piece, Rejected
from fishweir.languages.schedule import ScheduleTransformer, plain
from fishweir.languages.times import UNITS, BadTime, parse_window
from fishweir.languages.xscl.binding import bind_selection
from fishweir.languages.xscl.joins import bind_joins
from fishweir.languages.xscl.syntax import (
    BlockSyntax,
    ComparisonSyntax,
    ElementSyntax,
    JoinSyntax,
    QuerySyntax,
    RelativeSyntax,
    StepSyntax,
    WindowSyntax,
)

Conjunction = tuple[ComparisonSyntax, ...]
Selected = tuple[ElementSyntax | Token, ...]


@v_args(inline=True)
class XsclTransformer(ScheduleTransformer):
    """Trees of xscl.lark to syntax nodes."""

    def start(self, *parts: Any) -> QuerySyntax:
        block = next(part for part in parts if isinstance(part, BlockSyntax))
        joins = tuple(part for part in parts if isinstance(part, JoinSyntax))
        select = next((part for part in parts if isinstance(part, tuple)), None)
        return QuerySyntax(select, block, joins, parts[-1])

    def select(self, _select: Token, *items: ElementSyntax | Token) -> Selected | None:
        return None if isinstance(items[0], Token) and items[0].type == "STAR" else items

    def join(self, word: Token, *parts: Any) -> JoinSyntax:
        *inner, brace, block = parts
        conditions = next((part for part in inner if isinstance(part, tuple)), ())
        window = next((part for part in inner if isinstance(part, WindowSyntax)), None)
        if window is None:
            reason = "expected ',' and how long documents wait for each other, such as ', 10 minutes' or ', INF'"
            raise Rejected(reason, _at(brace), syntax=True)
        return JoinSyntax(word, conditions, window, block)

    def window(self, amount: Token, unit: Token | None = None) -> WindowSyntax:
        bare = amount.type == "SPAN"
        try:
            seconds = parse_window(f"{amount} {unit or ''}".strip() if bare else plain(amount))
        except BadTime as error:
            known = unit is None or unit.lower() in UNITS
            raise Rejected(str(error), _at(amount if known or unit is None else unit)) from None
        kind: LiteralKind = "keyword" if amount.type == "INF" else "interval"
        factor = UNITS[unit.lower()] if unit is not None else 1.0
        return WindowSyntax(seconds, ConstantPlace(_at(amount), _at(amount) + len(amount), kind, factor))

    def operand(self, variable: Token, *parts: Any) -> RelativeSyntax:
        steps = tuple(part for part in parts if isinstance(part, StepSyntax))
        return RelativeSyntax(variable, steps, tuple(one for part in parts if isinstance(part, tuple) for one in part))

    def block(self, source: Token, *parts: Token | StepSyntax) -> BlockSyntax:
        steps = tuple(part for part in parts if isinstance(part, StepSyntax))
        variables = tuple(part for part in parts if isinstance(part, Token))
        if variables and steps:
            raise Rejected("a variable of the whole document cannot have steps behind it", _at(variables[0]))
        return BlockSyntax(source, steps, variables)

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

    def enclosed(self, variable: Token, _brace: Token) -> Token:
        return variable

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


GRAMMAR = Grammar("xscl/xscl.lark", XsclTransformer())


def parse_query(piece: Piece) -> ParsedQuery:
    """A query from its select clause to its schedule; Rejected with the place where it does not parse or bind."""
    query: QuerySyntax = GRAMMAR.parse(piece)
    return bind_joins(query, piece.text) if query.joins else bind_selection(query)

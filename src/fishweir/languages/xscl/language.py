"""XSCL: selections by XPath query blocks, and joins of them (MMQJP section 2).

In: the text of a query, starting at `select`, `from` or the stream's name. Out: a ParsedQuery. The transformer creates
syntax nodes that keep their tokens; `binding` and `joins` turn them into algebra.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lark import Token, v_args

from fishweir.languages.connectives import CONNECTIVES, AndSyntax, NotSyntax, OrSyntax, combined
from fishweir.languages.grammar import Grammar
from fishweir.languages.lexical import plain, unquote
from fishweir.languages.parsed import ConstantPlace, LiteralKind, ParsedQuery
from fishweir.languages.schedule import ScheduleTransformer
from fishweir.languages.statement_text import Rejected, StatementText
from fishweir.languages.times import UNITS, BadTime, parse_window
from fishweir.languages.xscl.binding import bind_selection
from fishweir.languages.xscl.plain import scan_query
from fishweir.languages.xscl.syntax import (
    BlockSyntax,
    CallSyntax,
    ChainSyntax,
    ComparisonSyntax,
    ConditionSyntax,
    ElementSyntax,
    JoinSyntax,
    Namespaces,
    PositionSyntax,
    QuerySyntax,
    RelativeSyntax,
    StepSyntax,
    UnionSyntax,
    WindowSyntax,
    is_self_step,
    optional_variables,
)
from fishweir.languages.xscl.trees import bind_joins
from fishweir.languages.xscl.xpath import (
    NodeTest,
    check_operators,
    compared,
    to_condition,
    to_optional,
    to_step,
    to_test,
    with_namespaces,
)

CONDITIONS = (ComparisonSyntax, PositionSyntax, *CONNECTIVES)
Selected = tuple[ElementSyntax | Token, ...]
NO_COMPARISON = "expected a comparison of variables, such as x = y"


@v_args(inline=True)
class XsclTransformer(ScheduleTransformer):
    """Converts trees of xscl.lark to syntax nodes."""

    def start(self, *parts: Any) -> QuerySyntax:
        declared = next((part for part in parts if isinstance(part, Namespaces)), Namespaces({}))
        first = next(part for part in parts if isinstance(part, BlockSyntax | ChainSyntax))
        chain = _chain(first, [part for part in parts if isinstance(part, JoinSyntax)], 0)
        select = next((part for part in parts if isinstance(part, tuple)), None)
        return QuerySyntax(select, chain.block, chain.joins, parts[-1], declared)

    def namespaces(self, *declared: tuple[Token, Token]) -> Namespaces:
        return Namespaces({str(prefix): unquote(uri) for prefix, uri in declared})

    def declared(self, prefix: Token, uri: Token) -> tuple[Token, Token]:
        return prefix, uri

    def select(self, _select: Token, *items: ElementSyntax | Token) -> Selected | None:
        return None if isinstance(items[0], Token) and items[0].type == "STAR" else items

    def group(self, _open: Token, first: BlockSyntax | ChainSyntax, *rest: Any) -> BlockSyntax | ChainSyntax:
        *joins, close = rest
        chain = _chain(first, joins, _at(close))
        return chain if chain.joins else chain.block

    def join(self, word: Token, *parts: Any) -> JoinSyntax:
        *inner, brace, block = parts
        conditions = tuple(compared(part, NO_COMPARISON) for part in inner if isinstance(part, CONDITIONS))
        window = next((part for part in inner if isinstance(part, WindowSyntax)), None)
        if window is None:
            reason = "expected ',' and how long documents wait for each other, such as ', 10 minutes' or ', INF'"
            raise Rejected(reason, _at(brace), syntax=True)
        return JoinSyntax(word, conditions, window, block)

    def window(self, amount: Token, unit: Token | None = None) -> WindowSyntax:
        bare = amount.type in ("SPAN", "LONE")
        try:
            seconds = parse_window(f"{amount} {unit or ''}".strip() if bare else plain(amount))
        except BadTime as error:
            is_unit = unit is None or unit.lower() in UNITS
            raise Rejected(str(error), _at(amount if is_unit or unit is None else unit)) from None
        kind: LiteralKind = "keyword" if amount.type in ("INF", "LONE_INF") else "interval"
        factor = UNITS[unit.lower()] if unit is not None else 1.0
        return WindowSyntax(seconds, ConstantPlace(_at(amount), _at(amount) + len(amount), kind, factor))

    def operand(self, variable: Token, *parts: Any) -> RelativeSyntax:
        steps = tuple(part for part in parts if isinstance(part, StepSyntax))
        conditions = tuple(compared(part) for part in parts if isinstance(part, CONDITIONS))
        return RelativeSyntax(variable, steps, conditions)

    def union(self, first: BlockSyntax, *others: BlockSyntax) -> BlockSyntax:
        for other in others:
            if other.source != first.source:
                raise Rejected("the parts of a union read one stream: register a query for each", _at(other.source))
        return replace(first, others=others)

    def block(self, source: Token, *parts: Token | StepSyntax) -> BlockSyntax:
        steps = tuple(part for part in parts if isinstance(part, StepSyntax))
        variables = tuple(part for part in parts if isinstance(part, Token))
        if variables and steps:
            raise Rejected("a variable of the whole document cannot be followed by steps", _at(variables[0]))
        return BlockSyntax(source, steps, variables)

    def step(self, slash: Token, test: NodeTest, *marks: Token | ConditionSyntax) -> StepSyntax:
        return to_step(test, slash.type == "DEEP", marks)

    def first(self, test: NodeTest, *marks: Token | ConditionSyntax) -> StepSyntax:
        return to_step(test, False, marks)

    def test(self, *tokens: Token) -> NodeTest:
        return to_test(tokens)

    def binding(self, name: Token) -> Token:
        return name

    def predicate(self, condition: ConditionSyntax, optional: Token | None = None) -> ConditionSyntax:
        return condition if optional is None else to_optional(condition, optional)

    def either(self, *parts: ConditionSyntax | Token) -> ConditionSyntax:
        return combined(OrSyntax, [compared(part) for part in parts] if len(parts) > 1 else parts)

    def both(self, *parts: ConditionSyntax | Token) -> ConditionSyntax:
        return combined(AndSyntax, [compared(part) for part in parts] if len(parts) > 1 else parts)

    def negation(self, word: Token, inner: ConditionSyntax) -> ConditionSyntax:
        return NotSyntax(word, compared(inner))

    def comparison(
        self, left: Any, op: Token | None = None, right: Any = None, *more: Any
    ) -> ConditionSyntax | PositionSyntax:
        check_operators((op, *more[::2]) if op is not None else ())
        return to_condition(left, op, right)

    def paths(self, *parts: RelativeSyntax) -> UnionSyntax:
        return UnionSyntax(parts)

    def relative(self, first: StepSyntax, *steps: StepSyntax) -> RelativeSyntax:
        return RelativeSyntax(first.name, steps if is_self_step(first) else (first, *steps))

    def call(self, name: Token, *arguments: Any) -> CallSyntax:
        return CallSyntax(name, arguments)

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


def _chain(first: BlockSyntax | ChainSyntax, joins: Sequence[JoinSyntax], end: int) -> ChainSyntax:
    """Consecutive joins, up to `end`. Parentheses around the first of them make no difference."""
    ends = [*(_at(join.word) for join in joins[1:]), end]
    own = tuple(replace(join, end=end) for join, end in zip(joins, ends if joins else (), strict=True))
    if isinstance(first, ChainSyntax):
        return ChainSyntax(first.block, first.joins + own)
    return ChainSyntax(first, own)


def _at(token: Token) -> int:
    return token.start_pos or 0


GRAMMAR = Grammar("xscl/xscl.lark", XsclTransformer())


def parse_query(piece: StatementText) -> ParsedQuery:
    """A query from its select clause to its schedule. Raises Rejected with the position of an error."""
    return scan_query(piece) or parse_by_grammar(piece)


def parse_by_grammar(piece: StatementText) -> ParsedQuery:
    query: QuerySyntax = GRAMMAR.parse(piece)
    if ":" in piece.text:
        query = with_namespaces(query, query.namespaces)
    if "?" in piece.text:
        query = replace(query, optional=optional_variables(query))
    return bind_joins(query, piece.text) if query.joins else bind_selection(query)

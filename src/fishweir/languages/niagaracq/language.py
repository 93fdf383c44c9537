"""NiagaraCQ's command language: XML-QL with an action and times (the paper's section 2).

In: the text of a query from `where` on. Out: a ParsedQuery. The transformer creates syntax nodes that keep their
tokens; `binding` turns them into algebra.
"""

from __future__ import annotations

from dataclasses import replace

from lark import Token, v_args

from fishweir.languages.connectives import AndSyntax, NotSyntax, OrSyntax, combined
from fishweir.languages.grammar import Grammar
from fishweir.languages.niagaracq.binding import bind
from fishweir.languages.niagaracq.old import unscaled, with_old
from fishweir.languages.niagaracq.syntax import (
    Attributes,
    ConditionSyntax,
    ElementSyntax,
    OutputSyntax,
    PatternSyntax,
    PredicateSyntax,
    QuerySyntax,
    ScaledSyntax,
    local_tag,
)
from fishweir.languages.parsed import ParsedQuery
from fishweir.languages.schedule import Clauses, ScheduleTransformer
from fishweir.languages.statement_text import Rejected, StatementText


@v_args(inline=True)
class NiagaraTransformer(ScheduleTransformer):
    """Converts trees of niagaracq.lark to syntax nodes."""

    def start(
        self,
        _where: Token,
        items: tuple[PatternSyntax | ConditionSyntax, ...],
        _construct: Token,
        parts: tuple[OutputSyntax | Token, ...],
        clauses: Clauses,
    ) -> QuerySyntax:
        return QuerySyntax(items, parts, clauses)

    def items(self, *items: PatternSyntax | ConditionSyntax) -> tuple[PatternSyntax | ConditionSyntax, ...]:
        return items

    def pattern(self, element: ElementSyntax, _in: Token, source: tuple[Token, ...]) -> PatternSyntax:
        return PatternSyntax(element, source)

    def bound(self, element: ElementSyntax, *bindings: Token) -> ElementSyntax:
        return replace(element, bindings=bindings[1::2])

    def element(
        self,
        tag: Token,
        attributes: Attributes,
        content: tuple[ElementSyntax | Token, ...] = (),
        closing: Token | None = None,
    ) -> ElementSyntax:
        _check_closing(tag, closing)
        return ElementSyntax(tag, attributes, content)

    def attributes(self, *attributes: tuple[Token, Token]) -> Attributes:
        return attributes

    def attribute(self, name: Token, value: Token) -> tuple[Token, Token]:
        return name, value

    def content(self, *content: ElementSyntax | Token) -> tuple[ElementSyntax | Token, ...]:
        return content

    def source(self, *words: Token) -> tuple[Token, ...]:
        return words

    def either(self, *parts: ConditionSyntax | Token) -> ConditionSyntax:
        return combined(OrSyntax, parts)

    def both(self, *parts: ConditionSyntax | Token) -> ConditionSyntax:
        return combined(AndSyntax, parts)

    def negation(self, word: Token, inner: ConditionSyntax) -> ConditionSyntax:
        return NotSyntax(word, inner)

    def predicate(self, left: Token | ScaledSyntax, op: Token, right: Token | ScaledSyntax) -> PredicateSyntax:
        return unscaled(left, op, right)

    def OLD(self, token: Token) -> Token:
        return token.update(type="VARIABLE")

    def scaled(self, *factors: Token) -> ScaledSyntax:
        number, old = sorted(factors, key=lambda factor: factor.type)
        return ScaledSyntax(number, old)

    def parts(self, *parts: OutputSyntax | Token) -> tuple[OutputSyntax | Token, ...]:
        return parts

    def out_element(
        self,
        tag: Token,
        attributes: Attributes,
        content: tuple[OutputSyntax | Token, ...] = (),
        closing: Token | None = None,
    ) -> OutputSyntax:
        _check_closing(tag, closing)
        return OutputSyntax(tag, attributes, content)

    def out_content(self, *content: OutputSyntax | Token) -> tuple[OutputSyntax | Token, ...]:
        return content


def _check_closing(tag: Token, closing: Token | None) -> None:
    if closing is not None and local_tag(closing) != local_tag(tag):
        reason = f"expected '</>' or '</{tag}>' to close '<{tag}>', found '</{closing}>'"
        raise Rejected(reason, closing.start_pos or 0, syntax=True)


GRAMMAR = Grammar("niagaracq/niagaracq.lark", NiagaraTransformer())


def parse_query(piece: StatementText) -> ParsedQuery:
    """A query from `where` to its schedule. Raises Rejected with the position if it does not parse or bind."""
    query: QuerySyntax = GRAMMAR.parse(piece)
    return bind(with_old(query) if "$old." in piece.text else query)

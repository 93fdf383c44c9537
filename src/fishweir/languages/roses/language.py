"""RoSeS' language: publication, registration and subscription of feeds (the paper's section 3.1).

In: a statement. Out: a statement of the algebra; a publication (`from ... join ... where ...`) can also be a query by
itself. The transformer creates syntax nodes that keep their tokens; `binding` turns them into algebra.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from lark import Token, v_args

from fishweir.algebra.feeds import DropFeed, FeedQuery, RegisterFeed, Subscribe, Unsubscribe
from fishweir.languages.grammar import Grammar
from fishweir.languages.roses.binding import bind, named
from fishweir.languages.roses.literals import Parsed
from fishweir.languages.roses.syntax import (
    AtomSyntax,
    BooleanSyntax,
    ConditionSyntax,
    CreateSyntax,
    DropSyntax,
    FeedSyntax,
    JoinSyntax,
    OperandSyntax,
    PairSyntax,
    PublicationSyntax,
    RegisterSyntax,
    StatementSyntax,
    SubscribeSyntax,
    UnionSyntax,
    UnsubscribeSyntax,
    WhereSyntax,
    WindowSyntax,
    start_of,
)
from fishweir.languages.schedule import Clauses, ScheduleTransformer
from fishweir.languages.statement_text import Rejected, StatementText
from fishweir.languages.streams.language import bad_place

FeedStatement = RegisterFeed | Subscribe | Unsubscribe | DropFeed


@v_args(inline=True)
class RosesTransformer(ScheduleTransformer):
    """Converts trees of roses.lark to syntax nodes."""

    def start(self, statement: StatementSyntax) -> StatementSyntax:
        return statement

    def create(self, _create: Token, *rest: Any) -> CreateSyntax:
        replaces = rest[0].type == "OR"
        name, publication, *clauses = rest[3 if replaces else 1 :]
        return CreateSyntax(name, publication, self.clauses(*clauses), replaces)

    def query(self, publication: PublicationSyntax, clauses: Clauses) -> CreateSyntax:
        return CreateSyntax(None, publication, clauses)

    def register(self, _register: Token, _feed: Token, place: Token, *rest: Token) -> RegisterSyntax:
        return RegisterSyntax(place, _after(rest, "APPLY"), rest[-1])

    def subscribe(self, _subscribe: Token, _to: Token, feed: Token, *rest: Any) -> SubscribeSyntax:
        *before, action, clauses = rest
        return SubscribeSyntax(feed, _after(tuple(before), "APPLY"), action, clauses)

    def unsubscribe(self, _unsubscribe: Token, _from: Token, feed: Token, *rest: Any) -> UnsubscribeSyntax:
        return UnsubscribeSyntax(feed, *rest[1:])

    def drop(self, _drop: Token, _feed: Token, name: Token) -> DropSyntax:
        return DropSyntax(name)

    def publication(self, _from: Token, main: UnionSyntax, *rest: Any) -> PublicationSyntax:
        joins = tuple(part for part in rest if isinstance(part, JoinSyntax))
        where = next((part for part in rest if isinstance(part, tuple)), ())
        return PublicationSyntax(main, joins, where)

    def union(self, *members: FeedSyntax) -> UnionSyntax:
        return UnionSyntax(members)

    def feed(self, content: Token | UnionSyntax, *rest: Token) -> FeedSyntax:
        return FeedSyntax(content, _after(rest, "AS"))

    def join(self, *parts: Any) -> JoinSyntax:
        _join, _last, window, _on, secondary, keyword, *rest = parts
        variable = rest[0] if len(rest) > 1 else None
        return JoinSyntax(window, secondary, keyword, variable, rest[-1])

    def window(self, *words: Token) -> WindowSyntax:
        return WindowSyntax(_typed(words, "AMOUNT"), _typed(words, "UNIT"))

    def pair(self, left: OperandSyntax, op: Token, *rest: Token) -> PairSyntax:
        return PairSyntax(left, op, rest[-1], _typed(rest, "NUMBER"))

    def where(self, _where: Token, *parts: WhereSyntax | Token) -> tuple[WhereSyntax, ...]:
        return tuple(part for part in parts if isinstance(part, WhereSyntax))

    def condition(self, *parts: Any) -> WhereSyntax:
        return WhereSyntax(parts[0] if len(parts) > 1 else None, parts[-1])

    def either(self, *parts: ConditionSyntax | Token) -> BooleanSyntax:
        return BooleanSyntax("or", tuple(part for part in parts if not isinstance(part, Token)))

    def both(self, *parts: ConditionSyntax | Token) -> BooleanSyntax:
        return BooleanSyntax("and", tuple(part for part in parts if not isinstance(part, Token)))

    def negation(self, _not: Token, part: ConditionSyntax) -> BooleanSyntax:
        return BooleanSyntax("not", (part,))

    def operand(self, *words: Token) -> OperandSyntax:
        return OperandSyntax(words[-1], words[0] if len(words) > 1 else None)

    def comparison(self, operand: OperandSyntax, op: Token, constant: Token) -> AtomSyntax:
        return AtomSyntax(operand, op, (constant,))

    def text(self, *parts: OperandSyntax | Token) -> AtomSyntax:
        operand = parts[0] if isinstance(parts[0], OperandSyntax) else None
        op, *rest = [part for part in parts if isinstance(part, Token)]
        return AtomSyntax(operand, op, tuple(t for t in rest if t.type == "STRING"), _typed(tuple(rest), "NUMBER"))

    def existence(self, keyword: Token, attribute: Token) -> AtomSyntax:
        return AtomSyntax(OperandSyntax(attribute), keyword)


def _typed(words: tuple[Token, ...], kind: str) -> Token | None:
    return next((word for word in words if word.type == kind), None)


def _after(words: tuple[Any, ...], keyword: str) -> Token | None:
    """The word after a keyword, if the keyword occurs."""
    return next((b for a, b in pairwise(words) if a.type == keyword), None)


GRAMMAR = Grammar("roses/roses.lark", RosesTransformer())


def parse_query(piece: StatementText) -> Parsed[FeedQuery]:
    """A publication without a name and the clauses after it. Raises Rejected with the position of an error."""
    syntax: StatementSyntax = GRAMMAR.parse(piece)
    if not isinstance(syntax, CreateSyntax) or syntax.name is not None:
        raise Rejected("expected a query that begins with 'from'", 0, syntax=True)
    return bind(syntax.publication, syntax.clauses)


def parse_feed(piece: StatementText) -> tuple[str, Parsed[FeedQuery]]:
    """The name and query of a `create feed` statement."""
    syntax: StatementSyntax = GRAMMAR.parse(piece)
    if not isinstance(syntax, CreateSyntax) or syntax.name is None:
        raise Rejected("expected 'create feed NAME from ...'", 0, syntax=True)
    return named(syntax.name, "the feed"), bind(syntax.publication, syntax.clauses)


def parse_statement(piece: StatementText, line: int = 1, now: float = 0.0) -> FeedStatement:
    """A RoSeS statement other than a query or feed. Raises Rejected with the position if it does not parse or bind."""
    syntax: StatementSyntax = GRAMMAR.parse(piece)
    match syntax:
        case RegisterSyntax():
            return _register(syntax, piece.text, line)
        case SubscribeSyntax(feed, stylesheet, action, clauses):
            applied = None if stylesheet is None else named(stylesheet, "the stylesheet")
            return Subscribe(named(feed, "the feed"), action, applied, clauses.schedule(now), piece.text, line)
        case UnsubscribeSyntax(feed, action):
            return Unsubscribe(named(feed, "the feed"), action, piece.text, line)
        case DropSyntax(name):
            return DropFeed(named(name, "the feed"), piece.text, line)
    raise AssertionError(syntax)


def _register(syntax: RegisterSyntax, text: str, line: int) -> RegisterFeed:
    """A source by its URL, or a feed that a query publishes, with or without a stylesheet."""
    name, place = named(syntax.name, "the feed"), named(syntax.place, "the feed's source")
    if syntax.stylesheet is None and syntax.place.type != "NAME":
        reason = bad_place(place)
        if reason:
            raise Rejected(reason, start_of(syntax.place))
        return RegisterFeed(name, url=place, text=text, line=line)
    if ":" in place or "/" in place:
        raise Rejected("'apply' needs a feed that a query publishes, not a URL", start_of(syntax.place))
    stylesheet = None if syntax.stylesheet is None else named(syntax.stylesheet, "the stylesheet")
    if place == name:
        raise Rejected(f"the feed '{name}' would read itself", start_of(syntax.name))
    return RegisterFeed(name, virtual=place, stylesheet=stylesheet, text=text, line=line)

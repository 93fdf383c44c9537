"""Syntax nodes of RoSeS: created by the transformer and read by the binder; they keep their tokens."""

from __future__ import annotations

from lark import Token

from fishweir.algebra.nodes import Action
from fishweir.languages.schedule import Clauses
from fishweir.records import dataclass


@dataclass(frozen=True, slots=True)
class FeedSyntax:
    """A feed's name, or a union of feeds, and its variable."""

    content: Token | UnionSyntax
    variable: Token | None = None


@dataclass(frozen=True, slots=True)
class UnionSyntax:
    members: tuple[FeedSyntax, ...]


@dataclass(frozen=True, slots=True)
class OperandSyntax:
    """An attribute, with the part of its date as in `year(pubdate)`."""

    attribute: Token
    part: Token | None = None


@dataclass(frozen=True, slots=True)
class AtomSyntax:
    """`operand op constants`; without an operand, it applies to the whole item; without constants, to existence."""

    operand: OperandSyntax | None
    op: Token
    constants: tuple[Token, ...] = ()
    threshold: Token | None = None


@dataclass(frozen=True, slots=True)
class PairSyntax:
    """`title = window.title`, in the condition of a join."""

    left: OperandSyntax
    op: Token
    right: Token
    threshold: Token | None = None


@dataclass(frozen=True, slots=True)
class BooleanSyntax:
    """`and`, `or` or `not` over conditions."""

    connective: str
    parts: tuple[ConditionSyntax, ...]


LeafSyntax = AtomSyntax | PairSyntax
ConditionSyntax = LeafSyntax | BooleanSyntax


@dataclass(frozen=True, slots=True)
class WhereSyntax:
    """`$x[...]`, or `[...]` for the whole from clause."""

    variable: Token | None
    condition: ConditionSyntax


@dataclass(frozen=True, slots=True)
class WindowSyntax:
    amount: Token | None
    unit: Token | None

    @property
    def first(self) -> Token:
        found = self.amount or self.unit
        assert found is not None, "the grammar requires one of them"
        return found


@dataclass(frozen=True, slots=True)
class JoinSyntax:
    """`keyword` is the word `with`."""

    window: WindowSyntax
    secondary: UnionSyntax
    keyword: Token
    variable: Token | None
    condition: ConditionSyntax


@dataclass(frozen=True, slots=True)
class PublicationSyntax:
    main: UnionSyntax
    joins: tuple[JoinSyntax, ...]
    where: tuple[WhereSyntax, ...]


# Statements; a publication without a name is a query.


@dataclass(frozen=True, slots=True)
class CreateSyntax:
    name: Token | None
    publication: PublicationSyntax
    clauses: Clauses
    replace: bool = False


@dataclass(frozen=True, slots=True)
class RegisterSyntax:
    place: Token
    stylesheet: Token | None
    name: Token


@dataclass(frozen=True, slots=True)
class SubscribeSyntax:
    feed: Token
    stylesheet: Token | None
    action: Action
    clauses: Clauses


@dataclass(frozen=True, slots=True)
class UnsubscribeSyntax:
    feed: Token
    action: Action | None = None


@dataclass(frozen=True, slots=True)
class DropSyntax:
    name: Token


StatementSyntax = CreateSyntax | RegisterSyntax | SubscribeSyntax | UnsubscribeSyntax | DropSyntax


def start_of(token: Token) -> int:
    return token.start_pos or 0

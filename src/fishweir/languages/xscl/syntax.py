"""Syntax nodes of XSCL: what the transformer makes and the binder reads; they keep their tokens."""

from __future__ import annotations

from dataclasses import dataclass

from lark import Token

from fishweir.languages.parsed import ConstantPlace
from fishweir.languages.schedule import Clauses


@dataclass(frozen=True, slots=True)
class ComparisonSyntax:
    """A relative path that must exist, or two operands compared; tokens are constants."""

    left: RelativeSyntax | Token
    op: Token | None = None
    right: RelativeSyntax | Token | None = None


@dataclass(frozen=True, slots=True)
class StepSyntax:
    """A step with its variables and its predicates, each a conjunction; all must hold."""

    name: Token
    deep: bool
    attribute: bool
    variables: tuple[Token, ...] = ()
    conditions: tuple[ComparisonSyntax, ...] = ()


@dataclass(frozen=True, slots=True)
class RelativeSyntax:
    """A path from the node of its predicate down; without steps the node itself. `start` is its first token,
    in the predicate of a join the variable that it goes down from, which may have conditions of its own."""

    start: Token
    steps: tuple[StepSyntax, ...]
    conditions: tuple[ComparisonSyntax, ...] = ()


@dataclass(frozen=True, slots=True)
class BlockSyntax:
    """A block; `variables` are those of the whole document."""

    source: Token
    steps: tuple[StepSyntax, ...]
    variables: tuple[Token, ...] = ()

    @property
    def last(self) -> Token:
        return self.steps[-1].name if self.steps else self.source


@dataclass(frozen=True, slots=True)
class WindowSyntax:
    """The T of a join in seconds, with its place in the text."""

    seconds: float
    place: ConstantPlace


@dataclass(frozen=True, slots=True)
class JoinSyntax:
    """`JOIN{conditions, window} block`, or FOLLOWED BY."""

    word: Token
    conditions: tuple[ComparisonSyntax, ...]
    window: WindowSyntax
    block: BlockSyntax

    @property
    def is_sequence(self) -> bool:
        return self.word[0] in "fF"


@dataclass(frozen=True, slots=True)
class ElementSyntax:
    """A literal tag of the output; tokens are variables and texts."""

    tag: Token
    attributes: tuple[tuple[Token, Token], ...]
    content: tuple[ElementSyntax | Token, ...] = ()


@dataclass(frozen=True, slots=True)
class QuerySyntax:
    """`select` None is `*`."""

    select: tuple[ElementSyntax | Token, ...] | None
    block: BlockSyntax
    joins: tuple[JoinSyntax, ...]
    clauses: Clauses

    @property
    def blocks(self) -> tuple[BlockSyntax, ...]:
        return (self.block, *(join.block for join in self.joins))

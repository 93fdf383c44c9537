"""Syntax nodes of XSCL: what the transformer makes and the binder reads; they keep their tokens."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from lark import Token

from fishweir.languages.connectives import AndSyntax, Condition, NotSyntax, OrSyntax
from fishweir.languages.parsed import ConstantPlace
from fishweir.languages.schedule import Clauses


@dataclass(frozen=True, slots=True)
class ComparisonSyntax:
    """A relative path that must exist, or two operands compared; tokens are constants."""

    left: RelativeSyntax | Token
    op: Token | None = None
    right: RelativeSyntax | Token | None = None


ConditionSyntax: TypeAlias = "Condition[ComparisonSyntax]"


@dataclass(frozen=True, slots=True)
class StepSyntax:
    """A step with its variables and its predicates; all must hold."""

    name: Token
    deep: bool
    attribute: bool
    variables: tuple[Token, ...] = ()
    conditions: tuple[ConditionSyntax, ...] = ()


@dataclass(frozen=True, slots=True)
class RelativeSyntax:
    """A path from the node of its predicate down; without steps the node itself. `start` is its first token,
    in the predicate of a join the variable that it goes down from, which may have conditions of its own."""

    start: Token
    steps: tuple[StepSyntax, ...]
    conditions: tuple[ConditionSyntax, ...] = ()


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
    """`JOIN{conditions, window} block`, or FOLLOWED BY; `end` is where the text of its right side ends."""

    word: Token
    conditions: tuple[ConditionSyntax, ...]
    window: WindowSyntax
    block: BlockSyntax | ChainSyntax
    end: int = 0

    @property
    def is_sequence(self) -> bool:
        return self.word[0] in "fF"


@dataclass(frozen=True, slots=True)
class ChainSyntax:
    """A block and the joins behind it, one after the other, in parentheses."""

    block: BlockSyntax
    joins: tuple[JoinSyntax, ...]


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
    name: Token | None
    clauses: Clauses


def comparisons(condition: ConditionSyntax) -> Iterator[ComparisonSyntax]:
    """What a condition is made of, whether it must hold or not."""
    match condition:
        case NotSyntax(_, part):
            yield from comparisons(part)
        case AndSyntax(parts) | OrSyntax(parts):
            for part in parts:
                yield from comparisons(part)
        case _:
            yield condition

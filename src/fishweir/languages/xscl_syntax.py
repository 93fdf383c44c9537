"""Syntax nodes of XSCL: what the transformer makes and the binder reads; they keep their tokens."""

from __future__ import annotations

from dataclasses import dataclass

from lark import Token

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
    """A path from the node of its predicate down; without steps the node itself. `start` is its first token."""

    start: Token
    steps: tuple[StepSyntax, ...]


@dataclass(frozen=True, slots=True)
class BlockSyntax:
    source: Token
    steps: tuple[StepSyntax, ...]


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
    name: Token | None
    clauses: Clauses

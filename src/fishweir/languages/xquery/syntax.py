"""Syntax nodes of XQuery: created by the transformer and read by the binder; they keep their tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from lark import Token

from fishweir.algebra.nodes import Step
from fishweir.languages.schedule import Clauses


@dataclass(frozen=True, slots=True)
class StepSyntax:
    """A step with the conditions in its brackets; of `text()` only its place."""

    at: int
    step: Step | None
    filters: tuple[PredicateSyntax, ...] = ()


@dataclass(frozen=True, slots=True)
class PathSyntax:
    """Steps from a variable, from a stream, or (`start` None) from the node that brackets belong to."""

    start: Token | None
    steps: tuple[StepSyntax, ...]
    stream: bool = False


@dataclass(frozen=True, slots=True)
class PredicateSyntax:
    """A path, compared with a constant or only there."""

    path: PathSyntax
    op: str = ""
    constant: Token | None = None


@dataclass(frozen=True, slots=True)
class BindingSyntax:
    variable: Token
    path: PathSyntax


@dataclass(frozen=True, slots=True)
class ElementSyntax:
    tag: Token
    attributes: tuple[tuple[Token, Token | PathSyntax], ...]
    content: tuple[ItemSyntax, ...] = ()


@dataclass(frozen=True, slots=True)
class FwrSyntax:
    """One `for`, with its conditions and what it returns."""

    bindings: tuple[BindingSyntax, ...]
    conditions: tuple[PredicateSyntax, ...]
    items: tuple[ItemSyntax, ...]


@dataclass(frozen=True, slots=True)
class QuerySyntax:
    fwr: FwrSyntax
    clauses: Clauses


ItemSyntax: TypeAlias = "PathSyntax | Token | ElementSyntax | FwrSyntax"

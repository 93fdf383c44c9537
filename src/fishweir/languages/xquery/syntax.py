"""Syntax nodes of XQuery: created by the transformer and read by the binder; they keep their tokens."""

from __future__ import annotations

from typing import TypeAlias

from lark import Token

from fishweir.algebra.nodes import Step
from fishweir.languages.schedule import Clauses
from fishweir.records import dataclass


@dataclass(frozen=True, slots=True)
class StepSyntax:
    """A step with the conditions in its brackets; for `text()`, only its position."""

    at: int
    step: Step | None
    filters: tuple[PredicateSyntax, ...] = ()


@dataclass(frozen=True, slots=True)
class PathSyntax:
    """Steps from a variable, from a stream, or (`start` is None) from the node that the brackets belong to."""

    start: Token | None
    steps: tuple[StepSyntax, ...]
    stream: bool = False


@dataclass(frozen=True, slots=True)
class PredicateSyntax:
    """A path that is compared with a constant, or that must only exist."""

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
    """One `for`, with its conditions and its return clause."""

    bindings: tuple[BindingSyntax, ...]
    conditions: tuple[PredicateSyntax, ...]
    items: tuple[ItemSyntax, ...]


@dataclass(frozen=True, slots=True)
class QuerySyntax:
    fwr: FwrSyntax
    clauses: Clauses


ItemSyntax: TypeAlias = "PathSyntax | Token | ElementSyntax | FwrSyntax"

"""Syntax nodes of XML-QL: created by the transformer and read by the binder; they keep their tokens."""

from __future__ import annotations

from typing import TypeAlias

from lark import Token

from fishweir.languages.connectives import Condition
from fishweir.languages.schedule import Clauses
from fishweir.records import dataclass

Attributes = tuple[tuple[Token, Token], ...]


@dataclass(frozen=True, slots=True)
class ElementSyntax:
    """An element of a pattern: tokens are constants and variables; `bindings` come after element_as."""

    tag: Token
    attributes: Attributes
    content: tuple[ElementSyntax | Token, ...] = ()
    bindings: tuple[Token, ...] = ()


@dataclass(frozen=True, slots=True)
class PatternSyntax:
    element: ElementSyntax
    source: tuple[Token, ...]


@dataclass(frozen=True, slots=True)
class ScaledSyntax:
    """`0.95 * $old.p`."""

    factor: Token
    old: Token


@dataclass(frozen=True, slots=True)
class PredicateSyntax:
    left: Token
    op: Token
    right: Token


ConditionSyntax: TypeAlias = "Condition[PredicateSyntax]"
"""Predicates under and, or, not."""


@dataclass(frozen=True, slots=True)
class OutputSyntax:
    """A literal tag of the output."""

    tag: Token
    attributes: Attributes
    content: tuple[OutputSyntax | Token, ...] = ()


@dataclass(frozen=True, slots=True)
class QuerySyntax:
    items: tuple[PatternSyntax | ConditionSyntax, ...]
    output: tuple[OutputSyntax | Token, ...]
    clauses: Clauses


def local_tag(tag: str) -> str:
    """The name without its prefix, with plain apostrophes for typographic ones: `x:Day’s` is `Day's`."""
    return tag.rpartition(":")[2].replace("’", "'")


def path_of(tag: str) -> list[str]:
    """The names of a tag in a pattern: `<Quotes.Quote>` is a path, as in XML-QL."""
    names = local_tag(tag).split(".")
    return names if all(names) else [local_tag(tag)]

"""Conditions with and, or, not in the pattern languages, and their disjunctive normal form.

In: a condition over the comparisons of a language, its leaves. Out: the conjunctions, one of which must hold. Negation
moves inward to the leaves; the language defines the result for a leaf, negated or not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Generic, NoReturn, TypeAlias, TypeVar

from lark import Token

from fishweir.algebra.formula import LARGEST
from fishweir.languages.statement_text import Rejected
from fishweir.records import dataclass

Leaf = TypeVar("Leaf")
Literal = TypeVar("Literal")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class NotSyntax(Generic[Leaf]):
    """`not(...)`; `word` is its position."""

    word: Token
    part: Condition[Leaf]


@dataclass(frozen=True, slots=True)
class AndSyntax(Generic[Leaf]):
    parts: tuple[Condition[Leaf], ...]


@dataclass(frozen=True, slots=True)
class OrSyntax(Generic[Leaf]):
    parts: tuple[Condition[Leaf], ...]


Condition: TypeAlias = "Leaf | NotSyntax[Leaf] | AndSyntax[Leaf] | OrSyntax[Leaf]"
CONNECTIVES = (NotSyntax, AndSyntax, OrSyntax)


def combined(kind: type[AndSyntax[Leaf] | OrSyntax[Leaf]], parts: Sequence[Condition[Leaf] | Token]) -> Condition[Leaf]:
    """The parts under one connective, given by the tokens; a single part is returned unchanged."""
    conditions = tuple(part for part in parts if not isinstance(part, Token))
    return conditions[0] if len(conditions) == 1 else kind(conditions)


def conjunctions(
    condition: Condition[Leaf], leaf: Callable[[Leaf, bool], list[tuple[Literal, ...]]], positive: bool = True
) -> list[tuple[Literal, ...]]:
    """The disjunctive normal form; `leaf` returns that of a leaf or, if not `positive`, of its negation."""
    match condition:
        case NotSyntax(_, part):
            return conjunctions(part, leaf, not positive)
        case AndSyntax(parts) | OrSyntax(parts):
            found = [conjunctions(part, leaf, positive) for part in parts]
            if isinstance(condition, OrSyntax) == positive:
                return limited([one for some in found for one in some])
            return [tuple(one for some in chosen for one in some) for chosen in all_of(found)]
    return leaf(condition, positive)


def all_of(parts: Sequence[Sequence[T]]) -> list[tuple[T, ...]]:
    """Every combination of one element of each part. Raises Rejected if there are too many."""
    if math.prod(map(len, parts)) > LARGEST:
        too_many()
    return list(product(*parts))


def limited(alternatives: list[T]) -> list[T]:
    return alternatives if len(alternatives) <= LARGEST else too_many()


def too_many() -> NoReturn:
    reason = f"the query would need more than {LARGEST} alternatives when its and, or and not are multiplied out"
    raise Rejected(f"{reason}; split it into several queries", 0)

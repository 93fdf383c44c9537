"""`or` multiplied out: a query of XSCL as queries without it, any of which may hold.

In: syntax nodes with conditions under and, or, not. Out: the same nodes with conjunctions of comparisons and negated
comparisons only, one for each alternative of the disjunctive normal form. A path exists if it does for one of the
alternatives of its own predicates, so what is negated is expanded too: none of its alternatives may hold.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from lark import Token

from fishweir.languages.connectives import AndSyntax, NotSyntax, all_of, conjunctions
from fishweir.languages.xscl.syntax import (
    BlockSyntax,
    ComparisonSyntax,
    ConditionSyntax,
    JoinSyntax,
    QuerySyntax,
    RelativeSyntax,
    StepSyntax,
)

Conjunction = tuple[ConditionSyntax, ...]
"""Comparisons and negated comparisons, without `or` in any of their paths."""


def expand_query(query: QuerySyntax) -> list[QuerySyntax]:
    """The alternatives of a query of one block."""
    return [replace(query, block=block) for block in expand_block(query.block)]


def expand_block(block: BlockSyntax) -> list[BlockSyntax]:
    return [replace(block, steps=steps) for steps in _steps(block.steps)]


def expand_predicate(join: JoinSyntax) -> list[Conjunction]:
    """The alternatives of a join's predicate."""
    return _all(join.conditions)


def _steps(steps: Iterable[StepSyntax]) -> list[tuple[StepSyntax, ...]]:
    return all_of([_step(step) for step in steps])


def _step(step: StepSyntax) -> list[StepSyntax]:
    return [replace(step, conditions=conditions) for conditions in _all(step.conditions)]


def _all(conditions: Iterable[ConditionSyntax]) -> list[Conjunction]:
    return conjunctions(AndSyntax(tuple(conditions)), _comparison)


def _comparison(comparison: ComparisonSyntax, positive: bool) -> list[Conjunction]:
    """A comparison holds by one of the alternatives of its operands, and does not where none of them holds."""
    lefts, rights = _operand(comparison.left), _operand(comparison.right)
    found = [replace(comparison, left=left, right=right) for left in lefts for right in rights]  # type: ignore[arg-type]
    if positive:
        return [(one,) for one in found]
    return [tuple(NotSyntax(_first(one), one) for one in found)]


def _operand(operand: RelativeSyntax | Token | None) -> list[RelativeSyntax | Token | None]:
    if not isinstance(operand, RelativeSyntax):
        return [operand]
    choices = [(conditions, steps) for conditions in _all(operand.conditions) for steps in _steps(operand.steps)]
    return [replace(operand, conditions=conditions, steps=steps) for conditions, steps in choices]


def _first(comparison: ComparisonSyntax) -> Token:
    """Where a comparison begins."""
    return comparison.left.start if isinstance(comparison.left, RelativeSyntax) else comparison.left

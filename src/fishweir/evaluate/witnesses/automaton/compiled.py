"""Compiles patterns onto the trie: each step becomes a trie node, predicates become branches from their node.

In: a Pattern and the trie. Out: a Branch. The relative patterns of predicates are further paths of the same automaton.
They share the prefix up to their node and are joined on it afterwards (the witnesses of MMQJP section 3.1, one chain
per embedding). A pattern's *anchor* is a path that must match, with a given text if it has one, for the whole pattern
to match. With many patterns, the anchors are checked first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fishweir.algebra.nodes import Constant, Operator
from fishweir.evaluate.witnesses.automaton.pattern import And, Compare, Exists, Not, Or, PathStep, Pattern, Predicate
from fishweir.evaluate.witnesses.automaton.trie import ROOT, Trie


@dataclass(frozen=True, slots=True)
class Branch:
    """A path below `base`: for each step, its node, whether it is a descendant step, and its condition."""

    base: int
    nodes: tuple[int, ...]
    deep: tuple[bool, ...]
    conditions: tuple[Condition | None, ...]

    @property
    def last(self) -> int:
        return self.nodes[-1] if self.nodes else self.base


@dataclass(frozen=True, slots=True)
class BranchExists:
    branch: Branch


@dataclass(frozen=True, slots=True)
class BranchCompares:
    branch: Branch
    op: Operator
    constant: Constant


@dataclass(frozen=True, slots=True)
class AllOf:
    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Negated:
    part: Condition


Condition = BranchExists | BranchCompares | AllOf | AnyOf | Negated
Anchor = tuple[int, str | None]


@dataclass(frozen=True, slots=True)
class CompiledPattern:
    """A pattern in the automaton, with all nodes that it uses and those whose values it compares."""

    pattern: Pattern
    trunk: Branch
    uses: tuple[int, ...]
    compared: tuple[int, ...]

    @property
    def conditional(self) -> bool:
        return any(self.trunk.conditions)

    @property
    def anchor(self) -> Anchor:
        return max(_anchors(self.trunk), key=lambda anchor: anchor[1] is not None)


def compile_pattern(trie: Trie, pattern: Pattern) -> CompiledPattern:
    uses: list[int] = []
    compared: list[int] = []

    def branch(base: int, steps: tuple[PathStep, ...]) -> Branch:
        nodes = trie.acquire(base, steps)
        uses.extend(nodes)
        conditions = tuple(
            condition(node, s.predicate) if s.predicate else None for node, s in zip(nodes, steps, strict=True)
        )
        return Branch(base, tuple(nodes), tuple(s.deep for s in steps), conditions)

    def condition(node: int, predicate: Predicate) -> Condition:
        match predicate:
            case Exists(inner):
                return BranchExists(branch(node, inner.steps))
            case Compare(inner, op, constant):
                below = branch(node, inner.steps)
                compared.append(below.last)
                return BranchCompares(below, op, constant)
            case And(parts):
                return AllOf(tuple(condition(node, part) for part in parts))
            case Or(parts):
                return AnyOf(tuple(condition(node, part) for part in parts))
            case Not(part):
                return Negated(condition(node, part))

    trunk = branch(ROOT, pattern.steps)
    return CompiledPattern(pattern, trunk, tuple(uses), tuple(compared))


def _anchors(branch: Branch) -> Iterator[Anchor]:
    """The paths that must match for the branch to match, each with its required text if there is one."""
    yield branch.last, None
    for condition in branch.conditions:
        if condition is not None:
            yield from _anchors_of(condition)


def _anchors_of(condition: Condition) -> Iterator[Anchor]:
    match condition:
        case BranchExists(branch):
            yield from _anchors(branch)
        case BranchCompares(branch, op, constant):
            yield from _anchors(branch)
            if op == "=" and isinstance(constant, str):
                yield branch.last, constant
        case AllOf(parts):
            for part in parts:
                yield from _anchors_of(part)

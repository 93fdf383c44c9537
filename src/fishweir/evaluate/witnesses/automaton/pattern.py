"""Path patterns: the immutable nodes into which XPath texts and the algebra's steps are translated.

A pattern is a tuple of steps down from the document. An attribute is a step like any other. It is below its element,
like a child, so `a//@x` is an attribute below or on `a`. A predicate contains relative patterns, nested to any depth.
Conjunctions and disjunctions are flat, sorted and free of duplicates, so that equal definitions are equal nodes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fishweir.algebra.nodes import Constant, Operator, Step


@dataclass(frozen=True, slots=True)
class NameTest:
    """A local name and a namespace. None matches any; an empty namespace means no namespace."""

    local: str | None
    namespace: str | None = None

    def __str__(self) -> str:
        space = "" if self.namespace is None else f"{{{self.namespace}}}"
        return f"{space}{self.local or '*'}"


@dataclass(frozen=True, slots=True)
class PathStep:
    """One step to a child (`deep`: to any descendant), which is an element or an attribute."""

    test: NameTest
    deep: bool = False
    attribute: bool = False
    predicate: Predicate | None = None

    def __str__(self) -> str:
        condition = f"[{self.predicate}]" if self.predicate else ""
        return f"{'//' if self.deep else '/'}{'@' if self.attribute else ''}{self.test}{condition}"


@dataclass(frozen=True, slots=True)
class Pattern:
    """Steps down from the document or, in a predicate, from its node. Without steps, it denotes the node itself."""

    steps: tuple[PathStep, ...]

    def __str__(self) -> str:
        return "".join(map(str, self.steps)) or "."

    @property
    def relative(self) -> str:
        return str(self) if not self.steps else f".{self}"


@dataclass(frozen=True, slots=True)
class Exists:
    pattern: Pattern

    def __str__(self) -> str:
        return self.pattern.relative


@dataclass(frozen=True, slots=True)
class Compare:
    """Holds if some node of the pattern has a value that satisfies the comparison. Texts allow only `=` and `!=`."""

    pattern: Pattern
    op: Operator
    constant: Constant

    def __str__(self) -> str:
        if isinstance(self.constant, str):
            quote = "'" if '"' in self.constant else '"'
            return f"{self.pattern.relative} {self.op} {quote}{self.constant}{quote}"
        return f"{self.pattern.relative} {self.op} {self.constant!r}"


@dataclass(frozen=True, slots=True)
class And:
    parts: tuple[Predicate, ...]

    def __str__(self) -> str:
        return " and ".join(f"({part})" if isinstance(part, Or) else str(part) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Or:
    parts: tuple[Predicate, ...]

    def __str__(self) -> str:
        return " or ".join(map(str, self.parts))


@dataclass(frozen=True, slots=True)
class Not:
    part: Predicate

    def __str__(self) -> str:
        return f"not({self.part})"


Predicate = Exists | Compare | And | Or | Not


def conjunction(parts: Iterable[Predicate]) -> Predicate:
    flat = _sorted(q for p in parts for q in (p.parts if isinstance(p, And) else (p,)))
    return flat[0] if len(flat) == 1 else And(flat)


def disjunction(parts: Iterable[Predicate]) -> Predicate:
    flat = _sorted(q for p in parts for q in (p.parts if isinstance(p, Or) else (p,)))
    return flat[0] if len(flat) == 1 else Or(flat)


def _sorted(parts: Iterable[Predicate]) -> tuple[Predicate, ...]:
    # Different nodes may have the same text ("1" and 1 do not), so duplicates are determined by node.
    return tuple(sorted(dict.fromkeys(parts), key=lambda part: (str(part), repr(part))))


def patterns_in(predicate: Predicate) -> Iterable[Pattern]:
    """The relative patterns of a predicate, without those nested in them."""
    match predicate:
        case Exists(pattern) | Compare(pattern):
            yield pattern
        case And(parts) | Or(parts):
            for part in parts:
                yield from patterns_in(part)
        case Not(part):
            yield from patterns_in(part)


def steps_to_pattern(path: Iterable[Step]) -> Pattern:
    """The pattern of a path of the algebra. An item is treated like any other document element."""
    return Pattern(tuple(PathStep(_name_test(s), s.is_deep, s.is_attribute) for s in path))


def _name_test(step: Step) -> NameTest:
    return NameTest(None if step.name == "*" else step.name, step.namespace)

"""Boolean conditions on one item: atoms under and, or, not, and their normal forms.

An atom compares the value at a path of the item (relative to its document element; the empty path is the whole item)
with a constant, or with another path. Conditions on an absent or NULL value are false, and their negation is true: an
item either satisfies an atom or it does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Literal as OneOf

from fishweir.algebra.nodes import Slot, Step
from fishweir.errors import QueryError
from fishweir.records import dataclass

AtomOperator = str
"""A comparison (nodes.Operator), `exists`, or the name of a registered condition (operators.py)."""
Part = OneOf["value", "year", "month", "day", "hour", "time", "text"]
"""What is compared: the value, a part of the date it contains, or that date as seconds since 1970. Two columns are
ordered as numbers, or with `text` as texts, by code points."""
RelativePath = tuple[Step, ...]

LARGEST = 256
"""The maximum number of conjunctions (or clauses) of a normal form; beyond that a condition is rejected."""


@dataclass(frozen=True, slots=True)
class Atom:
    """`part(path) op right`: an elementary condition; right is None only for `exists`.

    `threshold` is the slot of the number in `similar(0.8)`; None means the default of `similar`.
    """

    path: RelativePath
    op: AtomOperator
    right: Slot | RelativePath | None = None
    part: Part = "value"
    threshold: Slot | None = None

    def __str__(self) -> str:
        path = "/".join(map(str, self.path)) or "item"
        left = path if self.part == "value" else f"{self.part}({path})"
        if self.right is None:
            return f"{self.op} {left}"
        right = "?" if isinstance(self.right, Slot) else "/".join(map(str, self.right))
        op = self.op if self.threshold is None else f"{self.op}(?)"
        return f"{left} {op} {right}"


@dataclass(frozen=True, slots=True)
class And:
    parts: tuple[Formula, ...] = ()


@dataclass(frozen=True, slots=True)
class Or:
    parts: tuple[Formula, ...] = ()


@dataclass(frozen=True, slots=True)
class Not:
    part: Formula


Formula = Atom | And | Or | Not
TRUE, FALSE = And(), Or()


@dataclass(frozen=True, slots=True)
class Literal:
    """An atom or its negation."""

    atom: Atom
    positive: bool = True


Clause = frozenset[Literal]


def atoms_of(formula: Formula) -> Iterator[Atom]:
    match formula:
        case Atom():
            yield formula
        case Not(part):
            yield from atoms_of(part)
        case And(parts) | Or(parts):
            for part in parts:
                yield from atoms_of(part)


def with_atoms(formula: Formula, change: Callable[[Atom], Atom]) -> Formula:
    """The formula with each atom changed."""
    match formula:
        case Atom():
            return change(formula)
        case Not(part):
            return Not(with_atoms(part, change))
        case And(parts) | Or(parts):
            return type(formula)(tuple(with_atoms(part, change) for part in parts))


def paths_of(formula: Formula) -> Iterator[RelativePath]:
    """The paths that a formula reads."""
    for atom in atoms_of(formula):
        yield atom.path
        if isinstance(atom.right, tuple):
            yield atom.right


def to_dnf(formula: Formula, largest: int = LARGEST) -> tuple[Clause, ...]:
    """Disjunctive normal form: conjunctions, none contradictory, none containing another."""
    return _absorbed(_distributed(formula, positive=True, conjunctions=True, largest=largest))


def to_cnf(formula: Formula, largest: int = LARGEST) -> tuple[Clause, ...]:
    """Conjunctive normal form: disjunctions, none trivially true, none containing another."""
    return _absorbed(_distributed(formula, positive=True, conjunctions=False, largest=largest))


def _distributed(formula: Formula, positive: bool, conjunctions: bool, largest: int) -> set[Clause]:
    """The clauses of a normal form: negation moves inward, the inner connective is multiplied out."""
    match formula:
        case Atom():
            return {frozenset([Literal(formula, positive)])}
        case Not(part):
            return _distributed(part, not positive, conjunctions, largest)
    parts = [_distributed(part, positive, conjunctions, largest) for part in formula.parts]
    is_and = isinstance(formula, And) == positive
    if is_and != conjunctions:
        clauses = set().union(*parts)
    else:
        clauses = _multiplied(parts, largest)
    return _checked(clauses, largest)


def _multiplied(parts: list[set[Clause]], largest: int) -> set[Clause]:
    clauses: set[Clause] = {frozenset()}
    for part in parts:
        clauses = _checked({a | b for a, b in product(clauses, part) if not _contradicts(a | b)}, largest)
    return clauses


def _checked(clauses: set[Clause], largest: int) -> set[Clause]:
    if len(clauses) > largest:
        raise QueryError(
            f"the condition would need more than {largest} alternatives when its and, or and not are multiplied out; "
            "split it into several queries"
        )
    return clauses


def _contradicts(clause: Clause) -> bool:
    return any(not literal.positive and Literal(literal.atom, True) in clause for literal in clause)


def _absorbed(clauses: set[Clause]) -> tuple[Clause, ...]:
    """The clauses that contain no other clause, in an order that depends only on the formula."""
    kept = [c for c in clauses if not any(other < c for other in clauses)]
    return tuple(sorted(kept, key=lambda c: sorted((str(x.atom), x.positive, _slots(x.atom)) for x in c)))


def _slots(atom: Atom) -> list[int]:
    return [slot.index for slot in (atom.right, atom.threshold) if isinstance(slot, Slot)]

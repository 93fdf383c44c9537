"""Predicates: a filter's formula in conjunctive normal form, without its constants (RoSeS 4.3).

In: a filter on one source. Out: a Predicate, clauses that must all hold; a clause is one literal or a
disjunction of several. An item satisfies an atom if any of its nodes at the path does, so a predicate
is a Boolean function of the item, and predicates of one source share their clauses.
"""

from __future__ import annotations

from typing import ClassVar

from fishweir.algebra.formula import Atom, AtomOperator, Clause, Formula, Part, to_cnf, to_dnf
from fishweir.algebra.nodes import Constant, Slot, Source, Step
from fishweir.algebra.normal import ANY_ROOT, PLACEHOLDER, dotted
from fishweir.algebra.operators import constant_place, constant_type, has_share
from fishweir.algebra.texts import SIMILAR
from fishweir.errors import QueryError
from fishweir.records import dataclass


@dataclass(frozen=True, slots=True)
class AtomSignature:
    """An atom without its constant. Atoms with equal signatures form one group."""

    path: tuple[Step, ...]
    op: AtomOperator
    type: str
    part: Part = "value"

    def shown(self, constant: str | None = None) -> str:
        left = dotted(self.path) if self.part == "value" else f"{self.part}({dotted(self.path)})"
        if self.op == "exists":
            return f"exists {left}"
        if has_share(self.op) and constant is not None and "\t" in constant:
            share, _, text = constant.strip('"').partition("\t")
            return f'{left} {self.op}({float(share):g}) "{text}"'
        return f"{left} {self.op} {PLACEHOLDER[self.type] if constant is None else constant}"


@dataclass(frozen=True, slots=True)
class PredicateLiteral:
    """An atom or its negation; its constant is the query's value for `slot`."""

    signature: AtomSignature
    slot: int
    positive: bool = True

    def shown(self, constants: list[Constant] | None = None) -> str:
        text = self.signature.shown(None if constants is None else show_constant(constants[self.slot]))
        return text if self.positive else f"not {text}"


@dataclass(frozen=True, slots=True)
class Predicate:
    """The condition on the items of one source; without clauses it is `true`."""

    kind: ClassVar[str] = "filters"

    source: Source
    clauses: tuple[tuple[PredicateLiteral, ...], ...]

    @property
    def literals(self) -> tuple[PredicateLiteral, ...]:
        """The literals of all clauses, in the order of their slots."""
        return tuple(literal for clause in self.clauses for literal in clause)

    @property
    def types(self) -> tuple[str, ...]:
        return tuple(literal.signature.type for literal in self.literals)

    @property
    def signatures(self) -> list[str]:
        return [f"{literal.shown()} in {self.source}" for literal in self.literals]

    def shown(self, constants: list[Constant] | None = None) -> str:
        clauses = [" or ".join(literal.shown(constants) for literal in clause) for clause in self.clauses]
        single = [text if len(clause) == 1 else f"({text})" for text, clause in zip(clauses, self.clauses, strict=True)]
        return " and ".join(single) or "true"

    def __str__(self) -> str:
        return f"{self.source}: {self.shown()}"


SlotPlace = int | tuple[int, int]
"""The position of a slot's value among the query's constants; -1 for none, a pair for a share and its text."""


def to_predicates(source: Source, formula: Formula) -> list[tuple[Predicate, tuple[SlotPlace, ...]]]:
    """One predicate; or several, any of which may hold, if the conjunctive normal form would be too large."""
    try:
        alternatives = [to_cnf(formula)]
    except QueryError:
        alternatives = [tuple(frozenset([literal]) for literal in clause) for clause in to_dnf(formula)]
    return [_predicate(source, clauses) for clauses in alternatives if all(clauses)]


def constant_at(place: SlotPlace, constants: tuple[Constant, ...]) -> Constant:
    if isinstance(place, int):
        return constants[place] if place >= 0 else ""
    share, text = place
    return f"{constants[share] if share >= 0 else SIMILAR}\t{constants[text]}"


def place_of(atom: Atom) -> SlotPlace:
    """The position of a condition's constant among those of the query; -1 if it has none."""
    if not isinstance(atom.right, Slot):
        return -1
    return constant_place(atom.op, atom.right.index, -1 if atom.threshold is None else atom.threshold.index)


def type_of(atom: Atom) -> str:
    return constant_type(atom.op, atom.right.type if isinstance(atom.right, Slot) else "string")


def order_of(atom: Atom) -> tuple[str, str, int]:
    """A sort key: structure first, so that queries that differ only in constants get one template."""
    return (str(atom), type_of(atom), atom.right.index if isinstance(atom.right, Slot) else -1)


def _predicate(source: Source, clauses: tuple[Clause, ...]) -> tuple[Predicate, tuple[SlotPlace, ...]]:
    ordered = sorted(sorted((order_of(x.atom), not x.positive, x.atom) for x in clause) for clause in clauses)
    places: list[SlotPlace] = []
    found = []
    for clause in ordered:
        literals = []
        for _, negative, atom in clause:
            if isinstance(atom.right, tuple):
                raise QueryError(f"a feed item can only be compared with constants, not as in {atom}")
            signature = AtomSignature((ANY_ROOT, *atom.path), atom.op, type_of(atom), atom.part)
            literals.append(PredicateLiteral(signature, len(places), not negative))
            places.append(place_of(atom))
        found.append(tuple(literals))
    return Predicate(source, tuple(found)), tuple(places)


def show_constant(constant: Constant) -> str:
    return f'"{constant}"' if isinstance(constant, str) else f"{constant:g}"

"""Contradictory conditions on columns: `x > 5 and x < 3`, `x = null`, `x is null and x > 5`.

In: a formula over columns, which have one value each. Out, once for all queries of a shape: which of its conditions
might exclude each other, to be decided by the constants of each query. A query is reported as empty only if it
certainly is: each alternative of its disjunctive normal form has two conditions that exclude each other. This does not
apply to feed items: they may have several values at a path, one for each condition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import permutations
from operator import eq, ge, gt, ne
from typing import Any

from fishweir.algebra.formula import Atom, Clause, Formula, RelativePath, to_dnf
from fishweir.algebra.nodes import Constant, Slot
from fishweir.algebra.predicates import order_of, show_constant
from fishweir.records import dataclass

EXCLUDES: dict[tuple[str, str], Callable[[Any, Any], bool]] = {
    (">", "<"): ge, (">", "<="): ge, (">=", "<"): ge, (">=", "<="): gt,
    (">", "="): ge, (">=", "="): gt, ("=", "<"): ge, ("=", "<="): gt,
    ("=", "="): ne, ("=", "!="): eq,
}  # fmt: skip
"""For which constants `value op constant` and `value other-op other-constant` exclude each other."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two comparisons of one column with constants."""

    column: str
    ops: tuple[str, str]
    constants: tuple[int, int]
    """Their indexes among the query's constants."""

    def never(self, constants: Sequence[Constant]) -> Never:
        one, two = (f"{op} {show_constant(constants[i])}" for op, i in zip(self.ops, self.constants, strict=True))
        return Never(self.column, f"no value of {self.column} is {one} and {two}")


@dataclass(frozen=True, slots=True)
class Never:
    """Why a query never fires: the column, if any, and the reason."""

    column: str
    reason: str


@dataclass(frozen=True, slots=True)
class Emptiness:
    """For each alternative, the conditions that might exclude each other, or why it is always empty."""

    alternatives: tuple[tuple[Pair, ...] | Never, ...]

    def of(self, constants: Sequence[Constant]) -> Never | None:
        """Why the query with these constants never fires (the reason of its first alternative); None if it may fire."""
        first: Never | None = None
        for alternative in self.alternatives:
            never = alternative if isinstance(alternative, Never) else _excluded(alternative, constants)
            if never is None:
                return None
            first = first or never
        return first or Never("", "its condition is never true (no comparison with NULL is; write 'is null')")


def emptiness_of(formula: Formula) -> Emptiness | None:
    """The emptiness of a formula; None if no constants can make it empty."""
    alternatives = tuple(_alternative(clause) for clause in to_dnf(formula))
    return None if () in alternatives else Emptiness(alternatives)


def _excluded(pairs: Iterable[Pair], constants: Sequence[Constant]) -> Never | None:
    for pair in pairs:
        one, two = pair.constants
        if EXCLUDES[pair.ops](constants[one], constants[two]):
            return pair.never(constants)
    return None


def _alternative(clause: Clause) -> tuple[Pair, ...] | Never:
    absent = {x.atom.path for x in clause if not x.positive and x.atom.op == "exists"}
    held = [x.atom for x in clause if x.positive]
    for path in (path for atom in held for path in _read(atom)):
        if path in absent:
            return Never(path[-1].name, f"{path[-1].name} cannot be null and have a value")
    return tuple(_pairs(sorted(held, key=order_of)))


def _pairs(atoms: Sequence[Atom]) -> Iterator[Pair]:
    for one, two in permutations(atoms, 2):
        if not isinstance(one.right, Slot) or not isinstance(two.right, Slot) or (one.op, two.op) not in EXCLUDES:
            continue
        if (one.path, one.part, one.right.type) == (two.path, two.part, two.right.type):
            yield Pair(one.path[-1].name, (one.op, two.op), (one.right.index, two.right.index))


def _read(atom: Atom) -> tuple[RelativePath, ...]:
    return (atom.path, atom.right) if isinstance(atom.right, tuple) else (atom.path,)

"""The shedding decision per stream and micro-batch: made by the driver, carried out by the workers.

A decision is made once per micro-batch for all queries of a stream, so that no query is examined while documents are
processed. It is a list of levels: shares of the documents, each with the patterns that are omitted from them. Documents
without a level are left out completely. Documents are ordered by their value to all queries together, weighted by
subscribers; a hash of the document number breaks ties. The best documents get the fullest level. A decision is recorded
before its micro-batch runs, so a repeated micro-batch sheds the same.

If documents are lists of many topmost elements (units.py), levels are shares of the elements, and each kept document
has elements of all levels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fishweir.algebra.values import satisfies
from fishweir.records import dataclass
from fishweir.shedding.fastshed import fast_shed
from fishweir.shedding.overload import LEAST, Budget
from fishweir.shedding.problem import Candidate
from fishweir.shedding.suspension import PreferenceGroup, Variant
from fishweir.shedding.utility import otherwise

MOST_PREFERENCES = 64
"""The maximum number of different preferences by value that decide for a stream: those with the most subscribers."""


@dataclass(frozen=True, slots=True)
class Value:
    """A condition that makes a document more valuable: the names of a path, a comparison, and the utility."""

    path: tuple[str, ...]
    op: str
    constant: str | float
    utility: float


@dataclass(frozen=True, slots=True)
class Valued:
    """One preference by value: the greatest utility of the conditions that hold counts, or `otherwise` if none does."""

    weight: float
    otherwise: float
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Level:
    """A share of the documents, the return patterns that their results lack, the suspended paths, and the paths whose
    conditions are not checked.
    """

    share: float
    returns: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    relaxed: tuple[str, ...] = ()

    @property
    def is_full(self) -> bool:
        return not (self.returns or self.conditions or self.relaxed)


@dataclass(frozen=True, slots=True)
class StreamShed:
    """The decision for one stream: the levels, the fullest first, and the values of documents. With `allowed`, queries
    without a preference lose patterns, too.
    """

    levels: tuple[Level, ...]
    valued: tuple[Valued, ...] = ()
    allowed: bool = False
    unit: tuple[str, ...] = ()
    """The path of the topmost elements, if these have levels instead of documents."""
    inside: bool = False
    """Whether elements are left out instead of documents."""

    @property
    def keep(self) -> float:
        """The share of the entries that is evaluated."""
        return min(1.0, sum(level.share for level in self.levels))

    def ends(self, whole: int) -> tuple[int, ...]:
        """The end of the share of each level in a range, for the elements of kept documents."""
        kept = 1.0 if self.inside else self.keep
        return tuple(round(whole * min(1.0, end / kept)) for end in accumulate(level.share for level in self.levels))

    @property
    def is_nothing(self) -> bool:
        return self.keep >= 1 and all(level.is_full for level in self.levels)

    def __str__(self) -> str:
        """What is left out: `80%`, `tel, addr from 50%`, `80% of the elements list/transaction`."""
        parts = [f"{1 - self.keep:.0%}"] if self.keep < 1 else []
        for level in self.levels:
            if not level.is_full:
                parts.append(f"{', '.join((*level.returns, *level.conditions, *level.relaxed))} from {level.share:.0%}")
        elements = f" of the elements {'/'.join(self.unit)}" if self.unit else ""
        return " and ".join(parts) + elements

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> StreamShed:
        valued = tuple(
            Valued(
                one["weight"],
                one["otherwise"],
                tuple(Value(tuple(v["path"]), v["op"], v["constant"], v["utility"]) for v in one["values"]),
            )
            for one in raw["valued"]
        )
        levels = (
            Level(one["share"], *(tuple(one.get(name, ())) for name in ("returns", "conditions", "relaxed")))
            for one in raw["levels"]
        )
        return cls(tuple(levels), valued, raw["allowed"], tuple(raw.get("unit", ())), raw.get("inside", False))


LEFT_OUT, BY_ELEMENT = -1, -2
"""The level of documents that are left out, and of those whose elements have levels."""


def may_shed(allowed: bool, groups: Sequence[PreferenceGroup]) -> bool:
    """Whether a stream may be shed: queries without a preference are degraded only if the stream allows it."""
    return allowed or (bool(groups) and all(group.preference is not None for group in groups))


def levels_for(
    variants: Sequence[Variant], waiting: int, seconds: float, budget: Budget, may_drop: bool
) -> tuple[Level, ...]:
    """FastShed over the variants of a stream's query set. Documents that do not fit are left out completely or, if that
    is not allowed, get the cheapest variant.
    """
    whole = budget.whole
    costs = [budget.cost(v.matching, v.constructing) for v in variants]
    net = [max(cost - budget.leaving_out, whole / 100) for cost in costs]
    candidates = [Candidate(v.utility, cost) for v, cost in zip(variants, net, strict=True)]
    choice = fast_shed(candidates, waiting, seconds - waiting * budget.leaving_out)
    shares = [count / waiting for count in choice.counts]
    if not may_drop:
        cheapest = costs.index(min(costs))
        shares[cheapest] += choice.dropped / waiting
        if not any(v.constructing for v, share in zip(variants, shares, strict=True) if share > 0):
            shares[0], shares[cheapest] = LEAST, shares[cheapest] - LEAST
    elif sum(shares) < LEAST:
        shares[0] = LEAST
    given = zip(shares, variants, strict=True)
    return tuple(Level(share, v.returns, v.conditions, v.relaxed) for share, v in given if share > 0)


def valued_by(groups: Sequence[PreferenceGroup]) -> tuple[Valued, ...]:
    """The preferences of a stream's queries by the values of its documents."""
    found = []
    for group in sorted(groups, key=lambda one: -one.subscribers):
        scores = group.preference.by_value if group.preference else ()
        if scores:
            values = tuple(_value(score.pattern, score.condition, score.utility) for score in scores)
            found.append(Valued(group.weight, otherwise(scores), values))
    return tuple(found[:MOST_PREFERENCES])


def _value(pattern: tuple[str, ...], condition: Any, utility: float) -> Value:
    return Value((*pattern, *condition.path), condition.op, condition.constant, utility)


def worth(shed: StreamShed, values_at: Callable[[tuple[str, ...]], Sequence[str | None]]) -> float:
    """The value of one document to all queries together; `values_at` returns its values at a path."""
    total = 0.0
    for one in shed.valued:
        holding = [v.utility for v in one.values if any(_holds(text, v) for text in values_at(v.path))]
        total += one.weight * max(holding, default=one.otherwise)
    return total


def _holds(text: str | None, value: Value) -> bool:
    return text is not None and satisfies(text, value.op, value.constant)  # type: ignore[arg-type]


def levels_of(numbers: NDArray[np.int64], worths: NDArray[np.float64], levels: Sequence[Level]) -> NDArray[np.int64]:
    """The level of each entry: the most valuable entries first; a hash of their numbers breaks ties."""
    mixed = (numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(11)
    order = np.lexsort((mixed, -worths))
    found = np.full(len(numbers), LEFT_OUT, np.int64)
    start = 0
    for number, upto in enumerate(np.cumsum([level.share for level in levels])):
        end = min(len(numbers), int(np.ceil(len(numbers) * upto - 1e-9)))
        found[order[start:end]] = number
        start = max(start, end)
    return found

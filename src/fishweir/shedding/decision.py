"""What a micro-batch sheds of each stream, as the driver decides it and the workers carry it out.

A decision is made once per micro-batch for all queries of a stream, so no query is looked at while documents are. Those
documents are kept that are worth most to all queries together, weighted by their subscribers; among equals a hash of
their numbers decides. A decision is written down before its micro-batch runs: one that is repeated sheds the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fishweir.algebra.preferences import Preference
from fishweir.algebra.values import satisfies
from fishweir.shedding.utility import otherwise

MOST_PREFERENCES = 64
"""Different preferences by value that decide about one stream: those with the most subscribers."""


@dataclass(frozen=True, slots=True)
class Wish:
    """Queries over one stream that have the same preference, None for none, and the subscribers they have together."""

    preference: Preference | None
    subscribers: int


@dataclass(frozen=True, slots=True)
class Value:
    """A condition that makes a document worth more: the names of a path, a comparison, and what it adds."""

    path: tuple[str, ...]
    op: str
    constant: str | float
    utility: float


@dataclass(frozen=True, slots=True)
class Valued:
    """One preference by value: of the conditions that hold the greatest counts, else what is left."""

    weight: float
    otherwise: float
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class StreamShed:
    """Of one stream: the share of its entries that is kept, and what they are worth."""

    keep: float
    valued: tuple[Valued, ...] = ()

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
        return cls(raw["keep"], valued)


def may_shed(allowed: bool, wishes: Sequence[Wish]) -> bool:
    """Queries without a preference are degraded only where the stream allows it."""
    return allowed or (bool(wishes) and all(wish.preference is not None for wish in wishes))


def valued_by(wishes: Sequence[Wish]) -> tuple[Valued, ...]:
    """What the queries of a stream say about the values of its documents."""
    found = []
    for wish in sorted(wishes, key=lambda one: -one.subscribers):
        scores = wish.preference.by_value if wish.preference else ()
        if scores:
            values = tuple(_value(score.pattern, score.condition, score.utility) for score in scores)
            found.append(Valued(float(max(1, wish.subscribers)), otherwise(scores), values))
    return tuple(found[:MOST_PREFERENCES])


def _value(pattern: tuple[str, ...], condition: Any, utility: float) -> Value:
    return Value((*pattern, *condition.path), condition.op, condition.constant, utility)


def worth(shed: StreamShed, values_at: Callable[[tuple[str, ...]], Sequence[str | None]]) -> float:
    """What one document is worth to all queries together; `values_at` gives its values at a path."""
    total = 0.0
    for one in shed.valued:
        holding = [v.utility for v in one.values if any(_holds(text, v) for text in values_at(v.path))]
        total += one.weight * max(holding, default=one.otherwise)
    return total


def _holds(text: str | None, value: Value) -> bool:
    return text is not None and satisfies(text, value.op, value.constant)  # type: ignore[arg-type]


def kept(numbers: NDArray[np.int64], worths: NDArray[np.float64], keep: float) -> NDArray[np.bool_]:
    """Which of some entries are kept: those worth most, by a hash of their numbers among equals."""
    count = int(np.ceil(len(numbers) * keep))
    mixed = (numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(11)
    order = np.lexsort((mixed, -worths))
    chosen = np.zeros(len(numbers), np.bool_)
    chosen[order[:count]] = True
    return chosen

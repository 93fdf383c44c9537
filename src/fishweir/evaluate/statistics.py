"""Statistics of values by path. Workers count them, the driver merges them, and the planner uses them for grouping.

The number of distinct values is estimated from the smallest hashes (KMV sketch), the distribution from a sample. Both
can be merged, so the counters of micro-batches can be added in any order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fishweir.algebra.values import satisfies
from fishweir.evaluate.witnesses.path_tables import PathTable

SKETCH = 256
SAMPLE = 256
WORDS = 1024
EVERY_OPERATOR = {
    "=": 0.01, "range": 0.1, "<": 0.33, "<=": 0.33, ">": 0.33, ">=": 0.33, "!=": 0.99,
}  # fmt: skip
"""Default selectivities of comparisons before anything has been counted. Conditions on texts have their own."""


@dataclass(frozen=True, slots=True)
class PathStatistics:
    """Statistics of the values on one path of one source."""

    count: int = 0
    smallest: tuple[int, ...] = ()
    sample: tuple[str, ...] = ()
    words: tuple[tuple[str, int], ...] = ()
    """The most frequent words, with the number of values that contain each. Counted only if a condition uses words."""
    worded: int = 0
    """The number of values whose words were counted."""

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}

    @property
    def distinct(self) -> float:
        if len(self.smallest) < SKETCH:
            return max(1, len(self.smallest))
        return (SKETCH - 1) / (self.smallest[-1] / 2**64)

    def merge(self, other: PathStatistics) -> PathStatistics:
        """Merges two statistics. The newer sample displaces the older one, so the distribution follows the stream."""
        smallest = tuple(sorted({*self.smallest, *other.smallest})[:SKETCH])
        words = Counter(dict(self.words))
        words.update(dict(other.words))
        sample = (other.sample + self.sample)[:SAMPLE]
        common, worded = tuple(words.most_common(WORDS)), self.worded + other.worded
        return PathStatistics(self.count + other.count, smallest, sample, common, worded)

    def fraction(self, op: str, constants: NDArray[np.generic] | list[str]) -> float:
        """The share of sampled values that satisfy `value op constant`, averaged over the constants."""
        pairs = [(v, c) for c in list(constants)[:16] for v in self.sample]
        hits = sum(satisfies(v, op, c if isinstance(c, str) else float(c)) for v, c in pairs)  # type: ignore[arg-type]
        return (hits + 0.5) / (len(pairs) + 1)


def count_values(table: PathTable, words: bool = False) -> PathStatistics:
    """The statistics of one batch. The sample is spread over all rows."""
    smallest = np.unique(table.hashes)[:SKETCH]
    step = max(1, len(table) // 64)
    sample = table.texts.take(np.arange(0, len(table), step)[:64]).to_pylist()
    common = _count_words(table) if words else ()
    texts = tuple(str(value)[:200] for value in sample)
    return PathStatistics(len(table), tuple(int(h) for h in smallest), texts, common, len(table) if words else 0)


def _count_words(table: PathTable) -> tuple[tuple[str, int], ...]:
    dictionary, present = table.word_numbers
    counts = np.bincount(present % max(len(dictionary), 1), minlength=len(dictionary))
    top = np.argsort(-counts, kind="stable")[:WORDS]
    return tuple(zip(dictionary.take(top).to_pylist(), counts[top].tolist(), strict=True))


def statistics_from_json(raw: Mapping[str, Any]) -> PathStatistics:
    words = tuple((word, count) for word, count in raw["words"])
    return PathStatistics(raw["count"], tuple(raw["smallest"]), tuple(raw["sample"]), words, raw["worded"])


Statistics = dict[str, PathStatistics]
"""Statistics by source and path, with keys from `path_key`."""


def path_key(source: object, dotted_path: str) -> str:
    return f"{source}\t{dotted_path}"

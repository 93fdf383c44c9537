"""Chooses the kernel for a set of queries, based on a sample of tuples.

In: query regions, and a sample of tuples if there is one. Out: the index to use, and the reason. Shared: nothing.

Two kernels compete. The cost of the grid of bitmaps does not depend on what a tuple satisfies: it is an AND over the
bits of all queries, plus the bits to clear. The cost of the packed tree depends on the blocks that a tuple visits,
which are few if it satisfies few queries. First, the matches per tuple are estimated on some of the queries. If writing
them alone would cost the tree more than the total cost of the grid, the tree is not built. Otherwise it is built, and
its visits are counted on the sample. The weights are times measured on one machine. Only their ratios matter, and these
are the ratios of the instructions.

The kernels of Spatial Join CQ can be requested by name (papers/spatialjoin). Each does the work of one of these two
with more comparisons.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from fishweir.evaluate.select.boxes.grid import BUDGET, GridIndex, cells_within, words_of
from fishweir.evaluate.select.boxes.matches import Matches
from fishweir.evaluate.select.boxes.packed import PackedIndex
from fishweir.evaluate.select.boxes.regions import Boxes, Floats, key_floats, tuple_keys

SAMPLE = 256
QUERIES_TRIED = 4096

NS_PER_AXIS = 150.0
NS_PER_WORD = 0.3
NS_PER_CLEAR = 1.0
NS_PER_WORD_LISTED = 3.0
NS_PER_LISTED = 0.8
NS_PER_CODE = 25.0
NS_PER_BLOCK = 100.0
NS_PER_HIT = 10.0


class Index(Protocol):
    """The common interface of all kernels."""

    def match(self, values: npt.ArrayLike, room: int | None = None) -> Matches:
        """The satisfied queries of each tuple (rows x attributes, float64, NaN for NULL). With a given room, the result
        covers as many tuples as fit."""
        ...


@runtime_checkable
class HasDetail(Protocol):
    """A kernel that adds details to `explain`."""

    def detail(self, sample: Floats) -> str:
        """How the kernel would process a batch like this sample."""
        ...


KERNELS: dict[str, Callable[[Boxes], Index]] = {"grid": GridIndex, "packed": PackedIndex}
STORED: dict[str, Callable[[Mapping[str, Any]], Index]] = {"grid": GridIndex.read, "packed": PackedIndex.read}
"""Reads an index from its arrays instead of building it."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The strategy, and the estimates in nanoseconds per tuple on which the choice is based."""

    strategy: str
    boxes: Boxes
    budget: int
    tree: PackedIndex | None
    """The tree, if it was built for the comparison and won."""
    matches: float
    """The expected number of queries that a tuple satisfies."""
    grid_ns: float
    packed_ns: float

    @property
    def index(self) -> GridIndex | PackedIndex:
        return self.tree or GridIndex(self.boxes, self.budget)

    def __str__(self) -> str:
        packed = f"{self.packed_ns / 1000:.1f}"
        return (
            f"{self.strategy}: {self.matches:.2g} matches per tuple expected; "
            f"grid {self.grid_ns / 1000:.1f}, packed {packed} microseconds per tuple"
        )


def choose(boxes: Boxes, sample: npt.ArrayLike | None = None, budget: int = BUDGET) -> Choice:
    """The index that is expected to be faster."""
    values = sample_from_queries(boxes) if sample is None else np.asarray(sample, dtype=np.float64)[:SAMPLE]
    matches = expected_matches(boxes, values)
    grid_ns = grid_cost(boxes, matches, budget)
    packed_ns = NS_PER_CODE * len(boxes.used_attributes()) + NS_PER_HIT * matches
    if packed_ns < grid_ns:
        tree = PackedIndex(boxes)
        packed_ns += NS_PER_BLOCK * tree.blocks_visited(values)
        if packed_ns < grid_ns:
            return Choice("packed", boxes, budget, tree, matches, grid_ns, packed_ns)
    return Choice("grid", boxes, budget, None, matches, grid_ns, packed_ns)


def grid_cost(boxes: Boxes, matches: float, budget: int) -> float:
    attributes = len(boxes.used_attributes())
    clears = int(boxes.conditioned().sum()) / cells_within(budget, boxes.count, attributes)
    listing = NS_PER_WORD_LISTED * words_of(boxes.count) + NS_PER_LISTED * matches
    return grid_work(boxes.count, attributes) + NS_PER_CLEAR * clears + listing


def grid_work(queries: int, attributes: int) -> float:
    """The cost per tuple in the grid that does not depend on what the tuple satisfies."""
    return (NS_PER_AXIS + NS_PER_WORD * words_of(queries)) * attributes


def expected_matches(boxes: Boxes, values: Floats) -> float:
    """The matches per tuple, estimated from up to `QUERIES_TRIED` queries spread over the set."""
    if not len(values) or not boxes.count:
        return 0.0
    keys = tuple_keys(values, boxes.attributes)
    spread = slice(None, None, -(-boxes.count // QUERIES_TRIED))
    low, high = boxes.low[spread], boxes.high[spread]
    found = sum(int(((low <= row) & (row <= high)).all(axis=1).sum()) for row in keys)
    return found / len(keys) / len(low) * boxes.count


def sample_from_queries(boxes: Boxes) -> Floats:
    """A sample for use before any tuple has been seen: the values of each attribute are drawn independently from the
    constants of its queries."""
    random = np.random.default_rng(0)
    sample = np.full((SAMPLE, boxes.attributes), np.nan)
    satisfiable = ~boxes.empty()
    for attribute in boxes.used_attributes():
        bounded = satisfiable & boxes.conditioned()[:, attribute]
        ends = np.concatenate((boxes.low[bounded, attribute], boxes.high[bounded, attribute]))
        constants = key_floats(ends)
        finite = constants[np.isfinite(constants)]
        if len(finite):
            sample[:, attribute] = random.choice(finite, SAMPLE)
    return sample

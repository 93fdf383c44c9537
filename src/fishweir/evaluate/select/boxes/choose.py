"""Which kernel for a set of queries: by what is counted on a sample of tuples.

In: query regions, and a sample of tuples if there is one. Out: the index to use, and why. Shared: nothing.

Two kernels compete. The grid of bitmaps costs the same whatever a tuple satisfies: an and over all queries' bits,
and the bits to clear. The packed tree costs by the blocks that a tuple visits, which are few where it satisfies few
queries. Matches a tuple are estimated first, on some of the queries: if writing them alone costs the tree more than
the grid costs altogether, the tree is not even built. Else it is, and its visits are counted on the sample. The weights
are times measured on one machine; only their ratios matter, and these are those of the instructions.

The kernels of Spatial Join CQ can be asked for by name (papers/spatialjoin): each does the work of one of these two
with more comparisons.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

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
NS_PER_CODE = 100.0
NS_PER_BLOCK = 130.0
NS_PER_HIT = 12.0


class Index(Protocol):
    """What all kernels have in common."""

    def match(self, values: npt.ArrayLike, room: int | None = None) -> Matches:
        """The satisfied queries of each tuple (rows x attributes, float64, NaN for NULL); with a given room those of
        as many tuples as it is enough for."""
        ...


@runtime_checkable
class Detailed(Protocol):
    """A kernel that has something to add in `explain`."""

    def detail(self, sample: Floats) -> str:
        """What it would do with a batch like this sample."""
        ...


KERNELS: dict[str, Callable[[Boxes], Index]] = {"grid": GridIndex, "packed": PackedIndex}


@dataclass(frozen=True, slots=True)
class Choice:
    """The strategy, and the estimates in nanoseconds a tuple that decided."""

    strategy: str
    boxes: Boxes
    budget: int
    tree: PackedIndex | None
    """Where it was built to be weighed and has won."""
    matches: float
    """Expected number of satisfied queries of a tuple."""
    grid_ns: float
    packed_ns: float

    @property
    def index(self) -> Index:
        return self.tree or GridIndex(self.boxes, self.budget)

    def __str__(self) -> str:
        packed = f"{self.packed_ns / 1000:.1f}"
        return (
            f"{self.strategy}: {self.matches:.2g} matches a tuple expected; "
            f"grid {self.grid_ns / 1000:.1f}, packed {packed} microseconds a tuple"
        )


def choose(boxes: Boxes, sample: npt.ArrayLike | None = None, budget: int = BUDGET) -> Choice:
    """The index that is expected to be the faster one."""
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
    """What each tuple takes in the grid, whatever it satisfies."""
    return (NS_PER_AXIS + NS_PER_WORD * words_of(queries)) * attributes


def expected_matches(boxes: Boxes, values: Floats) -> float:
    """Matches a tuple, from up to `QUERIES_TRIED` queries spread over the set."""
    if not len(values) or not boxes.count:
        return 0.0
    keys = tuple_keys(values, boxes.attributes)
    spread = slice(None, None, -(-boxes.count // QUERIES_TRIED))
    low, high = boxes.low[spread], boxes.high[spread]
    found = sum(int(((low <= row) & (row <= high)).all(axis=1).sum()) for row in keys)
    return found / len(keys) / len(low) * boxes.count


def sample_from_queries(boxes: Boxes) -> Floats:
    """Where no tuple has been seen: each attribute's values as its queries' constants are, independently."""
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

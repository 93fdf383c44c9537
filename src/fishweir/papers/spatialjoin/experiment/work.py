"""Queries and tuples: the paper's random conditions, narrow ones, uniform and skewed tuples, real room sensors.

In: sizes. Out: a `Work`: a closed range per query and attribute, and the tuples. An open end is the neighbouring float,
so that all contestants compare alike; -inf to inf is no condition. All attributes lie in [0, 1].
Paper: Spatial Join CQ, sections 7.1 and 7.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from fishweir.evaluate.select.boxes import Boxes
from fishweir.papers.experiment.data import data_folder

Floats = npt.NDArray[np.float64]

CLIMATE = ("temperature", "humidity", "light1", "light2", "measurement", "node", "occupants", "activity")
MEASURED = 4
"""Number of CLIMATE's first attributes that are measured values. The others are place and time."""
NODE, OCCUPANTS = CLIMATE.index("node"), CLIMATE.index("occupants")


@dataclass(frozen=True)
class Work:
    """The input of all contestants."""

    name: str
    low: Floats
    high: Floats
    tuples: Floats
    data: str

    @cached_property
    def boxes(self) -> Boxes:
        return Boxes.from_ranges(self.low, self.high)

    @property
    def queries(self) -> int:
        return len(self.low)

    @property
    def attributes(self) -> int:
        return self.low.shape[1]

    def matches_per_tuple(self, tuples: int = 60) -> float:
        """The mean over an evenly spaced sample of the tuples, compared naively."""
        some = self.tuples[:: -(-len(self.tuples) // tuples)]
        found = sum(int(((self.low <= row) & (row <= self.high)).all(axis=1).sum()) for row in some)
        return found / len(some)

    def selective_first(self) -> list[int]:
        """Attributes by the share of the tuples that a query's range contains, on samples of both."""
        low, high = self.low[:: -(-self.queries // 1000)], self.high[:: -(-self.queries // 1000)]
        some = self.tuples[:200]
        held = [
            ((low[:, a, None] <= some[:, a]) & (some[:, a] <= high[:, a, None])).mean() for a in range(self.attributes)
        ]
        return [int(a) for a in np.argsort(held)]


def paper_work(
    queries: int, attributes: int, rpred: float, tuples: Floats, data: str = "uniform", name: str = "", seed: int = 1
) -> Work:
    """Random conditions on a share `rpred` of the attributes, as in section 7.1.

    Each condition has two constants from [0, 1]: a left-open, right-open or closed interval with equal probability, and
    each end with < or <=.
    """
    draw = np.random.default_rng(seed)
    chosen = round(rpred * attributes)
    which = np.argsort(draw.random((queries, attributes)), axis=1)[:, :chosen]
    ends = np.sort(draw.random((queries, chosen, 2)), axis=2)
    kind = draw.integers(0, 3, (queries, chosen))
    opened = draw.integers(0, 2, ends.shape).astype(bool)
    least = np.where(opened[:, :, 0], np.nextafter(ends[:, :, 0], 2), ends[:, :, 0])
    most = np.where(opened[:, :, 1], np.nextafter(ends[:, :, 1], -1), ends[:, :, 1])
    low, high = np.full((queries, attributes), -np.inf), np.full((queries, attributes), np.inf)
    np.put_along_axis(low, which, np.where(kind == 0, -np.inf, least), 1)
    np.put_along_axis(high, which, np.where(kind == 1, np.inf, most), 1)
    return Work(name or f"{queries:,} x {attributes}", low, high, tuples, data)


def narrow_work(queries: int, attributes: int, tuples: Floats, seed: int = 2) -> Work:
    """Closed ranges of at most a tenth of the domain on every attribute."""
    draw = np.random.default_rng(seed)
    low = draw.random((queries, attributes))
    high = low + 0.1 * draw.random((queries, attributes))
    return Work(f"narrow, {queries:,} x {attributes}, uniform", low, high, tuples, "uniform")


def narrow_climate_work(queries: int, climate: Climate, tuples: int, seed: int = 3) -> Work:
    """Ranges around a reading on the measured values; half of the queries select its node, a quarter its occupants."""
    draw = np.random.default_rng(seed)
    shape = (queries, len(CLIMATE))
    low, high = np.full(shape, -np.inf), np.full(shape, np.inf)
    watched = climate.values[draw.integers(0, len(climate.values), queries)]
    low[:, :MEASURED] = watched[:, :MEASURED] - 0.003 * draw.random((queries, MEASURED))
    high[:, :MEASURED] = watched[:, :MEASURED] + 0.003 * draw.random((queries, MEASURED))
    for attribute, share in ((NODE, 0.5), (OCCUPANTS, 0.25)):
        some = draw.random(queries) < share
        low[some, attribute] = high[some, attribute] = watched[some, attribute]
    rows = climate.sample(tuples, len(CLIMATE), seed)
    return Work(f"narrow, {queries:,} x {len(CLIMATE)}, room climate", low, high, rows, climate.source)


def uniform_tuples(count: int, attributes: int, seed: int = 11) -> Floats:
    return np.random.default_rng(seed).random((count, attributes))


def skewed_tuples(count: int, attributes: int, rskew: float, seed: int = 12) -> Floats:
    """Tuples of which a share `rskew` falls into a tenth of the domain (section 7.3, effects of distribution)."""
    draw = np.random.default_rng(seed)
    tuples = draw.random((count, attributes))
    inside = draw.random(count) < rskew
    tuples[inside] = 0.45 + 0.1 * tuples[inside]
    return tuples


@dataclass(frozen=True)
class Climate:
    """Room sensor readings in the order of time, scaled to [0, 1]."""

    values: Floats
    source: str

    def sample(self, count: int, attributes: int, seed: int = 13) -> Floats:
        """Consecutive readings from a random position."""
        start = int(np.random.default_rng(seed).integers(0, max(1, len(self.values) - count)))
        return np.ascontiguousarray(self.values[start : start + count, :attributes])


def load_climate() -> Climate:
    folder = data_folder("room_climate")
    if folder is None:
        return Climate(scaled(generated_climate()), "generated readings of the shape of room_climate")
    table = pq.read_table(folder / "readings.parquet", columns=list(CLIMATE))
    columns: list[Any] = [table[name].to_numpy() for name in CLIMATE]
    return Climate(scaled(np.stack(columns, axis=1).astype(np.float64)), "real readings of room_climate")


def scaled(values: Floats) -> Floats:
    least, most = values.min(axis=0), values.max(axis=0)
    return (values - least) / np.where(most > least, most - least, 1.0)


def generated_climate(count: int = 60_000, seed: int = 14) -> Floats:
    """Slow changes with small noise, in the sensors' steps; nodes in turn, the rest constant for long."""
    draw = np.random.default_rng(seed)
    time = np.arange(count)[:, None]
    waves = np.sin(time / draw.uniform(2_000, 9_000, MEASURED) + draw.uniform(0, 6, MEASURED))
    measured = np.round(100 * (1 + waves) + draw.normal(0, 4, (count, MEASURED)))
    hours = np.arange(count) // 1_000
    occupants, activity = (draw.integers(0, most, hours[-1] + 1)[hours] for most in (3, 5))
    said = np.stack((hours, np.arange(count) % 5, occupants, activity), axis=1)
    return np.concatenate((measured, said), axis=1).astype(np.float64)

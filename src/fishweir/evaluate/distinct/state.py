"""The state of `distinct`: the documents that a micro-batch has selected, and those that have passed so far.

*Candidates* are the documents that queries select from a batch, with everything that a result row needs. The probe of
the same micro-batch decides which of them pass. After that they are not needed any more. For those that passed, the
probe keeps *firsts*: a code for query and key, and the time. Firsts are sorted by code and looked up by binary search.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fishweir.evaluate.arrays import Ints, expand

Hashes = NDArray[np.uint64]
Times = NDArray[np.float64]


@dataclass(frozen=True)
class Firsts:
    """Documents that passed: the query and key (`codes`, sorted), the time, the time until which they matter, and the
    class of queries, which determines the watermarks that decide this."""

    codes: Hashes
    times: Times
    ends: Times
    classes: Hashes

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, chosen: Any) -> Firsts:
        return Firsts(*(getattr(self, field.name)[chosen] for field in fields(self)))

    def of(self, codes: Hashes) -> Firsts:
        """The firsts with one of some distinct codes."""
        lo, hi = (np.searchsorted(self.codes, codes, side) for side in ("left", "right"))
        _, positions = expand(lo.astype(np.int64), hi.astype(np.int64))
        return self.take(positions)


def joined_firsts(some: Sequence[Firsts]) -> Firsts:
    if len(some) == 1:
        return some[0]
    whole = Firsts(*(np.concatenate([getattr(one, field.name) for one in some]) for field in fields(Firsts)))
    return whole.take(np.argsort(whole.codes, kind="stable"))


@dataclass(frozen=True)
class Candidates:
    """Each row is a document with the nodes that a group's queries output. `codes` are those of the key alone. `keyed`
    is 0 for a document without a key. The queries of row i are `queries[starts[i]:starts[i + 1]]`."""

    streams: Ints
    numbers: Ints
    times: Times
    arrivals: Times
    codes: Hashes
    keyed: NDArray[np.int8]
    seconds: Times
    classes: Hashes
    node_starts: Ints
    nodes: Ints
    starts: Ints
    queries: Ints

    def __len__(self) -> int:
        return len(self.numbers)


_OFFSETS = {"node_starts": "nodes", "starts": "queries"}


def joined_candidates(some: Sequence[Candidates]) -> Candidates:
    if len(some) == 1:
        return some[0]
    columns = {}
    for name in (field.name for field in fields(Candidates)):
        parts = [getattr(one, name) for one in some]
        if name in _OFFSETS:
            ends = np.cumsum([0, *(len(getattr(one, _OFFSETS[name])) for one in some)])
            parts = [np.zeros(1, np.int64), *(part[1:] + end for part, end in zip(parts, ends, strict=False))]
        columns[name] = np.concatenate(parts)
    return Candidates(**columns)


@dataclass(frozen=True)
class DistinctState:
    """The candidates and firsts of some documents."""

    candidates: Candidates
    firsts: Firsts

    def __len__(self) -> int:
        return len(self.candidates) + len(self.firsts)

    @property
    def newest(self) -> float:
        return float(max(one.times.max(initial=-np.inf) for one in (self.candidates, self.firsts)))

    def arrays(self) -> dict[str, Any]:
        parts = (("candidates", self.candidates), ("firsts", self.firsts))
        return {f"{name}.{field.name}": getattr(part, field.name) for name, part in parts for field in fields(part)}

    @cached_property
    def ends_by_class(self) -> dict[int, Times]:
        """By class, the sorted times until which firsts matter."""
        classes = self.firsts.classes
        return {int(one): np.sort(self.firsts.ends[classes == one]) for one in np.unique(classes)}


def state_from_arrays(arrays: Mapping[str, Any]) -> DistinctState:
    own: dict[str, dict[str, Any]] = {"candidates": {}, "firsts": {}}
    for name, array in arrays.items():
        part, _, column = name.partition(".")
        own[part][column] = np.asarray(array)
    return DistinctState(Candidates(**own["candidates"]), Firsts(**own["firsts"]))


def no_candidates() -> Candidates:
    none, start = np.empty(0, np.int64), np.zeros(1, np.int64)
    hashes, times = np.empty(0, np.uint64), np.empty(0)
    return Candidates(
        none, none, times, times, hashes, np.empty(0, np.int8), times, hashes, start, none, start, none
    )  # fmt: skip


def no_firsts() -> Firsts:
    return Firsts(np.empty(0, np.uint64), np.empty(0), np.empty(0), np.empty(0, np.uint64))

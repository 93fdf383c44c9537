"""The join state: immutable runs, each with the witnesses of some documents, sorted for lookup by value.

In: the path tables of a batch of documents. Out: a Run. Its cells hold, for each document and variable, the hashes of
the values and the nodes from the pattern's root down. Its index maps (variable, value) to documents. The cells serve
plain joins. A run also holds rows of the sides of all other joins (rows/), sorted by their anchor's value. A run is
written once, mapped by every worker that probes it, merged with others, and dropped when the longest window has passed
it (ARCHITECTURE.md, "Join state").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fishweir.evaluate.arrays import Ints, by_key, expand
from fishweir.evaluate.group import origin_of
from fishweir.evaluate.join.hashes import Hashes, combine, hash_order
from fishweir.evaluate.join.rows.row_kernels import take_lists
from fishweir.evaluate.join.variables import Variable
from fishweir.evaluate.outline import Outline
from fishweir.evaluate.witnesses.path_tables import Path, PathTable

FEW_CLASSES = 4


@dataclass(frozen=True)
class SideRows:
    """Rows of the sides of joins that equal values alone do not decide, sorted by `keys`: (class, anchor's value).

    A row is one embedding of a side's pattern in a document, with a value for each edge (a hash, or the bits of a
    number) and the queries whose constants it satisfies; an empty list stands for all. `classes` are JoinTable.keys.
    """

    keys: Hashes
    documents: Ints
    classes: Hashes
    node_starts: Ints
    nodes: Ints
    value_starts: Ints
    values: Hashes
    member_starts: Ints
    members: Ints

    def __len__(self) -> int:
        return len(self.keys)

    def take(self, rows: Ints) -> SideRows:
        parts: dict[str, Any] = {name: getattr(self, name)[rows] for name in ("keys", "documents", "classes")}
        for name in ("node", "value", "member"):
            starts, values = getattr(self, f"{name}_starts"), getattr(self, f"{name}s")
            taken = take_lists(starts, values, rows) if len(values) else (np.zeros(len(rows) + 1, np.int64), values)
            parts[f"{name}_starts"], parts[f"{name}s"] = taken
        return SideRows(**parts)

    def with_members(self, kept: NDArray[np.bool_]) -> SideRows:
        """The rows with only some entries of the lists of queries, without rows whose list becomes empty."""
        counts = np.diff(self.member_starts)
        owner = np.repeat(np.arange(len(self)), counts)[kept]
        left = np.bincount(owner, minlength=len(self))
        starts = np.append(0, np.cumsum(left)).astype(np.int64)
        rows = replace(self, member_starts=starts, members=self.members[kept])
        return rows.take(np.flatnonzero((left > 0) | (counts == 0)))

    def sorted(self) -> SideRows:
        if (self.keys[1:] >= self.keys[:-1]).all():
            return self
        return self.take(hash_order(self.keys))

    @cached_property
    def _by_class(self) -> tuple[dict[int, int], Ints, Ints]:
        order = np.argsort(self.classes, kind="stable")
        known, starts = np.unique(self.classes[order], return_index=True)
        return {int(key): i for i, key in enumerate(known)}, np.append(starts, len(order)), order

    @cached_property
    def _asked(self) -> dict[int, Ints]:
        """The rows of the classes that were asked for first."""
        return {}

    def of_class(self, key: int) -> Ints:
        """The rows of a class, in stored order. They are only sorted by class if many classes are asked for."""
        if key in self._asked:
            return self._asked[key]
        if len(self._asked) < FEW_CLASSES:
            self._asked[key] = np.flatnonzero(self.classes == np.uint64(key))
            return self._asked[key]
        known, starts, order = self._by_class
        place = known.get(key)
        return order[:0] if place is None else order[starts[place] : starts[place + 1]]


def no_rows() -> SideRows:
    none, empty, zero = np.empty(0, np.uint64), np.empty(0, np.int64), np.zeros(1, np.int64)
    return SideRows(none, empty, none, zero, empty, zero, none, zero, empty)


def concatenated_rows(parts: Sequence[SideRows], shifts: Sequence[int]) -> SideRows:
    """Merges several parts, with the documents of each moved by its shift."""
    if len(parts) < 2 and not any(shifts):
        return parts[0] if parts else no_rows()
    found: dict[str, Any] = {name: np.concatenate([getattr(p, name) for p in parts]) for name in ("keys", "classes")}
    found["documents"] = np.concatenate([p.documents + shift for p, shift in zip(parts, shifts, strict=True)])
    for name in ("node", "value", "member"):
        found[f"{name}s"] = np.concatenate([getattr(p, f"{name}s") for p in parts])
        found[f"{name}_starts"] = one_after_another([getattr(p, f"{name}_starts") for p in parts])
    return SideRows(**found)


def one_after_another(parts: Sequence[Ints]) -> Ints:
    """The starts of the lists of several parts, concatenated. Each part begins with 0."""
    shifted, end = [parts[0]], int(parts[0][-1])
    for starts in parts[1:]:
        shifted.append(starts[1:] + end)
        end += int(starts[-1])
    return np.concatenate(shifted)


@dataclass(frozen=True)
class Versions:
    """Entries of changing files: rows that were inserted, updated or deleted, by the hash of their key."""

    streams: Ints
    numbers: Ints
    arrivals: NDArray[np.float64]
    keys: Hashes

    def __len__(self) -> int:
        return len(self.numbers)


def no_versions() -> Versions:
    none = np.empty(0, np.int64)
    return Versions(none, none, np.empty(0), np.empty(0, np.uint64))


@dataclass(frozen=True)
class Run:
    """Documents by their position in the run. Cell (document, variable) is document * variables + variable."""

    streams: Ints
    numbers: Ints
    times: NDArray[np.float64]
    since: Ints
    """The version of the catalog that each document's micro-batch ran with; negative for documents from before a
    handover, which few queries see (engine/handover.py)."""
    arrivals: NDArray[np.float64]
    origins: Ints
    """The identity of each document: that of another one if it was passed on by a published query."""
    variables: Hashes
    cells: Ints
    values: Hashes
    node_starts: Ints
    nodes: Ints
    keys: Hashes
    documents: Ints
    rows: SideRows
    versions: Versions

    def __len__(self) -> int:
        return len(self.streams)

    @cached_property
    def views(self) -> dict[int, Any]:
        """Data that probes have computed from its rows, by class (rows/row_views.py)."""
        return {}

    @cached_property
    def passed_on(self) -> bool:
        """Whether some of its documents are in other streams too."""
        return bool((self.origins != origin_of(self.streams, self.numbers)).any())

    @cached_property
    def newest(self) -> float:
        return float(self.times.max(initial=-np.inf))

    @cached_property
    def times_by_stream(self) -> dict[int, NDArray[np.float64]]:
        """Sorted times of each stream. Retention reads them in every micro-batch, so they are computed once."""
        return {stream: _ascending(times) for stream, times in by_key(self.streams, self.times).items()}

    @property
    def outline(self) -> Outline | None:
        times = self.times_by_stream.items()
        return None if len(self.versions) else Outline({stream: float(own[-1]) for stream, own in times})

    @cached_property
    def counted_times(self) -> dict[int, NDArray[np.float64]]:
        """The same for the documents that windows of rows count: not those from before a handover (`since` < 0)."""
        counted = self.since >= 0
        if counted.all():
            return self.times_by_stream
        streams = np.unique(self.streams[counted]).tolist()
        return {stream: np.sort(self.times[counted & (self.streams == stream)]) for stream in streams}

    @cached_property
    def oldest(self) -> float:
        return float(self.times.min(initial=np.inf))

    def has_listed(self, entries: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Mask of the documents that have rows with some of these entries in their lists of queries."""
        found = np.zeros(len(self), np.bool_)
        found[np.repeat(self.rows.documents, np.diff(self.rows.member_starts))[entries]] = True
        return found

    def arrays(self) -> dict[str, Any]:
        """All arrays by name. Names of arrays of a part are prefixed with the part's name."""
        arrays = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in _PARTS}
        for name, part in _PARTS.items():
            arrays |= {f"{name}/{f.name}": getattr(getattr(self, name), f.name) for f in fields(part)}
        return arrays

    def columns(self, wanted: Hashes) -> Ints:
        """The position of each variable among the run's own, -1 if the run does not have it."""
        place = {int(key): i for i, key in enumerate(self.variables)}
        return np.array([place.get(int(key), -1) for key in wanted], dtype=np.int64)


def _ascending(times: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sorted times. Most are in order, and checking this takes a tenth of the time of sorting."""
    return times if (times[1:] >= times[:-1]).all() else np.sort(times)


def build_run(
    streams: Ints,
    numbers: Ints,
    times: NDArray[np.float64],
    since: int | Sequence[int] | Ints,
    variables: Mapping[Variable, bool],
    witnesses: Mapping[Path, PathTable],
    rows: SideRows,
    arrivals: NDArray[np.float64],
    versions: Versions,
    origins: Sequence[int] | Ints = (),
) -> Run:
    """The run of one batch, with its rows as given. `variables` are those of all of these documents' sources, each with
    a flag: whether its values are compared."""
    own = origin_of(streams, numbers)
    columns: list[Any] = [
        streams,
        numbers,
        times,
        np.full(len(numbers), since, np.int64),
        arrivals,
        np.where(np.array(origins) < 0, own, origins) if len(origins) else own,
        *_cells(len(numbers), variables, witnesses),
        rows,
        versions,
    ]
    return Run(*columns)


def _cells(size: int, variables: Mapping[Variable, bool], witnesses: Mapping[Path, PathTable]) -> tuple[Any, ...]:
    """The cells of a run of a number of documents, with their index."""
    keys = np.array([variable.key for variable in variables], dtype=np.uint64)
    if not len(keys):
        none, zero = np.empty(0, np.int64), np.zeros(1, np.int64)
        return keys, zero, keys, zero, none, keys, none
    places: list[Ints] = []
    hashes: list[Hashes] = []
    lengths: list[Ints] = []
    nodes: list[Ints] = []
    index: list[Hashes] = []
    holders: list[Ints] = []
    for place, (variable, compared) in enumerate(variables.items()):
        table = witnesses.get(variable.path)
        if table is None:
            continue
        table = table.first if variable.columns else table
        own = table.hashes if compared else np.zeros(len(table), np.uint64)
        places.append(table.documents * len(keys) + place)
        hashes.append(own)
        lengths.append(np.full(len(table), table.nodes.shape[1], np.int64))
        nodes.append(table.nodes.ravel())
        if compared:
            index.append(combine(variable.key, own))
            holders.append(table.documents)
    cell, values, length, flat = (
        _joined(parts, kind)
        for parts, kind in ((places, np.int64), (hashes, np.uint64), (lengths, np.int64), (nodes, np.int64))
    )
    order = np.argsort(cell, kind="stable")
    starts = np.append(0, np.cumsum(length))[:-1]
    _, at = expand(starts[order], starts[order] + length[order])
    looked_up, documents = _joined(index, np.uint64), _joined(holders, np.int64)
    by_key = np.argsort(looked_up, kind="stable")
    return (
        keys,
        np.searchsorted(cell[order], np.arange(size * len(keys) + 1)),
        values[order],
        np.append(0, np.cumsum(length[order])).astype(np.int64),
        flat[at],
        looked_up[by_key],
        documents[by_key],
    )


def _joined(parts: list[Any], kind: Any) -> Any:
    return np.concatenate(parts).astype(kind) if parts else np.empty(0, kind)


_PARTS: dict[str, Any] = {"rows": SideRows, "versions": Versions}


def run_from_arrays(arrays: Mapping[str, Any]) -> Run:
    parts: dict[str, Any] = {
        name: part(**{f.name: np.asarray(arrays[f"{name}/{f.name}"]) for f in fields(part)})
        for name, part in _PARTS.items()
    }
    own: dict[str, Any] = {f.name: np.asarray(arrays[f.name]) for f in fields(Run) if f.name not in _PARTS}
    return Run(**own, **parts)

"""The state of annotation joins: items of windows in immutable runs, sorted by time, stream and number.

In: the path tables of a batch of items, and which sides (query and role) want each. Out: Items. Its cells hold, for
each item and variable (a path and what of its values is compared), the values, each a sorted list of *features*: the
hash of a text, the bits of a number, the hashes of the words of a text or of the links in it. An index leads from a
feature to the items that have it, another one from a side to its items. The items that a micro-batch is to annotate
have the same form and are not retained. Runs are merged as those of other joins are; a merge leaves out items that no
window can hold any more: older than its seconds, or with so many newer ones in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fishweir.algebra.normal import dotted
from fishweir.algebra.texts import links, same_link
from fishweir.evaluate.arrays import Ints, expand
from fishweir.evaluate.join.state import Hashes, combine
from fishweir.evaluate.join.variables import key_of
from fishweir.evaluate.witnesses.path_tables import Path, PathTable, hash_texts

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Feature:
    """What of the values at a path is compared."""

    path: Path
    kind: str

    @cached_property
    def key(self) -> int:
        return key_of(f"{self.kind}\t{dotted(self.path)}")


@dataclass(frozen=True)
class Items:
    """Cell (item, variable) is item * variables + variable: a range of values, each a range of features."""

    streams: Ints
    numbers: Ints
    times: Floats
    arrivals: Floats
    variables: Hashes
    cells: Ints
    feature_starts: Ints
    features: Hashes
    member_starts: Ints
    members: Ints
    keys: Hashes
    """(variable, feature) of the variables that are looked up, sorted, and `holders`, the item of each."""
    holders: Ints
    sides: Ints
    """The distinct sides in order, and `entries`, sorted: (place of the side, item)."""
    entries: Ints

    def __len__(self) -> int:
        return len(self.streams)

    @property
    def newest(self) -> float:
        return float(self.times.max(initial=-np.inf))

    def arrays(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @cached_property
    def places(self) -> dict[int, int]:
        return {int(key): i for i, key in enumerate(self.variables)}

    def values_of(self, key: int, rows: Ints) -> tuple[Ints, Ints]:
        """Where the values of a variable begin and end, for some items."""
        place = self.places.get(key)
        if place is None:
            return np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
        cell = rows * len(self.variables) + place
        return self.cells[cell], self.cells[cell + 1]

    def place_of(self, sides: Ints) -> Ints:
        """The place of each side, -1 where no item has it."""
        return place_of(self.sides, sides)


def place_of(ordered: Ints, keys: Ints) -> Ints:
    """The place of each key in an ordered list, -1 where it is not there."""
    if not len(ordered):
        return np.full(len(keys), -1, np.int64)
    at = np.minimum(np.searchsorted(ordered, keys), len(ordered) - 1)
    return np.where(ordered[at] == keys, at, -1)


def no_items() -> Items:
    none, empty, zero = np.empty(0, np.uint64), np.empty(0, np.int64), np.zeros(1, np.int64)
    times = np.empty(0, np.float64)
    return Items(empty, empty, times, times, none, zero, zero, none, zero, empty, none, empty, empty, empty)


def build_items(
    stream: int,
    numbers: Ints,
    times: Floats,
    arrivals: Floats,
    documents: Ints,
    members: Ints,
    variables: Sequence[Feature],
    indexed: Hashes,
    witnesses: Mapping[Path, PathTable],
) -> Items:
    """The items of a batch of one stream that some side wants: `documents` by place in the batch, `members` beside."""
    order = np.unique(np.stack([documents, members], 1), axis=0) if len(members) else np.empty((0, 2), np.int64)
    chosen, starts = np.unique(order[:, 0], return_index=True)
    place = np.full(len(numbers), -1, np.int64)
    place[chosen] = np.arange(len(chosen))
    cells, lengths, features = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty(0, np.uint64)]
    for i, variable in enumerate(variables):
        table = witnesses.get(variable.path)
        if table is None:
            continue
        own, found = KINDS[variable.kind](table)
        rows = np.flatnonzero(place[table.documents] >= 0)
        ends = np.cumsum(own)
        _, at = expand(ends[rows] - own[rows], ends[rows])
        cells.append(place[table.documents[rows]] * len(variables) + i)
        lengths.append(own[rows])
        features.append(found[at])
    cell, length, flat = np.concatenate(cells), np.concatenate(lengths), np.concatenate(features)
    by_cell = np.argsort(cell, kind="stable")
    ends = np.cumsum(length)
    _, at = expand((ends - length)[by_cell], ends[by_cell])
    size = len(chosen) * len(variables)
    items = replace(
        no_items(),
        streams=np.full(len(chosen), stream, np.int64),
        numbers=numbers[chosen],
        times=times[chosen],
        arrivals=arrivals[chosen],
        variables=np.array([v.key for v in variables], np.uint64),
        cells=np.searchsorted(cell[by_cell], np.arange(size + 1)).astype(np.int64),
        feature_starts=np.append(0, np.cumsum(length[by_cell])).astype(np.int64),
        features=flat[at],
        member_starts=np.append(starts, len(order)).astype(np.int64),
        members=order[:, 1],
    )
    return merge_items([items], items.variables, indexed)


def merge_items(
    parts: Sequence[Items], variables: Hashes, indexed: Hashes, keep: Callable[[Items], NDArray[np.bool_]] | None = None
) -> Items:
    """One run of several, sorted, with these variables; `keep` says which members are still wanted."""
    whole = _concatenated([_arranged(part, np.arange(len(part)), variables) for part in parts], variables)
    order = np.lexsort((whole.numbers, whole.streams, whole.times))
    whole = _with_sides(_arranged(whole, order, variables))
    if keep is not None:
        wanted = keep(whole)
        owner = np.repeat(np.arange(len(whole)), np.diff(whole.member_starts))[wanted]
        starts = np.searchsorted(owner, np.arange(len(whole) + 1)).astype(np.int64)
        whole = replace(whole, member_starts=starts, members=whole.members[wanted])
        whole = _with_sides(_arranged(whole, np.flatnonzero(np.diff(starts)), variables))
    return _with_index(whole, indexed)


def some_items(items: Items, chosen: NDArray[np.bool_], indexed: Hashes) -> Items:
    if chosen.all():
        return items
    return _with_index(_with_sides(_arranged(items, np.flatnonzero(chosen), items.variables)), indexed)


def _arranged(items: Items, rows: Ints, variables: Hashes) -> Items:
    """Some items in some order, with some variables; without the indexes."""
    place = np.array([items.places.get(int(key), -1) for key in variables], dtype=np.int64)
    cell = (rows[:, None] * len(items.variables) + place[None, :]).ravel()
    there = np.tile(place >= 0, len(rows))
    lo, hi = (np.where(there, items.cells[np.where(there, cell + i, 0)], 0) for i in (0, 1))
    _, values = expand(lo, hi)
    _, features = expand(items.feature_starts[values], items.feature_starts[values + 1])
    _, members = expand(items.member_starts[rows], items.member_starts[rows + 1])
    return replace(
        no_items(),
        streams=items.streams[rows],
        numbers=items.numbers[rows],
        times=items.times[rows],
        arrivals=items.arrivals[rows],
        variables=variables,
        cells=_starts(hi - lo),
        feature_starts=_starts(np.diff(items.feature_starts)[values]),
        features=items.features[features],
        member_starts=_starts(np.diff(items.member_starts)[rows]),
        members=items.members[members],
    )


def _starts(lengths: Ints) -> Ints:
    return np.append(0, np.cumsum(lengths)).astype(np.int64)


def _concatenated(parts: Sequence[Items], variables: Hashes) -> Items:
    if not parts:
        return replace(no_items(), variables=variables)
    flat: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("streams", "numbers", "times", "arrivals", "features", "members")
    }
    starts: dict[str, Any] = {
        name: _starts(np.concatenate([np.diff(getattr(part, name)) for part in parts]))
        for name in ("cells", "feature_starts", "member_starts")
    }
    return replace(no_items(), variables=variables, **flat, **starts)


def _with_sides(items: Items) -> Items:
    sides, place = np.unique(items.members, return_inverse=True)
    owner = np.repeat(np.arange(len(items)), np.diff(items.member_starts))
    return replace(items, sides=sides, entries=np.sort(place.astype(np.int64) << 32 | owner))


def _with_index(items: Items, indexed: Hashes) -> Items:
    width = max(len(items.variables), 1)
    of_value = np.repeat(np.arange(len(items.cells) - 1), np.diff(items.cells))
    of_feature = np.repeat(of_value, np.diff(items.feature_starts))
    looked_up = np.isin(items.variables, indexed)
    rows = np.flatnonzero(looked_up[of_feature % width]) if len(of_feature) else of_feature
    keys = combine(items.variables[of_feature[rows] % width], items.features[rows]) if len(rows) else items.keys
    order = np.argsort(keys, kind="stable")
    return replace(items, keys=keys[order], holders=(of_feature[rows] // width)[order])


def items_from_arrays(arrays: Mapping[str, Any]) -> Items:
    return Items(**{f.name: np.asarray(arrays[f.name]) for f in fields(Items)})


# What is kept of a value: for each row of a path table how many features, and the features.


def _texts(table: PathTable) -> tuple[Ints, Hashes]:
    return np.ones(len(table), np.int64), table.hashes


def _numbers(table: PathTable) -> tuple[Ints, Hashes]:
    return np.ones(len(table), np.int64), np.asarray(table.numbers, np.float64).view(np.uint64)


def _words(table: PathTable) -> tuple[Ints, Hashes]:
    rows, texts, hashes = table.words
    some = pa.compute.not_equal(texts, "").to_numpy(zero_copy_only=False)
    rows, hashes = rows[some], hashes[some]
    order = np.lexsort((hashes, rows))
    return np.bincount(rows, minlength=len(table)).astype(np.int64), hashes[order]


def _from_texts(features: Callable[[str], set[str]]) -> Callable[[PathTable], tuple[Ints, Hashes]]:
    def kept(table: PathTable) -> tuple[Ints, Hashes]:
        found = [sorted(features(text)) for text in table.texts.to_pylist()]
        flat = hash_texts(pa.array([one for some in found for one in some], pa.large_string()))
        lengths = np.array([len(some) for some in found], dtype=np.int64)
        order = np.lexsort((flat, np.repeat(np.arange(len(found)), lengths)))
        return lengths, flat[order]

    return kept


def referenced(text: str) -> set[str]:
    """What a text `references`: its links and their hosts."""
    return {target for link in links(text) for target in (link, link.partition("/")[0])}


def extended(text: str) -> set[str]:
    """What a text `extends`: hosts and domains of its links, and the URLs above them."""
    found: set[str] = set()
    for link in links(text):
        labels = link.partition("/")[0].split(".")
        found |= {".".join(labels[i:]) for i in range(len(labels))}
        ends = [i for i, c in enumerate(link) if c in "/?#"]
        found |= {part for part in (link, *(link[:end] for end in ends)) if "/" in part}
    return found


KINDS: dict[str, Callable[[PathTable], tuple[Ints, Hashes]]] = {
    "text": _texts, "number": _numbers, "words": _words,
    "links": _from_texts(lambda text: set(links(text))), "references": _from_texts(referenced),
    "extends": _from_texts(extended), "link": _from_texts(lambda text: {same_link(text)}),
}  # fmt: skip

"""Counters of the walk over a stream's documents. Workers count, the driver adds up, and users see the totals.

`explain` shows how many nodes in how many documents reached a query's paths. `status` shows how much was walked. These
counters count nodes. The statistics of values count the embeddings of a path's steps, and only if a condition reads the
values.

A document may reach a hundred thousand paths, so counts are sent and added as arrays. Each path is identified by the
hash of its text.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from fishweir.algebra.nodes import Step
from fishweir.evaluate.witnesses.path_tables import Path, hash_texts

Counts = NDArray[np.int64]
"""Rows of (path, count, count) with ascending paths. The counts are the nodes that reached the path's end and the
documents that contain such a node, or the elements and bytes below these nodes."""


def path_keys(paths: Iterable[Path]) -> list[int]:
    """Paths as numbers that are the same in every process. Paths that the automaton treats as equal have equal keys."""
    texts = ["".join(map(_shown, path)) for path in paths]
    return hash_texts(pa.array(texts, pa.large_string())).view(np.int64).tolist()


@lru_cache(maxsize=64)
def column_keys(paths: tuple[Path, ...]) -> list[int]:
    """The keys of the columns of tuples, cached because they are few and recur in every batch."""
    return path_keys(paths)


def _shown(step: Step) -> str:
    axis, space = "//" if step.is_deep else "/", "*" if step.namespace is None else step.namespace
    return f"{axis}{'@' if step.is_attribute else ''}{{{space}}}{step.name}"


def to_counts(keys: ArrayLike, one: ArrayLike, other: ArrayLike) -> Counts:
    counts = np.array((keys, one, other), np.int64).T
    return counts[np.argsort(counts[:, 0])]


def added(one: Counts, other: Counts) -> Counts:
    """The sums of two counts, which mostly cover the same paths."""
    if not len(one) or not len(other):
        return one if len(one) else other
    if len(one) == len(other) and (one[:, 0] == other[:, 0]).all():
        both = one + other
        both[:, 0] = one[:, 0]
        return both
    both = np.concatenate((one, other))
    both = both[np.argsort(both[:, 0], kind="stable")]
    first = np.flatnonzero(np.append(True, both[1:, 0] != both[:-1, 0]))
    return np.column_stack((both[first, 0], np.add.reduceat(both[:, 1:], first)))


@dataclass
class StreamCounters:
    """The counters of one stream. `elements` and `bytes` are the totals over the documents. `skipped` is the number of
    elements in subtrees that no path enters. The tokens of a pattern are everything below the nodes of its path."""

    documents: int = 0
    elements: int = 0
    skipped: int = 0
    paths: int = 0
    """The number of distinct paths in the last walk."""
    reached: Counts = field(default_factory=lambda: np.zeros((0, 3), np.int64))
    below: Counts = field(default_factory=lambda: np.zeros((0, 3), np.int64))
    bytes: int = 0

    def __reduce__(self) -> tuple[Any, ...]:
        """As bytes: counters are sent with every micro-batch, and an array takes several times as long."""
        return _counters, tuple(v.tobytes() if isinstance(v, np.ndarray) else v for v in vars(self).values())

    def add(self, other: StreamCounters) -> None:
        self.documents += other.documents
        self.elements += other.elements
        self.skipped += other.skipped
        self.paths = other.paths
        self.bytes += other.bytes
        self.reached = added(self.reached, other.reached)
        self.below = added(self.below, other.below)

    def of(self, path: Path) -> tuple[int, int]:
        """The number of nodes that reached a path, and the number of documents that contain them."""
        return _line(self.reached, path)

    def below_nodes(self, path: Path) -> tuple[int, int]:
        """The total number of elements below the nodes of a path, and the total bytes of these nodes."""
        return _line(self.below, path)

    def to_json(self) -> dict[str, Any]:
        return vars(self) | {name: base64.b64encode(getattr(self, name).tobytes()).decode() for name in _ARRAYS}

    @classmethod
    def from_json(cls, raw: dict[str, Any]) -> StreamCounters:
        texts = {name: base64.b64decode(raw.get(name, "")) for name in _ARRAYS}
        return cls(**(raw | {name: np.frombuffer(text, np.int64).reshape(-1, 3) for name, text in texts.items()}))


_ARRAYS = ("reached", "below")


def _counters(*values: Any) -> StreamCounters:
    rows: list[Any] = [np.frombuffer(v, np.int64).reshape(-1, 3) if isinstance(v, bytes) else v for v in values]
    return StreamCounters(*rows)


def _line(counts: Counts, path: Path) -> tuple[int, int]:
    (key,) = path_keys([path])
    at = int(np.searchsorted(counts[:, 0], key))
    if at == len(counts) or counts[at, 0] != key:
        return 0, 0
    return int(counts[at, 1]), int(counts[at, 2])

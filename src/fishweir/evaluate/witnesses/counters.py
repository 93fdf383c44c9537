"""What the walk of a stream's documents counted: counted on the workers, added up on the driver, shown to the user.

`explain` shows how many nodes of how many documents reached a query's paths, `status` how much was walked. They count
nodes; the statistics of values count the embeddings of a path's steps, and only where a condition reads the values.

A document may reach a hundred thousand paths, so they travel and are added as arrays, each under the hash of its text.
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
"""Lines of (path, a count, another), the paths ascending: nodes that reached its end and documents that had one; or the
elements and bytes below these nodes."""


def path_keys(paths: Iterable[Path]) -> list[int]:
    """Paths as numbers, in every process the same; equal to the automaton are equal here."""
    texts = ["".join(map(_shown, path)) for path in paths]
    return hash_texts(pa.array(texts, pa.large_string())).view(np.int64).tolist()


@lru_cache(maxsize=64)
def column_keys(paths: tuple[Path, ...]) -> list[int]:
    """The same of the columns of tuples, which are few and come again with every batch."""
    return path_keys(paths)


def _shown(step: Step) -> str:
    axis, space = "//" if step.is_deep else "/", "*" if step.namespace is None else step.namespace
    return f"{axis}{'@' if step.is_attribute else ''}{{{space}}}{step.name}"


def to_counts(keys: ArrayLike, one: ArrayLike, other: ArrayLike) -> Counts:
    counts = np.column_stack([np.asarray(column, np.int64) for column in (keys, one, other)])
    return counts[np.argsort(counts[:, 0])]


def added(one: Counts, other: Counts) -> Counts:
    """The counts of both; mostly they are of the same paths."""
    if not len(one) or not len(other):
        return one if len(one) else other
    if np.array_equal(one[:, 0], other[:, 0]):
        return np.column_stack((one[:, 0], one[:, 1:] + other[:, 1:]))
    both = np.concatenate((one, other))
    both = both[np.argsort(both[:, 0], kind="stable")]
    first = np.flatnonzero(np.append(True, both[1:, 0] != both[:-1, 0]))
    return np.column_stack((both[first, 0], np.add.reduceat(both[:, 1:], first)))


@dataclass
class StreamCounters:
    """Of one stream. `elements` and `bytes` were in the documents, `skipped` of the elements in subtrees that no path
    enters. The tokens of a pattern are what is below the nodes of its path."""

    documents: int = 0
    elements: int = 0
    skipped: int = 0
    paths: int = 0
    """Distinct paths that its documents were walked for last."""
    reached: Counts = field(default_factory=lambda: np.zeros((0, 3), np.int64))
    below: Counts = field(default_factory=lambda: np.zeros((0, 3), np.int64))
    bytes: int = 0

    def add(self, other: StreamCounters) -> None:
        self.documents += other.documents
        self.elements += other.elements
        self.skipped += other.skipped
        self.paths = other.paths
        self.bytes += other.bytes
        self.reached = added(self.reached, other.reached)
        self.below = added(self.below, other.below)

    def of(self, path: Path) -> tuple[int, int]:
        """How many nodes of how many documents reached a path."""
        return _line(self.reached, path)

    def below_nodes(self, path: Path) -> tuple[int, int]:
        """How many elements are below the nodes of a path, and how many bytes the nodes have, all together."""
        return _line(self.below, path)

    def to_json(self) -> dict[str, Any]:
        return vars(self) | {name: base64.b64encode(getattr(self, name).tobytes()).decode() for name in _ARRAYS}

    @classmethod
    def from_json(cls, raw: dict[str, Any]) -> StreamCounters:
        texts = {name: base64.b64decode(raw.get(name, "")) for name in _ARRAYS}
        return cls(**(raw | {name: np.frombuffer(text, np.int64).reshape(-1, 3) for name, text in texts.items()}))


_ARRAYS = ("reached", "below")


def _line(counts: Counts, path: Path) -> tuple[int, int]:
    (key,) = path_keys([path])
    at = int(np.searchsorted(counts[:, 0], key))
    if at == len(counts) or counts[at, 0] != key:
        return 0, 0
    return int(counts[at, 1]), int(counts[at, 2])

"""What the walk of a stream's documents counted: counted on the workers, added up on the driver, shown to the user.

`explain` shows how many nodes of how many documents reached a query's paths, `status` how much was walked. They count
nodes; the statistics of values count the embeddings of a path's steps, and only where a condition reads the values.

A document may reach a hundred thousand paths, so they travel and are added as arrays, each under the hash of its text.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from fishweir.algebra.nodes import Step
from fishweir.evaluate.witnesses.path_tables import Path, hash_texts

Counts = NDArray[np.int64]
"""Lines of (path, nodes that reached its end, documents that had one), the paths ascending."""


def path_keys(paths: Iterable[Path]) -> list[int]:
    """Paths as numbers, in every process the same; equal to the automaton are equal here."""
    texts = ["".join(map(_shown, path)) for path in paths]
    return hash_texts(pa.array(texts, pa.large_string())).view(np.int64).tolist()


def _shown(step: Step) -> str:
    axis, space = "//" if step.is_deep else "/", "*" if step.namespace is None else step.namespace
    return f"{axis}{'@' if step.is_attribute else ''}{{{space}}}{step.name}"


def to_counts(keys: ArrayLike, nodes: ArrayLike, documents: ArrayLike) -> Counts:
    counts = np.column_stack([np.asarray(column, np.int64) for column in (keys, nodes, documents)])
    return counts[np.argsort(counts[:, 0])]


def added(one: Counts, other: Counts) -> Counts:
    """The counts of both; mostly they are of the same paths."""
    if np.array_equal(one[:, 0], other[:, 0]):
        return np.column_stack((one[:, 0], one[:, 1:] + other[:, 1:]))
    both = np.concatenate((one, other))
    both = both[np.argsort(both[:, 0], kind="stable")]
    first = np.flatnonzero(np.append(True, both[1:, 0] != both[:-1, 0]))
    return np.column_stack((both[first, 0], np.add.reduceat(both[:, 1:], first)))


@dataclass
class StreamCounters:
    """Of one stream. `elements` were in the documents, `skipped` of them in subtrees that no path enters."""

    documents: int = 0
    elements: int = 0
    skipped: int = 0
    paths: int = 0
    """Distinct paths that its documents were walked for last."""
    reached: Counts = field(default_factory=lambda: np.zeros((0, 3), np.int64))

    def add(self, other: StreamCounters) -> None:
        self.documents += other.documents
        self.elements += other.elements
        self.skipped += other.skipped
        self.paths = other.paths
        self.reached = added(self.reached, other.reached)

    def of(self, path: Path) -> tuple[int, int]:
        """How many nodes of how many documents reached a path."""
        (key,) = path_keys([path])
        at = int(np.searchsorted(self.reached[:, 0], key))
        if at == len(self.reached) or self.reached[at, 0] != key:
            return 0, 0
        return int(self.reached[at, 1]), int(self.reached[at, 2])

    def to_json(self) -> dict[str, Any]:
        return vars(self) | {"reached": base64.b64encode(self.reached.tobytes()).decode()}

    @classmethod
    def from_json(cls, raw: dict[str, Any]) -> StreamCounters:
        reached = np.frombuffer(base64.b64decode(raw.get("reached", "")), np.int64).reshape(-1, 3)
        return cls(**(raw | {"reached": reached}))

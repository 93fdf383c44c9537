"""Groups of `distinct`: a group of queries over one document, of any kind, and the key that they share.

The inner group selects documents by the strategy that the rules choose for it, as it would without `distinct`. Queries
that select in the same way, with the same key and interval, are in one inner group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from fishweir.algebra.codec import to_json
from fishweir.algebra.distinct import Distinct
from fishweir.algebra.nodes import Source
from fishweir.algebra.normal import ANY_ROOT
from fishweir.evaluate.arrays import Ints
from fishweir.evaluate.distinct.state import Hashes
from fishweir.evaluate.group import Batch, Paths
from fishweir.evaluate.witnesses.path_tables import Path, PathTable, hash_texts, mix

GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class DistinctGroup:
    """A group of `distinct` queries. `sources` are all sources of its queries; the inner group reads one of them."""

    kind: ClassVar[str] = "distinct"

    distinct: Distinct
    sources: tuple[Source, ...]
    inner: Any

    @property
    def size(self) -> int:
        return int(self.inner.size)

    @property
    def members(self) -> Ints:
        members: Ints = self.inner.members
        return members

    @property
    def source(self) -> Source:
        source: Source = self.inner.source
        return source

    @property
    def merge_key(self) -> tuple[Any, ...]:
        return self.distinct, self.sources, self.inner.kind

    @property
    def class_key(self) -> np.uint64:
        """A key shared by all groups whose firsts depend on the watermarks of the same streams."""
        shown = "\n".join(sorted(map(str, self.sources)))
        return np.uint64(hash_texts(pa.array([shown], pa.large_string()))[0])

    @property
    def key_paths(self) -> tuple[Path, ...]:
        return tuple((ANY_ROOT, *path) for path in self.distinct.paths)

    def paths(self, sources: Sequence[Source]) -> Paths:
        if self.source not in sources:
            return {}
        return {**self.inner.paths(sources), **dict.fromkeys(self.key_paths, True)}

    def header(self) -> Any:
        return [to_json(self.distinct), to_json(self.sources), self.inner.kind, self.inner.header()]

    def arrays(self) -> dict[str, Any]:
        arrays: dict[str, Any] = self.inner.arrays()
        return arrays


def key_codes(paths: Sequence[Path], batch: Batch) -> tuple[Hashes, np.ndarray[Any, np.dtype[np.int8]]]:
    """A hash of each document's values at some paths, in the order of the paths, and whether the document has any."""
    codes, keyed = np.zeros(len(batch), np.uint64), np.zeros(len(batch), np.int8)
    for path in paths:
        table = batch.witnesses.get(path)
        own = np.zeros(len(batch), np.uint64) if table is None else _path_codes(table, len(batch))
        if table is not None:
            keyed[table.documents] = 1
        codes = mix(codes * GOLDEN + own)
    return codes, keyed


def _path_codes(table: PathTable, size: int) -> Hashes:
    """For each document, a hash of all its values; 0 if it has none."""
    codes = np.zeros(size, np.uint64)
    if table.single:
        codes[table.documents] = table.hashes | np.uint64(1)
        return codes
    firsts = np.searchsorted(table.documents, table.documents, "left")
    place = (np.arange(len(table)) - firsts + 1).astype(np.uint64)
    np.add.at(codes, table.documents, mix(table.hashes + place * GOLDEN) | np.uint64(1))
    return codes


def query_codes(codes: Hashes, queries: Ints) -> Hashes:
    """A hash of query and key. Equal hashes are treated as equal keys, as in joins."""
    return mix(codes + queries.astype(np.uint64) * GOLDEN)

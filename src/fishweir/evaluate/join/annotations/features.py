"""What of an item's values annotation joins compare: features, kept as rows of a run (state.py).

In: the path tables of a batch of items. Out: rows, one for each value of each item that some query annotates or has in
a window: a sorted list of *features*, the hash of a text, the bits of a number, the hashes of the words of a text or of
the links in it. Rows are kept under the feature, whatever queries compare it, so they are kept once for all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from fishweir.algebra.normal import dotted
from fishweir.algebra.texts import links, same_link
from fishweir.evaluate.arrays import Ints, expand
from fishweir.evaluate.group import Batch
from fishweir.evaluate.join.state import Hashes, SideRows, combine
from fishweir.evaluate.join.variables import key_of
from fishweir.evaluate.witnesses.path_tables import Path, PathTable, hash_texts


@dataclass(frozen=True)
class Feature:
    """What of the values at a path is compared."""

    path: Path
    kind: str

    @cached_property
    def key(self) -> int:
        """The class of its rows."""
        return key_of(f"{self.kind}\t{dotted(self.path)}")

    def rows(self, batch: Batch) -> SideRows | None:
        """Of the items that are on some side, a row for each value."""
        table = batch.witnesses.get(self.path)
        if table is None or not len(table):
            return None
        wanted = np.zeros(len(batch), np.bool_)
        wanted[batch.sides.documents] = True
        lengths, features = KINDS[self.kind](table)
        rows = np.flatnonzero(wanted[table.documents])
        ends = np.cumsum(lengths)
        _, at = expand(ends[rows] - lengths[rows], ends[rows])
        return listed_rows(self.key, table.documents[rows], values=(lengths[rows], features[at]))


def listed_rows(
    key: int,
    documents: Ints,
    values: tuple[Ints, Hashes] | None = None,
    members: tuple[Ints, Ints] | None = None,
) -> SideRows:
    """Rows of one class without nodes, with lists of values or of queries: how long each is, and all of them."""
    size, none = len(documents), np.zeros(len(documents), np.int64)
    lengths, hashes = values or (none, np.empty(0, np.uint64))
    counts, queries = members or (none, np.empty(0, np.int64))
    return SideRows(
        combine(key, np.zeros(size, np.uint64)),
        documents,
        np.full(size, key, np.uint64),
        np.zeros(size + 1, np.int64),
        np.empty(0, np.int64),
        np.append(0, np.cumsum(lengths)),
        hashes,
        np.append(0, np.cumsum(counts)),
        queries,
    )


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

"""Features: the parts of an item's values that annotation joins compare, stored as rows of a run (state.py).

In: the path tables of a batch of items. Out: one row for each value of each item that some query annotates or has in a
window. A row is a sorted list of *features*: the hash of a text, the bits of a number, or the hashes of the words or
links in a text. Rows are stored by feature, so all queries that compare a feature share them.
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
from fishweir.evaluate.join.hashes import Hashes, combine
from fishweir.evaluate.join.state import SideRows
from fishweir.evaluate.join.variables import key_of
from fishweir.evaluate.witnesses.path_tables import Path, PathTable, hash_texts


@dataclass(frozen=True)
class Feature:
    """A feature of the values at a path that some comparison reads."""

    path: Path
    kind: str

    @cached_property
    def key(self) -> int:
        """The class of the feature's rows."""
        return key_of(f"{self.kind}\t{dotted(self.path)}")

    def rows(self, batch: Batch) -> SideRows | None:
        """A row for each value of the items that belong to some side."""
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
    """Rows of one class without nodes. `values` and `members` are lists of values and of queries: the length of each
    list, and the concatenated lists."""
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


# Extractors: the number of features for each row of a path table, and the features.


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
    """The links of a text and their hosts, which it `references`."""
    return {target for link in links(text) for target in (link, link.partition("/")[0])}


def extended(text: str) -> set[str]:
    """The hosts and domains of a text's links and the URLs above them, which it `extends`."""
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

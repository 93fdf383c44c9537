"""Links: find the URLs and hosts that a text references, extends or shares (RoSeS' link predicates).

In: the normalized URLs and hosts (texts.same_link) of all queries with one signature. Out: slices of the table. A link
matches a constant if one of a few *keys* of the link equals it: the link itself, its host, a prefix of its path, or a
suffix of its host. The keys of a batch's links are therefore looked up in one table of equal strings (constants.Equal),
regardless of the number of constants, and the answer is exact.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import pyarrow as pa

from fishweir.algebra.texts import links, same_link
from fishweir.evaluate.arrays import Ints
from fishweir.evaluate.index.constants import Equal, Slices
from fishweir.evaluate.index.registry import IndexFactory, add_index
from fishweir.evaluate.witnesses.path_tables import PathTable

_CUT = re.compile(r"[/?#]")


def _shared(link: str) -> set[str]:
    return {link}


def _referenced(link: str) -> set[str]:
    """The link and its host. A host constant has no slash, so it equals no link with a path."""
    return {link, link.partition("/")[0]}


def _extended(link: str) -> set[str]:
    """All URLs above the link, and all domains that its host belongs to."""
    host, slash, _ = link.partition("/")
    above = {link[: cut.start()] for cut in _CUT.finditer(link, len(host) + 1)} if slash else set()
    domains = {host[dot.end() :] for dot in re.finditer(r"\.", host)}
    return {link, host} | above | domains


LINK_KEYS: dict[str, Callable[[str], set[str]]] = {
    "references": _referenced, "extends": _extended, "shares-link": _shared,
}  # fmt: skip


@dataclass(frozen=True)
class Links:
    """`references`, `extends`, `shares-link`: normalized constants, looked up by the keys of a link."""

    op: str
    constants: pa.LargeStringArray

    @classmethod
    def order(cls, column: pa.LargeStringArray) -> Ints:
        return Equal.order(cls.spelled(column))

    @staticmethod
    def spelled(column: pa.LargeStringArray) -> pa.LargeStringArray:
        """The constants, normalized as links are for comparison."""
        coded = column.dictionary_encode()
        once = pa.array([same_link(text) for text in coded.dictionary.to_pylist()], pa.large_string())
        return once.take(coded.indices)

    @cached_property
    def targets(self) -> Equal:
        return Equal.build(self.spelled(self.constants))

    def look_up(self, values: PathTable) -> Slices:
        rows, keys = values.once(_KEYS[self.op])
        found = self.targets.look_up(keys)
        return Slices(rows[found.row], found.lo, found.hi)


def _links(values: PathTable) -> list[list[str]]:
    """The links of each value, computed once for all link conditions on a path."""
    return [links(text) if "://" in text else [] for text in values.texts.to_pylist()]


def _keyed(op: str) -> Callable[[PathTable], tuple[Ints, PathTable]]:
    keys_of = LINK_KEYS[op]

    def keyed(values: PathTable) -> tuple[Ints, PathTable]:
        """The distinct keys of each value's links: the value's row, and the key."""
        found = [
            (row, key)
            for row, some in enumerate(values.once(_links))
            if some
            for key in sorted(set().union(*map(keys_of, some)))
        ]
        rows = np.array([row for row, _ in found], dtype=np.int64)
        texts = pa.array([key for _, key in found], pa.large_string())
        return rows, PathTable(rows, np.empty((0, 0), np.int64), texts)

    return keyed


_KEYS = {op: _keyed(op) for op in LINK_KEYS}

for _op in LINK_KEYS:
    add_index(_op, IndexFactory(Links.order, partial(Links, _op)))

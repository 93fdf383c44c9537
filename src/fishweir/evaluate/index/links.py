"""Links: which of many URLs and hosts a text references, extends or shares (RoSeS' link predicates).

In: the URLs and hosts of all queries of one signature, in one spelling (texts.same_link). Out: slices of
the table. A link leads to a constant by equality of one of a few *keys* of the link: itself, its host, what
its path begins with, what its host ends with. So the keys of a batch's links are looked up in one table of
equal strings (constants.Equal), however many constants there are, and the answer is exact.
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
    """A host as constant has no slash, so it equals no link with a path."""
    return {link, link.partition("/")[0]}


def _extended(link: str) -> set[str]:
    """All URLs that the link lies below, and all domains that its host belongs to."""
    host, slash, _ = link.partition("/")
    above = {link[: cut.start()] for cut in _CUT.finditer(link, len(host) + 1)} if slash else set()
    domains = {host[dot.end() :] for dot in re.finditer(r"\.", host)}
    return {link, host} | above | domains


LINK_KEYS: dict[str, Callable[[str], set[str]]] = {
    "references": _referenced, "extends": _extended, "shares-link": _shared,
}  # fmt: skip


@dataclass(frozen=True)
class Links:
    """`references`, `extends`, `shares-link`: the constants in one spelling, by equality with a link's keys."""

    op: str
    constants: pa.LargeStringArray

    @classmethod
    def order(cls, column: pa.LargeStringArray) -> Ints:
        return Equal.order(cls.spelled(column))

    @staticmethod
    def spelled(column: pa.LargeStringArray) -> pa.LargeStringArray:
        """Each constant in the spelling in which links are compared."""
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
    """The links of each value, once for all link conditions on a path."""
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

"""Atom groups: all distinct elementary conditions on a source's items, by signature.

In: the atoms of many predicates, and then the witnesses of a batch. Out: the atoms that hold, by document. Atoms with
equal signatures differ only in their constants. The constants are sorted in the order of the group's index, and the
atoms are numbered in that order, so a lookup returns ranges of atoms and no atom is tested individually.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fishweir.algebra.operators import find_condition
from fishweir.algebra.predicates import AtomSignature
from fishweir.evaluate.arrays import Column, Ints, expand, take
from fishweir.evaluate.index.indexes import Index, index_for, order_for, texts_hold, unsure
from fishweir.evaluate.witnesses.path_tables import Path, PathTable


@dataclass(frozen=True)
class AtomGroup:
    """The distinct constants of one signature, in the index's order. Atoms are numbered from `first`."""

    signature: AtomSignature
    first: int
    constants: Column

    def __len__(self) -> int:
        return len(self.constants)

    @cached_property
    def index(self) -> Index:
        s = self.signature
        return index_for(s.op, s.type, s.part, self.constants)

    def look_up(self, witnesses: Mapping[Path, PathTable]) -> tuple[Ints, Ints]:
        """Documents and the atoms that hold in them. A pair may occur twice."""
        values = witnesses.get(self.signature.path)
        if values is None:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        hits = self.index.look_up(values)
        source, positions = expand(hits.lo, hits.hi)
        rows = hits.row[source]
        if self.unsure is not None:
            rows, positions = self._checked(values, rows, positions)
        return values.documents[rows], positions + self.first

    def _checked(self, values: PathTable, rows: Ints, positions: Ints) -> tuple[Ints, Ints]:
        """The pairs that hold, after checking those for which the index is not exact."""
        assert self.unsure is not None, "else there is nothing to check"
        inexact = np.flatnonzero(self.unsure[positions])
        if not len(inexact):
            return rows, positions
        condition = find_condition(self.signature.op)
        assert condition is not None, "comparisons are exact"
        hold = texts_hold(condition, values, rows[inexact], take(self.constants, positions[inexact]))
        keep = np.delete(np.arange(len(rows)), inexact[~hold])
        return rows[keep], positions[keep]

    @cached_property
    def unsure(self) -> NDArray[np.bool_] | None:
        return unsure(self.signature.op, self.constants)


def build_groups(
    columns: Mapping[AtomSignature, Sequence[Column]],
) -> tuple[tuple[AtomGroup, ...], dict[AtomSignature, list[Ints]]]:
    """The groups, and for each given column the atom numbers of its constants."""
    groups, numbers, first = [], {}, 0
    for signature, parts in columns.items():
        distinct, codes = _distinct(parts)
        order = order_for(signature.op, signature.type, distinct)
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order)) + first
        groups.append(AtomGroup(signature, first, take(distinct, order)))
        numbers[signature] = [place[some] for some in codes]
        first += len(order)
    return tuple(groups), numbers


def _distinct(parts: Sequence[Column]) -> tuple[Column, list[Ints]]:
    ends = np.cumsum([len(part) for part in parts])[:-1]
    if isinstance(parts[0], np.ndarray):
        distinct, codes = np.unique(np.concatenate(parts), return_inverse=True)
    else:
        encoded = pa.concat_arrays(parts).dictionary_encode()
        distinct, codes = encoded.dictionary, encoded.indices.to_numpy().astype(np.int64)
    return distinct, np.split(codes, ends)


def true_atoms(groups: Sequence[AtomGroup], witnesses: Mapping[Path, PathTable], documents: int) -> tuple[Ints, Ints]:
    """The atoms that hold, by document: offsets, and the sorted atoms of each document."""
    atoms = sum(map(len, groups))
    found = [group.look_up(witnesses) for group in groups]
    if not found:
        return np.zeros(documents + 1, np.int64), np.empty(0, np.int64)
    keys = np.concatenate([document * atoms + atom for document, atom in found])
    keys = np.unique(keys)
    return np.searchsorted(keys, np.arange(documents + 1) * atoms), keys % atoms

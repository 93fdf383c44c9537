"""The naive plan as flat arrays: each predicate directly below `true`, accessed by its most selective unit.

In: the predicates of one source. Out: the layout that `to_layout` returns for the naive plan, computed by a few sorts.
It is available immediately, so many new queries are evaluated with it until their factorized plan is ready. A document
still reaches only the predicates whose access holds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fishweir.evaluate.arrays import expand
from fishweir.evaluate.select.factorization.cost import Predicate
from fishweir.evaluate.select.factorization.layout import NO_ACCESS, Layout, Units


def flat_layout(predicates: Sequence[Predicate], units: Units, chances: NDArray[np.float64]) -> Layout:
    """`ends` are indexes into `predicates`; equal predicates end at one node."""
    known: dict[Predicate, int] = {}
    codes = np.fromiter((known.setdefault(p, len(known)) for p in predicates), np.int64, len(predicates))
    lengths = np.fromiter(map(len, known), np.int64, len(known))
    rows = np.repeat(np.arange(len(known)), lengths)
    flat = np.fromiter((unit for predicate in known for unit in predicate), np.int64, len(rows))
    order = np.lexsort((flat, chances[flat], rows))
    flat = flat[order]
    found = np.flatnonzero(units.findable[flat])
    having, first_of = np.unique(rows[found], return_index=True)
    entries = found[first_of]
    access = np.full(len(known), NO_ACCESS, np.int64)
    access[having] = flat[entries]
    is_entry = np.zeros(len(flat), np.bool_)
    is_entry[entries] = True
    flat = flat[np.lexsort((np.arange(len(flat)), ~is_entry, rows))]
    below = np.flatnonzero(lengths)
    below = below[np.argsort(access[below], kind="stable")]
    nodes = np.zeros(len(known), np.int64)
    nodes[below] = np.arange(len(below)) + 1
    starts = np.cumsum(lengths) - lengths
    _, at = expand(starts[below], starts[below] + lengths[below])
    first = np.full(len(below) + 2, len(below) + 1)
    first[0] = 1
    ended = nodes[codes]
    ends = np.argsort(ended, kind="stable")
    return Layout(
        units,
        first.astype(np.int32),
        np.append(NO_ACCESS, access[below]).astype(np.int32),
        np.concatenate([[0, 0], np.cumsum(lengths[below])]).astype(np.int32),
        flat[at].astype(np.int32),
        np.searchsorted(ended[ends], np.arange(len(below) + 2)).astype(np.int32),
        ends,
    )

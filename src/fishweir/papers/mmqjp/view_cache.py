"""The view cache: slices of Rdoc joined with Rbin, by string value (MMQJP section 5).

A slice RL,s has the bindings of the retained documents whose lower node has the value s. The number of cached rows is
bounded, and the least recently used slice is evicted first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping

import numpy as np
import pyarrow as pa


class ViewCache:
    def __init__(self, most_rows: int) -> None:
        self.most_rows, self.rows = most_rows, 0
        self.hits, self.misses = 0, 0
        self._slices: OrderedDict[str, pa.Table] = OrderedDict()

    def __contains__(self, value: str) -> bool:
        return value in self._slices

    def __len__(self) -> int:
        return len(self._slices)

    def get(self, value: str) -> pa.Table | None:
        """The slice of a value, which becomes the most recently used."""
        found = self._slices.get(value)
        if found is None:
            self.misses += 1
            return None
        self.hits += 1
        self._slices.move_to_end(value)
        return found

    def put(self, value: str, slice: pa.Table) -> None:
        old = self._slices.pop(value, None)
        self.rows += len(slice) - (0 if old is None else len(old))
        self._slices[value] = slice
        while self.rows > self.most_rows:
            _, gone = self._slices.popitem(last=False)
            self.rows -= len(gone)

    def extend(self, slices: Mapping[str, pa.Table], more: Mapping[str, pa.Table]) -> None:
        """Algorithm 5: RL,s becomes the union of RL,s and RR,s, for each common value s."""
        for value, slice in slices.items():
            self.put(value, pa.concat_tables([slice, more[value]]) if value in more else slice)


def to_slices(view: pa.Table) -> dict[str, pa.Table]:
    """Divides a view by its string values."""
    if not len(view):
        return {}
    view = view.combine_chunks()
    coded = view["strVal"].combine_chunks().dictionary_encode()
    codes = coded.indices.to_numpy()
    order = np.argsort(codes, kind="stable")
    values, starts = np.unique(codes[order], return_index=True)
    ends = np.append(starts[1:], len(order))
    ordered, names = view.take(pa.array(order)), coded.dictionary.to_pylist()
    cuts = zip(values.tolist(), starts.tolist(), ends.tolist(), strict=True)
    return {names[value]: ordered.slice(start, end - start) for value, start, end in cuts}

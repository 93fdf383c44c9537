"""An order-preserving code for strings, which makes them usable in regions.

In: the constants that queries compare an attribute with, and then values. Out: float64 codes in the order of the
strings. The code of a constant is odd, a value between two constants gets the even code between theirs, and NULL is
NaN. Any comparison of a value with a constant therefore has the same result on the codes, regardless of the
distribution of the strings. Shared: all values between the same two constants have one code, and equal values of a
batch are looked up once. Paper: Spatial Join CQ, section 2 (order-preserving hash functions after Fox et al.).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc


class StringCodes:
    """Built once for a set of queries, never changed. If all of them test for equality, `ordered` may be False: a value
    that is not a constant then has code 0, without a search for its position.

    >>> codes = StringCodes(["pear", "apple"])
    >>> codes.encode(["aardvark", "apple", "fig", "pear", "plum", None]).tolist()
    [0.0, 1.0, 2.0, 3.0, 4.0, nan]
    """

    def __init__(self, constants: Iterable[str], ordered: bool = True) -> None:
        self.constants, self.ordered = sorted(set(constants)), ordered
        self._known = pa.array(self.constants, pa.large_string())

    def code(self, value: str | None) -> float:
        if value is None:
            return float("nan")
        position = bisect_left(self.constants, value)
        exact = position < len(self.constants) and self.constants[position] == value
        return float(2 * position + exact) if exact or self.ordered else 0.0

    def encode(self, values: pa.Array | pa.ChunkedArray | list[str | None]) -> npt.NDArray[np.float64]:
        """The codes of a batch of strings, or of anything that Arrow can convert to strings."""
        column = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values, type=pa.string())
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        distinct = column.dictionary.cast(pa.large_string())
        places = pc.fill_null(pc.index_in(distinct, value_set=self._known), -1).to_numpy(zero_copy_only=False)
        of_distinct = np.append(np.where(places < 0, 0.0, 2.0 * places + 1), np.nan)
        if self.ordered:
            others = np.flatnonzero(places < 0)
            of_distinct[others] = [self.code(text) for text in distinct.take(pa.array(others)).to_pylist()]
        indices = column.indices.cast(pa.int64()).fill_null(len(of_distinct) - 1)
        return of_distinct[indices.to_numpy(zero_copy_only=False)]

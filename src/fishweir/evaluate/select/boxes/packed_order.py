"""Orders query regions so that neighbours are close together.

In: a range of 16-bit codes per query and attribute. Out: a permutation of the queries such that each run of 64, and
each run of 64 such runs, has a small bounding box. Shared: nothing.

Top-down greedy split (Garcia, Lopez, Leutenegger 1998, for bulk loading R-trees): a run is sorted by the lower end, the
upper end or the width of one attribute and cut in two. The key with the smallest two bounding boxes is chosen. The
width is a key too, to separate queries without a condition on an attribute from those with a narrow one. Corner
transformation (Spatial Join CQ, section 5.2) turns a region into a point of lower and upper ends; these are its axes.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[np.uint16]

FAN_OUT = 64
SAMPLE = 256


def greedy_split_order(low: Codes, high: Codes) -> npt.NDArray[np.intp]:
    """The permutation, for ranges low[q, a] <= code <= high[q, a]."""
    order = np.arange(len(low))
    runs = [(0, len(low))]
    while runs:
        start, end = runs.pop()
        if end - start <= FAN_OUT:
            continue
        cut = start + cut_of(end - start)
        members = order[start:end]
        key = best_key(low, high, sample_of(members), (cut - start) / (end - start))
        values = key_values(low[members], high[members], key)
        order[start:end] = members[np.argpartition(values, cut - start)]
        runs += [(start, cut), (cut, end)]
    return order


def cut_of(size: int) -> int:
    """About the middle, at a multiple of the largest power of the fan-out below the size."""
    unit = FAN_OUT
    while unit * FAN_OUT < size:
        unit *= FAN_OUT
    return -(-size // unit) // 2 * unit


def sample_of(members: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    return members[:: -(-len(members) // SAMPLE)]


def best_key(low: Codes, high: Codes, members: npt.NDArray[np.intp], share: float) -> int:
    """The key (lower ends, upper ends, widths of the attributes) with the smallest two boxes."""
    least, most = low[members], high[members]
    keys = np.concatenate((least, most, most - least), axis=1)
    order = np.argsort(keys, axis=0)
    cut = min(max(1, round(len(members) * share)), len(members) - 1)
    least, most = least[order], most[order]
    return int(np.argmin(volume(least[:cut], most[:cut]) * share + volume(least[cut:], most[cut:]) * (1 - share)))


def volume(least: Codes, most: Codes) -> npt.NDArray[np.float64]:
    """By key, the volume of the bounding box on this side of the cut; the inputs are (members, keys, attributes)."""
    extent = most.max(axis=0).astype(np.float64) - least.min(axis=0) + 1
    return (extent / (1 << 16)).prod(axis=1)


def key_values(least: Codes, most: Codes, key: int) -> npt.NDArray[np.uint16]:
    kind, attribute = divmod(key, least.shape[1])
    if kind == 0:
        return least[:, attribute]
    return most[:, attribute] if kind == 1 else most[:, attribute] - least[:, attribute]

"""Hilbert order: consecutive points on the curve are neighbours in space.

In: points with integer coordinates, or keys of any distribution. Out: positions on the curve, or the permutation that
sorts by them. Shared: consecutive tuples overlap with nearly the same queries. The transform is Skilling's (Programming
the Hilbert curve, 2004), for all points at once.
Paper: Spatial Join CQ, section 5.3 and figure 9(b).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fishweir.evaluate.select.boxes.regions import Keys

WORD = 64
MOST_BITS = 16


def hilbert_positions(points: npt.NDArray[np.integer], bits: int) -> npt.NDArray[np.uint64]:
    """The position of each point (rows x axes, coordinates below 2**bits) on the curve.

    >>> hilbert_positions(np.array([[0, 0], [0, 1], [1, 1], [1, 0]]), bits=1).tolist()
    [0, 1, 2, 3]
    """
    axes = points.shape[1]
    if axes * bits > WORD:
        raise ValueError(f"{axes} axes of {bits} bits do not fit into {WORD} bits")
    return interleaved(transposed(points.T.astype(np.uint64), bits), bits)


def transposed(coordinates: npt.NDArray[np.uint64], bits: int) -> npt.NDArray[np.uint64]:
    """Transforms (axes, points). Bit b of all axes together is digit b of the position, with axis 0 the highest."""
    x = coordinates.copy()
    axes = len(x)
    highest = np.uint64(1 << (bits - 1))
    bit = highest
    while bit > 1:
        below = np.uint64(bit - 1)
        for axis in range(axes):
            inverted = (x[axis] & bit) != 0
            swapped = (x[0] ^ x[axis]) & below
            x[0] ^= np.where(inverted, below, swapped)
            x[axis] ^= np.where(inverted, np.uint64(0), swapped)
        bit = np.uint64(bit >> np.uint64(1))
    for axis in range(1, axes):
        x[axis] ^= x[axis - 1]
    turned = np.zeros_like(x[0])
    bit = highest
    while bit > 1:
        turned ^= np.where((x[axes - 1] & bit) != 0, np.uint64(bit - 1), np.uint64(0))
        bit = np.uint64(bit >> np.uint64(1))
    return x ^ turned


def interleaved(x: npt.NDArray[np.uint64], bits: int) -> npt.NDArray[np.uint64]:
    positions = np.zeros(x.shape[1], dtype=np.uint64)
    for bit in reversed(range(bits)):
        for axis in range(len(x)):
            positions = (positions << np.uint64(1)) | ((x[axis] >> np.uint64(bit)) & np.uint64(1))
    return positions


def hilbert_order(keys: Keys) -> npt.NDArray[np.intp]:
    """The permutation that puts points (rows x axes) of any distribution into Hilbert order, by their ranks.

    Constant axes are ignored. If there are more axes than bits, the first ones decide.
    """
    if len(keys) < 2:
        return np.arange(len(keys))
    varying = np.flatnonzero((keys != keys[0]).any(axis=0))[:WORD]
    if not len(varying):
        return np.arange(len(keys))
    bits = min(MOST_BITS, WORD // len(varying))
    points = np.stack([scaled_ranks(keys[:, axis], bits) for axis in varying], axis=1)
    return np.argsort(hilbert_positions(points, bits), kind="stable")


def scaled_ranks(keys: Keys, bits: int) -> npt.NDArray[np.int64]:
    """Dense ranks scaled to the full coordinate range, so that no part of the curve is crowded."""
    distinct, ranks = np.unique(keys, return_inverse=True)
    return (ranks.astype(np.int64) << bits) // len(distinct)

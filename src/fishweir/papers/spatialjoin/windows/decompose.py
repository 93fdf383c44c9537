"""Object decomposition: turns a join query into several regions of the joint space, with the window as axes.

In: window join queries, and where to cut the attributes of R. Out: regions over [attributes of R, attributes of S, time
of S minus time of R, tuples of R between the two, tuples of S between the two]. Shared: queries with different windows
and comparisons are regions of one index.

A comparison of R.a with S.b is the diagonal of their plane, a band around it or one side of it; its bounding box would
be the whole plane. If the axis of R.a is cut, each piece has its own box: for R.a in [p, q] and R.a - S.b in [low,
high], S.b is in [p - high, q - low]. A query is cut by its first comparison, the narrowest. The pieces of a query do
not overlap, so no pair is found twice. Refinement removes the false positives of a box.
Paper: Spatial Join CQ, section 6, extension of the query indexing method, figure 14.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fishweir.evaluate.select.boxes.regions import HIGHEST, LOWEST, Boxes, Floats, Keys, float_keys
from fishweir.papers.spatialjoin.windows.queries import ALL_ROWS, LEFT, RIGHT, JoinQueries
from fishweir.papers.spatialjoin.windows.side import Ints

PIECES = 4
"""The same as in the paper's experiments."""


@dataclass(frozen=True, slots=True)
class Regions:
    boxes: Boxes
    query: Ints
    """The query of each region."""


def decomposed(queries: JoinQueries, cuts: Floats) -> Regions:
    """The regions of the queries. `cuts[a]`: the cuts of the axis of attribute a of R, ascending."""
    left, right = queries.selections
    starts, stops = _window_axes(queries)
    low = np.concatenate((left.low, right.low, *starts), axis=1)
    high = np.concatenate((left.high, right.high, *stops), axis=1)
    satisfiable = queries.satisfiable()
    compared = satisfiable & (np.diff(queries.starts) > 0)
    whole = np.flatnonzero(satisfiable & ~compared)
    members = np.flatnonzero(compared)
    first, c = queries.starts[members], queries.comparisons
    on_left, on_right = c.left[first], left.attributes + c.right[first]
    lows, highs, numbers = [low[whole]], [high[whole]], [whole]
    ends = np.concatenate((np.full((len(cuts), 1), -np.inf), cuts, np.full((len(cuts), 1), np.inf)), axis=1)
    every = np.arange(len(members))
    for piece in range(cuts.shape[1] + 1):
        start = ends[c.left[first], piece]
        end = ends[c.left[first], piece + 1]
        least, most = _other_axis(start, end, c.low[first], c.high[first])
        piece_low, piece_high = low[members], high[members]
        # The key after that of the cut, not the float: infinity has no next float, and pieces must not overlap.
        begins = float_keys(start) + (piece > 0), float_keys(least)
        for axis, begin, finish in ((on_left, begins[0], end), (on_right, begins[1], most)):
            piece_low[every, axis] = np.maximum(piece_low[every, axis], begin)
            piece_high[every, axis] = np.minimum(piece_high[every, axis], float_keys(finish))
        some = (piece_low <= piece_high).all(axis=1)
        lows.append(piece_low[some])
        highs.append(piece_high[some])
        numbers.append(members[some])
    return Regions(Boxes(np.concatenate(lows), np.concatenate(highs)), np.concatenate(numbers).astype(np.int64))


def _other_axis(start: Floats, end: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """The range of S.b, slightly widened because the difference of a pair is rounded."""
    with np.errstate(invalid="ignore", over="ignore"):
        least, most = start - high, end - low
        least = least - 1e-15 * (np.abs(start) + np.abs(least))
        most = most + 1e-15 * (np.abs(end) + np.abs(most))
    return np.where(np.isnan(least), -np.inf, least), np.where(np.isnan(most), np.inf, most)


def _window_axes(queries: JoinQueries) -> tuple[list[Keys], list[Keys]]:
    """Lower and upper ends on the three axes; unbounded if all windows are the same, as the probe reaches no
    further."""
    if queries.reach.even:
        shape = (queries.count, 3)
        return [np.full(shape, LOWEST)], [np.full(shape, HIGHEST)]
    reach = np.maximum(queries.seconds, 0.0)
    before = np.where(np.isinf(reach[:, RIGHT]), LOWEST, float_keys(-reach[:, RIGHT]))
    behind = np.where(np.isinf(reach[:, LEFT]), HIGHEST, float_keys(reach[:, LEFT]))
    most = np.where(queries.rows < ALL_ROWS, queries.rows - 1, HIGHEST)
    return [before[:, None], np.full_like(most, LOWEST)], [behind[:, None], most]

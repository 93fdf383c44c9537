"""Queries with the same join: the plan that they share.

In: window join queries. Out: groups, each with the comparisons that all its queries have, its longest windows, and the
anchor: the comparison whose value order enumerates the pairs. Shared: a pair is enumerated and compared once for all
queries of a group. Bands that differ in their ends only are one group, if asked for: pairs are then enumerated by the
hull of the bands, and each query's own is checked on the results.
Paper: Spatial Join CQ, section 3, query plan sharing (NiagaraCQ's join signature).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fishweir.sharing.boxes.regions import Boxes, Floats
from fishweir.sharing.windows.queries import OPERATORS, JoinQueries, Reach
from fishweir.sharing.windows.side import Ints

NO_ANCHOR = -1


@dataclass(frozen=True)
class Group:
    members: Ints
    selections: tuple[Boxes, Boxes]
    lefts: Ints
    rights: Ints
    low: Floats
    high: Floats
    """Of each comparison; of bands that differ, the hull."""
    own_low: Floats
    own_high: Floats
    """(members, comparisons) where some differ, else without rows."""
    seconds: Floats
    rows: Ints
    reach: Reach

    @property
    def anchor(self) -> int:
        """The comparison that lets the fewest pass: the first, as they are sorted."""
        return 0 if len(self.lefts) else NO_ANCHOR


def grouped(queries: JoinQueries, together: bool) -> list[Group]:
    """`together`: bands over the same attributes are one group, whatever their ends."""
    c, starts = queries.comparisons, queries.starts
    ends = np.stack((c.low, c.high), axis=1)
    plain = (ends[:, None] == np.array(list(OPERATORS.values()))).all(axis=2).any(axis=1)
    if together:
        ends[~plain] = np.nan
    words = np.concatenate((c.left[:, None], c.right[:, None], (ends + 0.0).view(np.int64)), axis=1)
    by_signature: dict[bytes, list[int]] = {}
    for query in np.flatnonzero(queries.satisfiable()).tolist():
        by_signature.setdefault(words[starts[query] : starts[query + 1]].tobytes(), []).append(query)
    return [group_of(queries, np.array(members, dtype=np.int64)) for members in by_signature.values()]


def group_of(queries: JoinQueries, members: Ints) -> Group:
    c, first = queries.comparisons, queries.starts[members]
    each = first[:, None] + np.arange(queries.starts[members[0] + 1] - first[0])
    low, high = c.low[each], c.high[each]
    same = bool((low == low[:1]).all() and (high == high[:1]).all())
    every = np.arange(queries.selections[0].attributes), np.arange(queries.selections[1].attributes)
    boxes = [side.take(members, used) for side, used in zip(queries.selections, every, strict=True)]
    seconds, rows = queries.seconds[members], queries.rows[members]
    return Group(
        members, (boxes[0], boxes[1]), c.left[each[0]], c.right[each[0]], low.min(axis=0), high.max(axis=0),
        low[: 0 if same else None], high[: 0 if same else None], seconds, rows, Reach.of(seconds, rows),
    )  # fmt: skip

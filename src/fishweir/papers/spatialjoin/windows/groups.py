"""Groups queries with the same join, which share a plan.

In: window join queries. Out: groups, each with the comparisons that all its queries have, and its longest windows.
Shared: a pair is enumerated and compared once for all queries of a group.
Paper: Spatial Join CQ, section 3, query plan sharing (NiagaraCQ's join signature).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fishweir.evaluate.select.boxes.regions import Boxes, Floats
from fishweir.papers.spatialjoin.windows.queries import JoinQueries, Reach
from fishweir.papers.spatialjoin.windows.side import Ints


@dataclass(frozen=True)
class Group:
    members: Ints
    selections: tuple[Boxes, Boxes]
    lefts: Ints
    rights: Ints
    low: Floats
    high: Floats
    seconds: Floats
    rows: Ints
    reach: Reach


def grouped(queries: JoinQueries) -> list[Group]:
    c, starts = queries.comparisons, queries.starts
    ends = np.stack((c.low, c.high), axis=1)
    words = np.concatenate((c.left[:, None], c.right[:, None], (ends + 0.0).view(np.int64)), axis=1)
    by_signature: dict[bytes, list[int]] = {}
    for query in np.flatnonzero(queries.satisfiable()).tolist():
        by_signature.setdefault(words[starts[query] : starts[query + 1]].tobytes(), []).append(query)
    return [group_of(queries, np.array(members, dtype=np.int64)) for members in by_signature.values()]


def group_of(queries: JoinQueries, members: Ints) -> Group:
    c, first = queries.comparisons, int(members[0])
    each = slice(queries.starts[first], queries.starts[first + 1])
    every = np.arange(queries.selections[0].attributes), np.arange(queries.selections[1].attributes)
    boxes = [side.take(members, used) for side, used in zip(queries.selections, every, strict=True)]
    seconds, rows = queries.seconds[members], queries.rows[members]
    return Group(
        members,
        (boxes[0], boxes[1]),
        c.left[each],
        c.right[each],
        c.low[each],
        c.high[each],
        seconds,
        rows,
        Reach.of(seconds, rows),
    )

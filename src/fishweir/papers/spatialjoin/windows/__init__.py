"""Sliding window joins of two streams of tuples as published.

`queries` defines the input, `triples` the output; `join` is the common part of the strategies: probe, insert,
invalidate over the retained tuples of each `side`. `sj_join` is the paper's, with `decompose`; `ibs_js` is its
baseline, with `groups`; `oracle` is the naive one. `../window_joins.py` makes them strategies of the engine.
Paper: Spatial Join CQ, section 6.
"""

from collections.abc import Callable

from fishweir.papers.spatialjoin.windows.ibs_js import IBSJS
from fishweir.papers.spatialjoin.windows.join import Arrivals, SlidingJoin, State, WindowJoin
from fishweir.papers.spatialjoin.windows.queries import ALL_ROWS, LEFT, OPERATORS, RIGHT, Comparisons, JoinQueries
from fishweir.papers.spatialjoin.windows.sj_join import SJJoin
from fishweir.papers.spatialjoin.windows.triples import Triples

STRATEGIES: dict[str, Callable[..., SlidingJoin]] = {
    "sj-join": SJJoin,
    "ibs-js": IBSJS,
}

__all__ = [
    "ALL_ROWS",
    "IBSJS",
    "LEFT",
    "OPERATORS",
    "RIGHT",
    "STRATEGIES",
    "Arrivals",
    "Comparisons",
    "JoinQueries",
    "SJJoin",
    "SlidingJoin",
    "State",
    "Triples",
    "WindowJoin",
]

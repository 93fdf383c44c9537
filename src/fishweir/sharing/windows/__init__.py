"""Sliding window joins of two streams of tuples: all queries over a pair of streams are joined together.

`queries` says what comes in, `triples` what goes out; `join` is what all strategies share: probe, insert, invalidate
over the retained tuples of each `side`. `shared` is the fast one and the default, with `groups` and `query_sets`.
`sj_join` is the paper's, with `decompose`; `ibs_js` is its baseline; `oracle` is the naive one.
Paper: Spatial Join CQ, section 6.
"""

from collections.abc import Callable

from fishweir.sharing.windows.ibs_js import IBSJS
from fishweir.sharing.windows.join import Arrivals, SlidingJoin, State, WindowJoin
from fishweir.sharing.windows.queries import ALL_ROWS, LEFT, OPERATORS, RIGHT, Comparisons, JoinQueries
from fishweir.sharing.windows.shared import SharedJoin
from fishweir.sharing.windows.sj_join import SJJoin
from fishweir.sharing.windows.triples import Triples

STRATEGIES: dict[str, Callable[[JoinQueries], SlidingJoin]] = {
    "shared": SharedJoin,
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
    "SharedJoin",
    "SlidingJoin",
    "State",
    "Triples",
    "WindowJoin",
]

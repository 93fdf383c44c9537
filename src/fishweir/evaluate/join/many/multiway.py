"""A join table prepared for an MJoin: the contents of its rows, the reaches of its windows, its views of runs."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fishweir.algebra.joins import JoinTemplate
from fishweir.evaluate.join.join_tables import JoinTable

if TYPE_CHECKING:
    from fishweir.evaluate.join.many.side_views import SideView


@dataclass(frozen=True)
class MultiwayJoin:
    table: JoinTable

    @property
    def template(self) -> JoinTemplate:
        return self.table.template

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """The number of nodes in the rows of each side. Results of joins over columns have no nodes."""
        return tuple(0 if side.columns else len(side.outputs) for side in self.template.sides)

    def value(self, side: int, node: int, hashed: bool) -> int:
        """The position of a value in the rows of a side."""
        return self.table.values[side].index((node, hashed))

    @cached_property
    def reaches(self) -> NDArray[np.float64]:
        """How long documents wait, by side and query. A document that does not wait must be the newest of its result, 0
        seconds before it."""
        return np.maximum(np.stack(self.table.reaches), 0.0)

    @cached_property
    def longest(self) -> NDArray[np.float64]:
        """The longest window of each side."""
        return np.asarray(self.reaches.max(axis=1, initial=-1.0))

    @cached_property
    def views(self) -> OrderedDict[tuple[int, int], SideView]:
        """Cached views of runs by side (side_views.py)."""
        return OrderedDict()

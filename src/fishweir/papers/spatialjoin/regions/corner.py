"""Corner transformation: turns regions into points.

In: query regions over n attributes. Out: points in the transform space of 2n axes, first the n lower ends, then the n
upper ones; and for a data cluster its spatial join window, the part of that space that contains the regions that
overlap the cluster. Shared: large regions that overlap each other in the original space are separate points here, so an
index over them has no overlapping nodes.
Paper: Spatial Join CQ, sections 5.2 and 5.4, definition 3, lemma 2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fishweir.evaluate.select.boxes.regions import Boxes, Keys


def corner_points(boxes: Boxes) -> Keys:
    """(queries, 2 * attributes): a region [lx, rx] x [ly, ry] is the point (lx, ly, rx, ry)."""
    return np.concatenate((boxes.low, boxes.high), axis=1)


@dataclass(frozen=True, slots=True)
class SpatialJoinWindow:
    """SJW(P) = [least, right] x [left, greatest] on each attribute's two axes, for P = [left, right]."""

    left: Keys
    right: Keys

    @classmethod
    def of_cluster(cls, tuples: Keys) -> SpatialJoinWindow:
        """The window of the cluster's bounding box."""
        return cls(tuples.min(axis=0), tuples.max(axis=0))

    def holds(self, low: Keys, high: Keys) -> npt.NDArray[np.bool_]:
        """Mask of the points (low, high) that lie in the window."""
        return np.asarray(((low <= self.right) & (high >= self.left)).all(axis=1))

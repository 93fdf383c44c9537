"""Matches: what the queries of a group select from a batch of documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fishweir.evaluate.arrays import Ints


@dataclass(frozen=True)
class Matches:
    """Row i: document, output nodes, and its queries: slices or members between the offsets."""

    documents: Ints
    nodes: Ints
    slice_offsets: Ints
    slices: Ints
    member_offsets: Ints
    members: NDArray[np.integer[Any]]

    def __len__(self) -> int:
        return len(self.documents)

"""Determines which documents are ordinary, so that the walk can read their bytes directly.

In: bodies as received. Out: for each body, whether it is certainly well-formed and contains nothing that only libxml2
can resolve (check_kernels.py). All other documents are parsed by libxml2, which accepts them or reports the error.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fishweir.evaluate.arrays import Ints
from fishweir.evaluate.witnesses.automaton.attribute_kernels import MOST_ATTRIBUTES, MOST_DECLARATIONS
from fishweir.evaluate.witnesses.automaton.check_kernels import DEEPEST, check_documents
from fishweir.evaluate.witnesses.automaton.piece_kernels import PIECE


def are_ordinary(bodies: Sequence[bytes]) -> NDArray[np.bool_]:
    bounds = np.append(0, np.cumsum([len(body) for body in bodies])).astype(np.int64)
    return check(np.frombuffer(b"".join(bodies), np.uint8), bounds)


def check(data: NDArray[np.uint8], bounds: Ints) -> NDArray[np.bool_]:
    """The same for concatenated bodies, each the bytes between two bounds."""
    ordinary = np.zeros(len(bounds) - 1, np.bool_)
    check_documents(data, bounds, *scratch(), np.empty((0, PIECE), np.int64), ordinary)
    return ordinary


def scratch() -> tuple[Ints, Ints, Ints]:
    """What the check needs for the open elements, the declarations in force and the attributes of a tag."""
    stack, declared, found = (
        np.zeros((size + 2, 4), np.int64) for size in (DEEPEST, MOST_DECLARATIONS, MOST_ATTRIBUTES)
    )
    return stack, declared, found

"""Which documents are ordinary, so that the walk reads their bytes as they are.

In: bodies as they came. Out: for each whether it is surely well formed and has nothing that only libxml2 resolves
(check_kernels.py). Whatever is not ordinary is parsed by libxml2, which accepts it or says why not.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fishweir.evaluate.witnesses.automaton.check_kernels import (
    DEEPEST,
    MOST_ATTRIBUTES,
    MOST_DECLARATIONS,
    check_documents,
)


def are_ordinary(bodies: Sequence[bytes]) -> NDArray[np.bool_]:
    bounds = np.append(0, np.cumsum([len(body) for body in bodies])).astype(np.int64)
    ordinary = np.zeros(len(bodies), np.bool_)
    stack, declared, found = (
        np.zeros((size + 2, 3), np.int64) for size in (DEEPEST, MOST_DECLARATIONS, MOST_ATTRIBUTES)
    )
    check_documents(np.frombuffer(b"".join(bodies), np.uint8), bounds, stack, declared, found, ordinary)
    return ordinary

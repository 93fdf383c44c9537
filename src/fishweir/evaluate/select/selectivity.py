"""Selectivities of atoms: the share of a source's values that satisfy each constant of a group.

In: the constants of one signature and what is known of the path's values. Out: one number a constant.
Words are counted, equality is 1 by the distinct values, the rest is read off the sample; where nothing is
known the operator decides, and longer words are taken as rarer.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fishweir.algebra.predicates import AtomSignature
from fishweir.algebra.texts import TEXT_CONDITIONS, date_part, words
from fishweir.algebra.values import to_number
from fishweir.evaluate.arrays import Column
from fishweir.evaluate.statistics import EVERY_OPERATOR, PathStatistics

Floats = NDArray[np.float64]
LEAST = 1e-6


def selectivities(signature: AtomSignature, column: Column, known: PathStatistics) -> Floats:
    if signature.op == "exists":
        return np.full(len(column), 1.0)
    if signature.type == "words":
        return _of_words(column, known)
    if not known.sample:
        return np.full(len(column), EVERY_OPERATOR.get(signature.op, 0.05))
    if signature.op == "=":
        return np.full(len(column), 1 / known.distinct if signature.part == "value" else 0.05)
    if isinstance(column, np.ndarray):
        return _of_numbers(signature, column, known)
    if signature.op in TEXT_CONDITIONS:
        return np.full(len(column), EVERY_OPERATOR.get(signature.op, 0.05))
    ordered = np.sort(np.array(known.sample, dtype=object))
    return _share(signature.op, ordered, np.array(column.to_pylist(), dtype=object))


def _of_words(column: pa.LargeStringArray, known: PathStatistics) -> Floats:
    """The rarest word of a constant decides."""
    counted = dict(known.words)
    total = max(known.worded, 1)
    unseen = min(counted.values(), default=1) / 2 if counted else 0.0

    def share(word: str) -> float:
        if counted:
            return counted.get(word, unseen) / total
        return 0.1 / max(len(word), 1)

    distinct = column.dictionary_encode()
    by_text = [min(map(share, words(text)), default=1.0) for text in distinct.dictionary.to_pylist()]
    return np.clip(np.array(by_text, dtype=np.float64), LEAST, 1.0)[distinct.indices.to_numpy()]


def _of_numbers(signature: AtomSignature, column: Floats, known: PathStatistics) -> Floats:
    part = signature.part
    values = [to_number(text) if part == "value" else date_part(text, part) for text in known.sample]
    ordered = np.sort(np.array([value for value in values if value is not None], dtype=np.float64))
    return _share(signature.op, ordered, column) * (len(ordered) / len(values))


def _share(op: str, ordered: NDArray[np.generic], constants: NDArray[np.generic]) -> Floats:
    """The share of sorted values for which `value op constant`."""
    below, upto = np.searchsorted(ordered, constants, "left"), np.searchsorted(ordered, constants, "right")
    size = len(ordered)
    hits = {">": size - upto, ">=": size - below, "<": below, "<=": upto, "=": upto - below}
    return np.asarray((hits.get(op, size - upto + below) + 0.5) / (size + 1))

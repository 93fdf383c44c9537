"""The naive evaluator of joins of several streams: every combination of documents tried. Obviously right, never fast.

In: a join's shape, its constants, the documents of each block's source in arrival order. Out: the combinations that
are results, each a document per block. With t the time of the newest, each other one must be in its own window at t: at
most so many seconds before t, or among the newest rows of its stream, seen from each of the newest as a pair would be.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from fishweir.algebra.column_joins import pair_holds
from fishweir.algebra.documents import Document
from fishweir.algebra.join_oracle import newer
from fishweir.algebra.nodes import Constant, Shape

Combination = tuple[Document, ...]


def evaluate_many(
    shape: Shape, constants: Sequence[Constant], streams: Sequence[Sequence[Document]]
) -> list[Combination]:
    """The results over all documents. A document stands for one block only."""
    assert shape.formula is not None, "only SQL joins several streams"
    return [
        some
        for some in product(*streams)
        if len({id(document.root) for document in some}) == len(some)
        and pair_holds(shape.formula, constants, [document.root for document in some])
        and all(_in_windows(shape, constants, some, streams))
    ]


def _in_windows(
    shape: Shape, constants: Sequence[Constant], some: Combination, streams: Sequence[Sequence[Document]]
) -> Iterator[bool]:
    time = max(document.timestamp for document in some)
    newest = [document for document in some if document.timestamp == time]
    for window, own, every in zip(shape.windows, some, streams, strict=True):
        end = float(constants[window.end.index])
        if window.rows:
            yield all(newer(own, later, every) < end for later in newest)
        else:
            yield time - own.timestamp <= end


def in_time_order(some: Combination) -> list[str]:
    """The ids of a result's documents; of equal times in the order of the blocks."""
    return [document.id for document in sorted(some, key=lambda document: document.timestamp)]

"""The naive evaluator of joins: every pair of documents, every pair of embeddings tried. Obviously right, never fast.

In: a join's shape, its constants, the documents of both sources with their stream and place in it. Out: one binding
per result. Every join strategy and the Spark job are compared with this.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

from fishweir.algebra.alternatives import parts
from fishweir.algebra.column_joins import pair_holds
from fishweir.algebra.documents import Document
from fishweir.algebra.joins import admits, named, row_variables
from fishweir.algebra.nodes import Comparison, Constant, PatternNode, Shape, Slot
from fishweir.algebra.oracle import Node, embeddings, holds

Side = Sequence[Mapping[str, Node]]


@dataclass(frozen=True, slots=True)
class Pair:
    """One result of a join: its documents, left and right, and the nodes that it is over."""

    left: Document
    right: Document
    binding: Mapping[str, Node]

    @property
    def documents(self) -> list[str]:
        """Ids in time order; of equal times the left one first."""
        return [document.id for document in sorted((self.left, self.right), key=lambda d: d.timestamp)]

    @property
    def timestamp(self) -> float:
        return max(self.left.timestamp, self.right.timestamp)


def evaluate_join(
    shape: Shape, constants: Sequence[Constant], lefts: Sequence[Document], rights: Sequence[Document]
) -> list[Pair]:
    """The results over all documents of the two sources, in arrival order. A document does not meet itself."""
    ones = [(left, _sides(shape, 0, constants, left)) for left in lefts]
    twos = [(right, _sides(shape, 1, constants, right)) for right in rights]
    return [
        pair
        for left, one in ones
        for right, two in twos
        if left.root is not right.root and _meet(shape, constants, left, right, lefts, rights)
        for pair in _pairs(shape, constants, left, right, one, two)
    ]


def pairs(shape: Shape, constants: Sequence[Constant], left: Document, right: Document) -> Iterator[Pair]:
    """The results of two documents, whatever their times: one per binding of the variables that a result is over."""
    one, two = _sides(shape, 0, constants, left), _sides(shape, 1, constants, right)
    return _pairs(shape, constants, left, right, one, two)


def _sides(shape: Shape, side: int, constants: Sequence[Constant], document: Document) -> list[Side]:
    """The ways one block lies over a document, for each alternative."""
    return [list(_side(part, side, constants, document)) for part in parts(shape)]


def _side(shape: Shape, side: int, constants: Sequence[Constant], document: Document) -> Iterator[Mapping[str, Node]]:
    for binding in embeddings(_pattern(shape, side), document, constants):
        if _hold(shape.conditions, binding, constants):
            yield binding


def _pairs(
    shape: Shape,
    constants: Sequence[Constant],
    left: Document,
    right: Document,
    ones: Sequence[Side],
    twos: Sequence[Side],
) -> Iterator[Pair]:
    if shape.formula is not None and not pair_holds(shape.formula, constants, (left.root, right.root)):
        return
    over = result_variables(shape)
    found: dict[tuple[tuple[int, str], ...], Mapping[str, Node]] = {}
    for part, lefts, rights in zip(parts(shape), ones, twos, strict=True):
        for one, two in product(lefts, rights):
            both = {**one, **two}
            if _hold(part.conditions, both, constants):
                found.setdefault(tuple(both[name].order if name in both else (-1, "") for name in over), both)
    names = over if shape.alternatives else _shown([_pattern(shape, 0), _pattern(shape, 1)], over)
    for key in sorted(found):
        yield Pair(left, right, {name: found[key][name] for name in names if name in found[key]})


def result_variables(shape: Shape) -> Sequence[str]:
    """The variables that a result is over: with alternatives, those of the output, which all of them have."""
    if shape.alternatives:
        return shape.output_variables
    return [name for side in (0, 1) for name in row_variables(shape, side)]


@lru_cache(maxsize=1024)
def _pattern(shape: Shape, side: int) -> PatternNode:
    return named(shape.blocks[side].pattern, f"_n{side}")


def _hold(conditions: Sequence[Comparison], binding: Mapping[str, Node], constants: Sequence[Constant]) -> bool:
    """Whether those hold of which both ends are bound."""
    bound = [c for c in conditions if c.left in binding and (isinstance(c.right, Slot) or c.right in binding)]
    return all(holds(condition, binding, constants) for condition in bound)


def _shown(patterns: Sequence[PatternNode], over: Sequence[str]) -> list[str]:
    """The variables of a result: all names of the nodes that it is over."""
    nodes = (node for pattern in patterns for node in pattern.walk())
    return [name for node in nodes if node.variables[0] in over for name in node.variables]


def _meet(
    shape: Shape,
    constants: Sequence[Constant],
    left: Document,
    right: Document,
    lefts: Sequence[Document],
    rights: Sequence[Document],
) -> bool:
    window = shape.window
    assert window is not None
    ends = [None if slot is None else float(constants[slot.index]) for slot in (window.left, window.right)]
    times = (left.timestamp, right.timestamp)
    for i, (rows, own, later, all_) in enumerate(
        ((window.left_rows, left, right, lefts), (window.right_rows, right, left, rights))
    ):
        if rows:
            if newer(own, later, all_) >= ends[i]:  # type: ignore[operator]
                return False
            ends[i] = float("inf")
    return admits(window, ends[0], ends[1], *times)


def newer(own: Document, later: Document, documents: Sequence[Document]) -> int:
    """How many documents of its source have come after `own` when `later` has, itself among them if it is of the same
    source: by time, equal times by arrival. Those of the time of a document of another source have come before it,
    unless `own` is one of them."""
    order = sorted(documents, key=lambda document: document.timestamp)
    place, end = (next((i for i, document in enumerate(order) if document is one), None) for one in (own, later))
    assert place is not None, "not a document of its source"
    if end is not None:
        return max(0, end - place)
    if own.timestamp == later.timestamp:
        return 0
    return sum(document.timestamp <= later.timestamp for document in order[place + 1 :])

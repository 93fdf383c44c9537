"""The naive evaluator of annotation joins: each item against the whole window. Obviously correct, never fast.

In: a selection with joins, its constants, the items of all sources with their arrival times. Out: the items that are
results, each with its annotation. The shared evaluation and the Spark job are compared with this.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fishweir.algebra.column_joins import block_of, is_between, stripped
from fishweir.algebra.documents import Document, values_at
from fishweir.algebra.feeds import Annotation, Filter, Selection
from fishweir.algebra.formula import And, Atom, Formula, Not, Or
from fishweir.algebra.nodes import Constant, Source
from fishweir.algebra.operators import find_condition
from fishweir.algebra.oracle import item_holds, values_compare
from fishweir.records import dataclass


@dataclass(frozen=True, eq=False)
class Arrival:
    """An item: its source, the source's place among all, its number there, and when it came."""

    source: Source
    stream: int
    number: int
    arrived: float
    document: Document

    @property
    def order(self) -> tuple[float, int, int]:
        """By time; of equal times by stream and number."""
        return (self.document.timestamp, self.stream, self.number)


@dataclass(frozen=True)
class Annotated:
    """A result: the item, and by join the items of its annotation in order."""

    item: Arrival
    annotation: dict[int, tuple[Arrival, ...]]


def annotate(selection: Selection, constants: Sequence[Constant], arrivals: Sequence[Arrival]) -> Iterator[Annotated]:
    """The results among all items that arrived."""
    for item in arrivals:
        ways = [part for part in selection.filters if _comes(part, constants, item)]
        met = {
            join: tuple(_met(selection.joins[join], constants, item, arrivals))
            for join in sorted({join for part in ways for join in part.joins})
        }
        held = [part for part in ways if all(met[join] for join in part.joins)]
        if held:
            yield Annotated(item, {join: met[join] for part in held for join in sorted(part.joins)})


def _comes(part: Filter, constants: Sequence[Constant], item: Arrival) -> bool:
    return part.source == item.source and item_holds(part.formula, constants, item.document.root)


def window_of(
    join: Annotation, constants: Sequence[Constant], item: Arrival, arrivals: Sequence[Arrival]
) -> list[Arrival]:
    """What the window holds when the item arrives, oldest first; never the item itself."""
    time = item.document.timestamp
    there = [
        one
        for one in arrivals
        if one is not item and one.arrived <= item.arrived and one.document.timestamp <= time
        if any(_comes(part, constants, one) for part in join.filters)
    ]
    there.sort(key=lambda one: one.order)
    if join.window.items is not None:
        return there[-join.window.items :]
    assert join.window.seconds is not None
    return [one for one in there if time - one.document.timestamp <= join.window.seconds]


def _met(
    join: Annotation, constants: Sequence[Constant], item: Arrival, arrivals: Sequence[Arrival]
) -> Iterator[Arrival]:
    for other in window_of(join, constants, item, arrivals):
        if _meets(join.condition, constants, item, other):
            yield other


def _meets(formula: Formula, constants: Sequence[Constant], item: Arrival, other: Arrival) -> bool:
    """Whether a join's condition holds for an item and one of the window."""
    match formula:
        case And(parts):
            return all(_meets(part, constants, item, other) for part in parts)
        case Or(parts):
            return any(_meets(part, constants, item, other) for part in parts)
        case Not(part):
            return not _meets(part, constants, item, other)
    roots = item.document.root, other.document.root
    if not is_between(formula):
        return item_holds(stripped(formula), constants, roots[block_of(formula.path)])
    assert isinstance(formula.right, tuple)
    lefts, rights = values_at(roots[0], formula.path[1:]), values_at(roots[1], formula.right[1:])
    return any(compare(left, formula, right, constants) for left in lefts for right in rights)


def compare(left: str, condition: Atom, right: str, constants: Sequence[Constant]) -> bool:
    on_texts = find_condition(condition.op)
    if on_texts is None:
        return values_compare(left, condition.op, right)
    if on_texts.share is not None:
        share = on_texts.share if condition.threshold is None else constants[condition.threshold.index]
        right = f"{share}\t{right}"
    return on_texts.meaning(left, right)

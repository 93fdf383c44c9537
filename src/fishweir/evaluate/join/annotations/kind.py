"""Annotation joins: semi-joins that collect what they met (RoSeS 3.2). One group holds all of a segment; its sides are
matched among the filters of their sources."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from fishweir.algebra.nodes import Constant
from fishweir.evaluate.arrays import Ints
from fishweir.evaluate.group import (
    Bundle,
    Described,
    Explained,
    Group,
    Kept,
    Kind,
    Placed,
    QueryRow,
    Stage,
    State,
    Strategy,
)
from fishweir.evaluate.join.annotations.annotating import Annotated, annotate
from fishweir.evaluate.join.annotations.annotation_stage import AnnotationStage
from fishweir.evaluate.join.annotations.annotation_tables import (
    AnnotationTable,
    annotations_from_arrays,
    build_annotations,
    merge_annotations,
    side_rows,
)
from fishweir.evaluate.join.annotations.explain import describe_annotations, explain_annotation
from fishweir.evaluate.join.annotations.items import Items, items_from_arrays, some_items
from fishweir.evaluate.join.ranks import arrival_blocks
from fishweir.evaluate.results import ResultRows, result_batch, to_lists
from fishweir.evaluate.statistics import Statistics


class Annotations(Kind):
    name, misses_late = "annotations", True

    def build(self, rows: Iterable[QueryRow], statistics: Statistics) -> list[Group]:
        return [build_annotations(rows)]

    def side_rows(self, rows: Iterable[QueryRow]) -> Iterable[QueryRow]:
        return side_rows(rows)

    def sides(self, group: AnnotationTable) -> Ints:
        return group.sides

    def merge(self, groups: Sequence[AnnotationTable], dropped: Ints, statistics: Statistics) -> list[Group]:
        merged = merge_annotations(groups, dropped)
        return [] if merged is None else [merged]

    def read(self, header: Any, arrays: Mapping[str, Any]) -> Group:
        return annotations_from_arrays(header, arrays)

    def stage(self, operators: Sequence[AnnotationTable]) -> Stage:
        return CollectingStage(operators)

    def read_state(self, arrays: Mapping[str, Any]) -> State:
        return items_from_arrays(arrays)

    def explain(self, number: int, template: Any, constants: Sequence[Constant], about: Explained) -> list[str]:
        return explain_annotation(number, template, constants, about)

    def describe(self, bundles: Sequence[Placed]) -> tuple[list[Described], list[str]]:
        return describe_annotations(bundles), []


class CollectingStage(AnnotationStage):
    """Probes with the items of this micro-batch for what is in their windows."""

    def probe(self, new: Sequence[Kept], old: Sequence[State], part: int, parts: int) -> Iterator[ResultRows]:
        windows: list[Any] = list(old)
        entering: list[Any] = [kept.state for kept in new if kept.state is not None]
        primaries: list[Any] = [kept.current for kept in new if kept.current is not None]
        every = [*entering, *primaries]
        none = np.empty(0, np.uint64)
        for block in arrival_blocks([items.times for items in every], [items.arrivals for items in every]):
            there, asked = block[: len(entering)], block[len(entering) :]
            windows += [some_items(*one, self.indexed) for one in zip(entering, there, strict=True) if one[1].any()]
            for items, chosen in zip(primaries, asked, strict=True):
                primary = some_items(items, chosen, none)
                for found in annotate(self, primary, windows, part, parts):
                    yield annotated_rows(primary, found)


def annotated_rows(primary: Items, block: Annotated) -> ResultRows:
    """An item with the items collected, by join."""
    batch = result_batch(
        len(block),
        stream=primary.streams[block.rows],
        document=primary.numbers[block.rows],
        side=0,
        other_streams=to_lists(block.item_starts, block.streams),
        others=to_lists(block.item_starts, block.numbers),
        each=False,
        joins=to_lists(block.item_starts, block.joins),
        timestamp=primary.times[block.rows],
        members=to_lists(block.member_starts, block.members),
    )
    return ResultRows(batch, len(block))


class ByWindows(Strategy):
    """All annotation joins of a plan together: windows over the same items are one, equal comparisons are one."""

    name, kind = "windows", "annotations"

    def take(self, groups: Mapping[int, Any], statistics: Statistics) -> list[Bundle]:
        return [self.bundle([place]) for place in groups]

    def operator(self, placed: Placed) -> AnnotationTable:
        (table,) = placed.groups
        return table  # type: ignore[return-value]

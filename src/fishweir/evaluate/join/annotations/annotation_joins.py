"""Annotation joins as an operator of the join stage: semi-joins that collect their matches (RoSeS 3.2).

In: the tables of a segment's joins that collect. Out: the state of items as rows of runs (lists of the sides that an
item belongs to, and the features that are compared), its retention, and for the items of a micro-batch the matches in
their windows, each item with all its join partners.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from fishweir.algebra.nodes import Source
from fishweir.evaluate.arrays import Ints
from fishweir.evaluate.group import Batch
from fishweir.evaluate.join.annotations.annotating import AnnotationBlock, annotate
from fishweir.evaluate.join.annotations.comparisons import feature_comparison
from fishweir.evaluate.join.annotations.features import Feature, listed_rows
from fishweir.evaluate.join.annotations.item_views import IN_WINDOWS, TO_ANNOTATE, ItemView, item_view, place_of
from fishweir.evaluate.join.annotations.links import Links
from fishweir.evaluate.join.annotations.retention import Reaches
from fishweir.evaluate.join.join_tables import JoinTable
from fishweir.evaluate.join.operators import Joins, ProbeOrder, RowSide
from fishweir.evaluate.join.pairing import RunContext
from fishweir.evaluate.join.state import Run, SideRows
from fishweir.evaluate.results import ResultRows, result_batch, to_lists
from fishweir.evaluate.watermarks import Watermarks


class AnnotationJoins(Joins):
    """All annotation joins of a segment. Windows over the same items are shared, and so are equal comparisons."""

    keeps_all = False

    @property
    def order(self) -> ProbeOrder:
        return ProbeOrder.ARRIVAL

    def __init__(self, tables: Sequence[JoinTable]) -> None:
        super().__init__(tables)
        self.links = Links(self.tables)

    @cached_property
    def row_sides(self) -> Sequence[RowSide]:
        sources = tuple(self.sources)
        lists = ((TO_ANNOTATE, self.links.to_annotate), (IN_WINDOWS, self.links.windows))
        return [
            *(RowSide(feature.key, False, (source,), feature.rows) for source, feature in self._features),
            *(RowSide(key, True, sources, partial(_side_lists, key, sides)) for key, sides in lists),
        ]

    @property
    def _features(self) -> Iterator[tuple[Source, Feature]]:
        """The distinct features that are compared, by source."""
        found: dict[tuple[Source, Feature], None] = {}
        for template in (table.template for table in self.tables):
            for edge in template.edges:
                both, side = feature_comparison(template, edge), edge.right_side
                found |= {(source, both.left): None for source in template.awaited(side)}
                found |= {(source, both.right): None for source in template.sides[side].sources}
        return iter(found)

    @cached_property
    def _reaches(self) -> Reaches:
        return Reaches(self.links)

    def listed(self, runs: Sequence[Run], watermarks: Watermarks) -> list[NDArray[np.bool_]]:
        views = [item_view(run) for run in runs]
        return [self._reaches.listed(run, views, watermarks) for run in runs]

    def find(self, new: Run, old: Sequence[Run], part: int, parts: int, known: RunContext) -> Iterator[ResultRows]:
        """Joins each item with the items that have arrived before it or together with it."""
        items, windows = item_view(new), [item_view(run) for run in known.runs]
        for found in annotate(self.links, items, windows, part, parts):
            yield annotated_rows(items, found)


def _side_lists(key: int, sides: Ints, batch: Batch) -> SideRows | None:
    """Rows that list for each document which of some sides it belongs to."""
    place = place_of(sides, batch.sides.sides)
    there = place >= 0
    pairs = np.unique(batch.sides.documents[there] << 32 | place[there])
    documents, counts = np.unique(pairs >> 32, return_counts=True)
    return listed_rows(key, documents, members=(counts, sides[pairs & 0xFFFFFFFF])) if len(documents) else None


def annotated_rows(items: ItemView, block: AnnotationBlock) -> ResultRows:
    """Result rows: an item with the collected items, by join."""
    batch = result_batch(
        len(block),
        stream=items.streams[block.rows],
        document=items.numbers[block.rows],
        side=0,
        other_streams=to_lists(block.item_starts, block.streams),
        others=to_lists(block.item_starts, block.numbers),
        each=False,
        joins=to_lists(block.item_starts, block.joins),
        timestamp=items.times[block.rows],
        members=to_lists(block.member_starts, block.members),
    )
    return ResultRows(batch, len(block))

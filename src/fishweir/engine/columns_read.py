"""The columns that SQL queries read: for declared tuples, they must be declared."""

from __future__ import annotations

from collections.abc import Iterator

from fishweir.algebra.column_joins import block_of
from fishweir.algebra.feeds import FeedQuery, Selection
from fishweir.algebra.formula import RelativePath, paths_of
from fishweir.algebra.nodes import ColumnOutput, Shape, Source


def columns_read(shape: Shape | Selection | FeedQuery) -> Iterator[tuple[Source, list[RelativePath]]]:
    """The columns that a query in SQL, or the key of any query, reads of each of its sources."""
    if isinstance(shape, Shape | Selection) and shape.distinct is not None:
        for source in shape.sources:
            yield source, list(shape.distinct.paths)
    if isinstance(shape, Selection) and shape.columns:
        shown = [path for _, path in shape.output.columns] if shape.output else []
        for part in shape.filters:
            yield part.source, [*shown, *paths_of(part.formula)]
    if isinstance(shape, Shape) and shape.formula is not None:
        read = list(paths_of(shape.formula))
        for i, block in enumerate(shape.blocks):
            own = [column.path for column in shape.columns if isinstance(column, ColumnOutput) and column.block == i]
            yield block.source, [*own, *(path[1:] for path in read if block_of(path) == i)]

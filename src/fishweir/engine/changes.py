"""Queries that refer to the previous version of a row in a changing file: they read its change stream.

A query of any language names `old` or `ratio` below the row, as in SQL's `old.price`. Which streams have rows is known
only at registration, so registration changes the source to `NAME.changes`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fishweir.algebra.changes import SUFFIX
from fishweir.algebra.column_joins import block_of
from fishweir.algebra.feeds import FeedQuery, Filter, Selection
from fishweir.algebra.formula import RelativePath, paths_of
from fishweir.algebra.nodes import OLD, RATIO, Block, ColumnOutput, Shape, Source, StreamDefinition

Streams = Mapping[str, StreamDefinition]


def with_changes(query: Shape | Selection | FeedQuery, streams: Streams) -> Shape | Selection | FeedQuery:
    """The query over changes if it refers to them; otherwise the same query."""
    if isinstance(query, Shape):
        return _shape(query, streams)
    if not isinstance(query, Selection):
        return query
    shown = [path for _, path in query.output.columns] if query.output else []
    filters = tuple(_filter(one, shown, streams) for one in query.filters)
    return query if filters == query.filters else replace(query, filters=filters)


def _shape(shape: Shape, streams: Streams) -> Shape:
    alternatives = tuple(_shape(one, streams) for one in shape.alternatives)
    blocks = tuple(_block(shape, i, block, streams) for i, block in enumerate(shape.blocks))
    unless = shape.unless and _shape(shape.unless, streams)
    if (blocks, alternatives, unless) == (shape.blocks, shape.alternatives, shape.unless):
        return shape
    found = replace(shape, blocks=blocks, alternatives=alternatives, unless=unless)
    return found if unless is None else _over(found, unless.blocks[0].source)


def _over(shape: Shape, source: Source) -> Shape:
    """A query over one document with another source: documents and their matches have the same one."""
    blocks = tuple(replace(block, source=source) for block in shape.blocks)
    return replace(shape, blocks=blocks, alternatives=tuple(_over(one, source) for one in shape.alternatives))


def _filter(one: Filter, shown: list[RelativePath], streams: Streams) -> Filter:
    asks = any(_is_past(path) for path in (*shown, *paths_of(one.formula)))
    return replace(one, source=_changes(one.source)) if asks and _has_rows(one.source, streams) else one


def _block(shape: Shape, number: int, block: Block, streams: Streams) -> Block:
    if not _has_rows(block.source, streams):
        return block
    asks = any(node.step.axis == "child" and node.step.name in (OLD, RATIO) for node in block.pattern.walk())
    if shape.formula is not None:
        columns = [one.path for one in shape.columns if isinstance(one, ColumnOutput) and one.block == number]
        asks |= any(map(_is_past, columns)) or any(
            block_of(path) == number and _is_past(path[1:]) for path in paths_of(shape.formula)
        )
    return replace(block, source=_changes(block.source)) if asks else block


def _is_past(path: RelativePath) -> bool:
    return len(path) > 1 and path[0].axis == "child" and path[0].name in (OLD, RATIO)


def _has_rows(source: Source, streams: Streams) -> bool:
    return not source.dtd and source.name in streams and streams[source.name].rows is not None


def _changes(source: Source) -> Source:
    return Source(f"{source.name}{SUFFIX}")

"""The output of a query as a stream that others read: the columns and types of its tuples, and whether it keeps items.

In: the shape of a published query and the definitions of the streams it reads. Out: the definition of its own stream. A
select list yields tuples; each column has the type of its source, and values read from documents are strings. A query
that selects whole tuples of one stream passes them on unchanged. All other outputs are documents without declared
columns: constructed XML, and `*` over documents, whose columns vary.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from fishweir.algebra.alternatives import parts
from fishweir.algebra.feeds import Selection
from fishweir.algebra.formula import RelativePath
from fishweir.algebra.nodes import (
    NO_OUTPUT,
    AllColumnsOutput,
    ColumnOutput,
    Shape,
    Source,
    StreamDefinition,
    VariableOutput,
)

Streams = Mapping[str, StreamDefinition]
Columns = tuple[tuple[str, str], ...]


def output_stream(name: str, shape: Shape | Selection, streams: Streams) -> StreamDefinition:
    """The stream of a query's results."""
    element = None
    if keeps_items(shape) and not _has_select_list(shape):
        source = _only_source(shape, streams)
        element = source.tuple_element if source is not None and source.is_tuples else None
    return StreamDefinition(name, columns=output_columns(shape, streams), virtual=name, element=element)


def output_columns(shape: Shape | Selection, streams: Streams) -> Columns:
    """The names and types of the columns of a query's results; none if they are documents."""
    if isinstance(shape, Shape) and shape.columns:
        return _joined(shape.columns, [_stream(block.source, streams) for block in shape.blocks])
    if keeps_items(shape):
        source = _only_source(shape, streams)
        return () if source is None else source.columns
    if isinstance(shape, Selection) and shape.output is not None:
        source = _only_source(shape, streams)
        return tuple((name, _kind(path, source)) for name, path in shape.output.columns)
    return ()


def keeps_items(shape: Shape | Selection) -> bool:
    """Whether each result is a whole, unchanged document or tuple, which then keeps its id."""
    if isinstance(shape, Selection):
        return not shape.joins and (shape.output is None or not shape.output.columns)
    return shape.output == NO_OUTPUT or all(_keeps_documents(part) for part in parts(shape))


def _keeps_documents(shape: Shape) -> bool:
    if len(shape.blocks) != 1 or len(shape.output) != 1:
        return False
    (block,), (shown,) = shape.blocks, shape.output
    whole = block.pattern.step.axis in ("item", "child")
    return whole and isinstance(shown, VariableOutput) and not shown.content and shown.name in block.pattern.variables


def _has_select_list(shape: Shape | Selection) -> bool:
    return isinstance(shape, Selection) and shape.output is not None


def _only_source(shape: Shape | Selection, streams: Streams) -> StreamDefinition | None:
    """The stream that all of a query's items come from; None if there are several."""
    sources = [b.source for b in shape.blocks] if isinstance(shape, Shape) else [f.source for f in shape.filters]
    return _stream(sources[0], streams) if len(set(sources)) == 1 else None


def _stream(source: Source, streams: Streams) -> StreamDefinition | None:
    return None if source.dtd else streams.get(source.name)


def _kind(path: RelativePath, source: StreamDefinition | None) -> str:
    """The declared type of a column; string if it is read from a document."""
    declared = dict(source.columns) if source is not None else {}
    return declared.get(path[0].name, "string") if len(path) == 1 else "string"


def _joined(
    columns: Sequence[ColumnOutput | AllColumnsOutput], sources: Sequence[StreamDefinition | None]
) -> tuple[tuple[str, str], ...]:
    """The columns of a join, named as in `construct.joined_columns`; none if `*` is over documents."""
    shown: list[Columns] = []
    for part in columns:
        source = sources[part.block]
        if isinstance(part, ColumnOutput):
            shown.append(((part.name, _kind(part.path, source)),))
        elif source is None or not source.is_tuples:
            return ()
        else:
            shown.append(source.columns)
    often = Counter(name for some in shown for name, _ in some)
    found: dict[str, str] = {}
    for part, some in zip(columns, shown, strict=True):
        whole = isinstance(part, AllColumnsOutput)
        found |= {f"{part.name}.{name}" if whole and often[name] > 1 else name: kind for name, kind in some}
    return tuple(found.items())

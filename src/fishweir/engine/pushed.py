"""Streams that programs may publish to."""

from __future__ import annotations

from fishweir.algebra.nodes import StreamDefinition
from fishweir.catalog.catalog import Catalog
from fishweir.errors import QueryError


def pushed_stream(catalog: Catalog, name: str) -> tuple[int, StreamDefinition]:
    """A stream that programs may append to, with its id."""
    streams = catalog.streams()
    if name not in streams:
        if catalog.query(name) is not None:
            raise QueryError(f"{name} is a query, not a stream: programs cannot publish to it")
        shown = ", ".join(sorted(name for name, (_, stream) in streams.items() if stream.virtual is None))
        raise QueryError(f"there is no stream {name}; existing streams: {shown or 'none'}")
    id, stream = streams[name]
    if stream.virtual is not None:
        raise QueryError(f"{name} contains the results of a query: programs cannot publish to it")
    return id, stream

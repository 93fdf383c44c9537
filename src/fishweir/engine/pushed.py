"""Streams that programs may publish to."""

from __future__ import annotations

from fishweir.algebra.nodes import StreamDefinition
from fishweir.catalog.catalog import Catalog
from fishweir.errors import QueryError


def open_to_all(catalog: Catalog, name: str) -> tuple[int, StreamDefinition]:
    """A stream that programs may append to, with its id."""
    known = catalog.streams()
    if name not in known:
        if catalog.query(name) is not None:
            raise QueryError(f"{name} is a query, not a stream: only its results are published there")
        shown = ", ".join(sorted(name for name, (_, stream) in known.items() if stream.virtual is None))
        raise QueryError(f"there is no stream {name}; there are: {shown or 'none'}")
    id, stream = known[name]
    if stream.virtual is not None:
        raise QueryError(f"{name} holds the results of a query: nothing else can be published there")
    return id, stream

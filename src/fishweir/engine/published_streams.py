"""The streams of published results with the queries that fill them, looked up again only after a change.

In: the catalog. Out: for each stream, its query and its input streams.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property

from fishweir.algebra.feeds import Selection
from fishweir.algebra.nodes import Shape, Source, StreamDefinition, sources_of
from fishweir.catalog.catalog import Catalog, Query
from fishweir.pipeline.event_time import Published
from fishweir.records import dataclass


@dataclass(frozen=True)
class PublishedStream:
    """A stream and its query, None if it was never registered."""

    stream: StreamDefinition
    query: Query | None

    @property
    def own(self) -> Shape | Selection | None:
        """The shape of the query that the stream is published by, unless the stream transforms it."""
        return self.query.shape if self.query and self.stream.virtual == self.stream.name else None

    @property
    def sources(self) -> set[Source]:
        return set() if self.query is None else set(self.query.shape.sources)


class PublishedStreams:
    """All of them, as of one version of the catalog."""

    def __init__(self, catalog: Catalog, version: int) -> None:
        self.version = version
        self._streams = catalog.streams()
        virtual = {id: stream for id, stream in self._streams.values() if stream.virtual is not None}
        queries = catalog.queries_named(sorted({str(stream.virtual) for stream in virtual.values()}))
        self.by_id = {id: PublishedStream(stream, queries.get(str(stream.virtual))) for id, stream in virtual.items()}

    @cached_property
    def _readers(self) -> Mapping[Source, list[int]]:
        """By source, the streams that belong to it."""
        found = defaultdict(list)
        for id, stream in self._streams.values():
            for source in sources_of(stream):
                found[source].append(id)
        return found

    def inputs(self, id: int) -> tuple[int, ...]:
        """The streams that the query of a stream reads."""
        return tuple(sorted({other for source in self.by_id[id].sources for other in self._readers.get(source, ())}))


class Progress(Mapping[int, Published]):
    """The progress of published streams. That of a stream is looked up when it is first needed, and then kept."""

    def __init__(self, streams: PublishedStreams, settled: Callable[[int], int]) -> None:
        self._streams, self._settled = streams, settled
        self._known: dict[int, Published] = {}

    def __getitem__(self, id: int) -> Published:
        if id not in self._known:
            inputs = self._streams.inputs(id)
            self._known[id] = Published(self._settled(id), inputs)
        return self._known[id]

    def __contains__(self, id: object) -> bool:
        return id in self._streams.by_id

    def __iter__(self) -> Iterator[int]:
        return iter(self._streams.by_id)

    def __len__(self) -> int:
        return len(self._streams.by_id)

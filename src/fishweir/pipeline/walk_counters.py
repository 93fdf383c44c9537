"""The counters of each stream's walk, kept with the stream: `streams/N/walked.json`.

They are informational and saved from time to time: a process that dies loses the newest counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from fishweir.algebra.nodes import Source, StreamDefinition, sources_of
from fishweir.evaluate.witnesses.counters import StreamCounters
from fishweir.pipeline.home import Home, read_json, write_json
from fishweir.pipeline.settings import WALKED


def load_walk_counters(home: Home, stream: int | str) -> StreamCounters:
    return StreamCounters.from_json(read_json(_file(home, stream), {}, rebuilt="counting again"))


def add_walk_counters(home: Home, totals: dict[str, StreamCounters], walked: Mapping[str, StreamCounters]) -> None:
    """Adds a micro-batch to the totals. The totals of a stream are loaded when it first has something to add."""
    for stream, counted in walked.items():
        if stream not in totals:
            totals[stream] = load_walk_counters(home, stream)
        totals[stream].add(counted)


def save_walk_counters(home: Home, totals: Mapping[str, StreamCounters], streams: Iterable[str]) -> None:
    for stream in streams:
        write_json(_file(home, stream), totals[stream].to_json())


def walk_counters_by_source(
    home: Home, streams: Iterable[tuple[int, StreamDefinition]]
) -> dict[Source, StreamCounters]:
    """The counters by stream, and by DTD over all streams that conform to it."""
    found: dict[Source, StreamCounters] = {}
    for id, stream in streams:
        walked = load_walk_counters(home, id)
        for source in sources_of(stream):
            found.setdefault(source, StreamCounters()).add(walked)
    return found


def _file(home: Home, stream: int | str) -> Path:
    return home.streams / str(stream) / WALKED

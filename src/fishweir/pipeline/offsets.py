"""Offsets: how far each stream has been read, and which slices of the logs a micro-batch takes.

An offset is the number of the last entry taken of each stream. A slice names entries of one log; the task that
gets it maps the log's file and reads the entries itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fishweir.pipeline.home import Home, open_log

Offsets = dict[str, int]
"""By stream id, as text: Spark keeps offsets as JSON."""


@dataclass(frozen=True)
class LogSlice:
    """Entries with after < number <= upto of one stream."""

    stream: int
    after: int
    upto: int


def heads(home: Home) -> Offsets:
    """The number of the last entry of each stream."""
    return {str(id): open_log(home.streams, id).head() for id in home.stream_ids()}


def next_offsets(home: Home, start: Mapping[str, int], documents: int | None) -> Offsets:
    """Where a micro-batch ends that begins at `start`: streams with entries waiting share `documents` equally; None
    takes all."""
    waiting = {id: head for id, head in heads(home).items() if head > start.get(id, 0)}
    if documents is None or not waiting:
        return {**start, **waiting}
    share = max(1, documents // len(waiting))
    return {**start, **{id: min(head, start.get(id, 0) + share) for id, head in waiting.items()}}


def slices_between(start: Mapping[str, int], end: Mapping[str, int]) -> list[LogSlice]:
    return [LogSlice(int(id), start.get(id, 0), upto) for id, upto in end.items() if upto > start.get(id, 0)]


def spread(slices: Sequence[LogSlice], tasks: int) -> list[list[LogSlice]]:
    """At most `tasks` parts with about equally many entries; slices are cut where needed."""
    total = sum(s.upto - s.after for s in slices)
    share = -(-total // tasks)
    parts: list[list[LogSlice]] = [[]]
    room = share
    for whole in slices:
        after = whole.after
        while after < whole.upto:
            if not room:
                parts.append([])
                room = share
            upto = min(whole.upto, after + room)
            parts[-1].append(LogSlice(whole.stream, after, upto))
            room -= upto - after
            after = upto
    return parts if total else []

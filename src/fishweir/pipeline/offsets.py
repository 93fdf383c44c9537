"""Offsets: how far each stream has been read, and which slices of the logs a micro-batch takes.

An offset is the number of the last entry taken of each stream. A slice names entries of one log; the task that
gets it maps the log's file and reads the entries itself.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fishweir.pipeline.home import Home, open_log
from fishweir.sealed import damaged

Offsets = dict[str, int]
"""By stream id, as text: commits are JSON."""


@dataclass(frozen=True)
class LogSlice:
    """Entries with after < number <= upto of one stream."""

    stream: int
    after: int
    upto: int


def heads(home: Home) -> Offsets:
    """The number of the last entry of each stream."""
    return {str(id): open_log(home.streams, id).head() for id in home.stream_ids()}


def check_logs(home: Home, offsets: Mapping[str, int]) -> None:
    """Raises where a log ends before what has been evaluated of it."""
    for id, upto in offsets.items():
        head = open_log(home.streams, int(id)).head()
        if head < upto:
            raise damaged(home.streams / id / "log", f"ends at entry {head:,}, but {upto:,} have been evaluated")


def is_waiting(home: Home, start: Mapping[str, int]) -> bool:
    return any(head > start.get(id, 0) for id, head in heads(home).items())


def next_offsets(home: Home, start: Mapping[str, int], documents: int, arrived: float | None) -> Offsets:
    """Where a micro-batch ends that begins at `start` and takes about so many entries. Streams with entries waiting
    share them equally. Where the order of arrival decides results they are taken in that order: what has `arrived` by a
    time, before which nothing can be on its way into a log."""
    waiting = {id: head for id, head in heads(home).items() if head > start.get(id, 0)}
    if arrived is not None:
        return first_arrived(home, start, waiting, documents, arrived)
    if sum(head - start.get(id, 0) for id, head in waiting.items()) <= documents:
        return {**start, **waiting}
    share = max(1, documents // len(waiting))
    return {**start, **{id: min(head, start.get(id, 0) + share) for id, head in waiting.items()}}


def first_arrived(
    home: Home, start: Mapping[str, int], waiting: Mapping[str, int], documents: int, arrived: float = math.inf
) -> Offsets:
    """Where those of the `waiting` entries end that arrived first, and all that arrived together with them."""
    end, room, last = dict(start), documents, math.nan
    arrivals = (_arrivals(home, id, start.get(id, 0), head) for id, head in waiting.items())
    for arrival, id, upto in heapq.merge(*arrivals):
        size = upto - end.get(id, 0)
        if arrival > arrived or (size > room and room < documents and arrival != last):
            break
        end[id], room, last = upto, room - size, arrival
    return end


def _arrivals(home: Home, id: str, after: int, upto: int) -> Iterator[tuple[float, str, int]]:
    """When the entries behind one arrived, and the last number of those that arrived together."""
    latest = -math.inf
    for arrival, last in open_log(home.streams, int(id)).arrivals(after):
        latest = max(latest, arrival)  # a clock that was set back changes no order within a stream
        yield latest, id, min(last, upto)
        if last >= upto:
            return


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

"""Offsets: how far each stream has been read, and which slices of the logs a micro-batch takes.

The offset of a stream is the number of its last entry taken. A slice names entries of one log. Its task maps the log's
file and reads the entries itself.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Mapping, Sequence

from fishweir.pipeline.home import Home, open_log
from fishweir.records import dataclass
from fishweir.sealed import damaged

Offsets = dict[str, int]
"""Offsets by stream id, as text because commits are JSON."""


@dataclass(frozen=True)
class LogSlice:
    """The entries of one stream with after < number <= upto."""

    stream: int
    after: int
    upto: int


def heads(home: Home) -> Mapping[str, int]:
    """The number of the last entry of each stream."""
    return home.logs.heads()


def check_logs(home: Home, offsets: Mapping[str, int]) -> None:
    """Raises an error if a log ends before its evaluated offset."""
    for id, upto in offsets.items():
        head = open_log(home.streams, int(id)).head()
        if head < upto:
            raise damaged(home.streams / id / "log", f"ends at entry {head:,}, but {upto:,} have been evaluated")


def is_waiting(home: Home, start: Mapping[str, int]) -> bool:
    return bool(waiting_in(heads(home), start))


def waiting_in(newest: Mapping[str, int], start: Mapping[str, int]) -> Offsets:
    """The heads of the streams with entries after `start`."""
    return {id: head for id, head in newest.items() if head > start.get(id, 0)}


def next_offsets(
    home: Home, start: Mapping[str, int], waiting: Mapping[str, int], documents: int, arrived: float | None
) -> Offsets:
    """The end of a micro-batch that begins at `start` and takes about `documents` entries. Streams with `waiting`
    entries share this number equally. If the arrival order decides results, entries are taken in that order: those that
    have `arrived` by a time before which no entry can still be on its way into a log.
    """
    if arrived is not None:
        return first_arrived(home, start, waiting, documents, arrived)
    if sum(head - start.get(id, 0) for id, head in waiting.items()) <= documents:
        return {**start, **waiting}
    share = max(1, documents // len(waiting))
    return {**start, **{id: min(head, start.get(id, 0) + share) for id, head in waiting.items()}}


def first_arrived(
    home: Home, start: Mapping[str, int], waiting: Mapping[str, int], documents: int, arrived: float = math.inf
) -> Offsets:
    """The end of the `waiting` entries that arrived first, including all that arrived at the same time."""
    end, room, last = dict(start), documents, math.nan
    arrivals = (_arrivals(home, id, start.get(id, 0), head) for id, head in waiting.items())
    for arrival, id, upto in heapq.merge(*arrivals):
        size = upto - end.get(id, 0)
        if arrival > arrived or (size > room and room < documents and arrival != last):
            break
        end[id], room, last = upto, room - size, arrival
    return end


def _arrivals(home: Home, id: str, after: int, upto: int) -> Iterator[tuple[float, str, int]]:
    """The arrival times of the entries after one, with the last number of those that arrived together."""
    latest = -math.inf
    for arrival, last in open_log(home.streams, int(id)).arrivals(after):
        latest = max(latest, arrival)  # setting the clock back does not reorder a stream
        yield latest, id, min(last, upto)
        if last >= upto:
            return


def slices_between(start: Mapping[str, int], end: Mapping[str, int]) -> list[LogSlice]:
    return [LogSlice(int(id), start.get(id, 0), upto) for id, upto in end.items() if upto > start.get(id, 0)]


def spread(slices: Sequence[LogSlice], tasks: int) -> list[list[LogSlice]]:
    """At most `tasks` parts with about the same number of entries. Slices are split where needed."""
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

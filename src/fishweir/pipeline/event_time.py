"""Event time in the job: observations about each stream, and the watermarks by which documents are dropped.

In: the observations of tasks on the streams that joins read. Out: watermarks. The watermark of a stream published by
queries is that of its input streams when the last results in the stream were found: a result is never older than the
document that completed it.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from fishweir.algebra.nodes import StreamDefinition, sources_of
from fishweir.evaluate.watermarks import Watermarks
from fishweir.pipeline.commits import Commit, ResultsTable
from fishweir.pipeline.home import Home, open_log, read_json, write_json
from fishweir.pipeline.lateness import PROMPT, Lateness
from fishweir.pipeline.offsets import Offsets
from fishweir.pipeline.settings import IDLE
from fishweir.records import dataclass

if TYPE_CHECKING:
    from fishweir.evaluate.plan.plan import Plan

logger = logging.getLogger("fishweir.time")


@dataclass(frozen=True)
class Published:
    """A stream of published results: the micro-batch up to which it contains results, and its input streams."""

    settled: int
    inputs: tuple[int, ...]


class EventTime:
    """Knowledge about the streams that joins read, and about the input streams of these."""

    def __init__(
        self,
        home: Home,
        table: ResultsTable,
        began: float,
        idle_after: float = IDLE,
        warned: set[int] | None = None,
    ) -> None:
        """`began` is the time when the engine was opened: whether a stream was idle before that is unknown.
        `warned` contains the streams that the log has already reported as late.
        """
        self.home, self.table, self.began, self.idle_after = home, table, began, idle_after
        self.known: dict[int, Lateness] = {}
        self.dropped_by: dict[str, float] = dict(table.newest().dropped_by)
        """By stream, the highest watermark by which documents were dropped. Older documents are late."""
        self._warned = set() if warned is None else warned
        self._changed: set[int] = set()
        """Streams with unsaved observations."""
        self._saved: dict[int, float] = {}
        """The allowance of each stream by its saved observations."""
        self._joined: tuple[Plan, Mapping[int, StreamDefinition], list[int]] | None = None
        """The streams that the joins of a plan read, looked up again only if the plan or the streams have changed."""

    def of(self, stream: int) -> Lateness:
        if stream not in self.known:
            self.known[stream] = load_lateness(self.home, stream)
            self._saved[stream] = self.known[stream].allowance()
        return self.known[stream]

    def watched(self, plan: Plan, published: Mapping[int, Published]) -> dict[int, StreamDefinition]:
        """The streams that joins read, and the input streams of these."""
        streams = self.home.logs.streams()
        if self._joined is None or self._joined[0] is not plan or self._joined[1] is not streams:
            joined = [id for id, stream in streams.items() if plan.keeps(sources_of(stream))]
            self._joined = plan, streams, joined
        border = list(self._joined[2])
        found: dict[int, StreamDefinition] = {}
        while border:
            id = border.pop()
            if id in streams and id not in found:
                found[id] = streams[id]
                border += published[id].inputs if id in published else ()
        return found

    def marks(self, streams: Iterable[int]) -> dict[int, tuple[float, float]]:
        """What tasks need to observe streams: the front of each stream, and the time before which items are late."""
        return {id: (self.of(id).front, self.dropped_by.get(str(id), -math.inf)) for id in streams}

    def add(self, observed: Mapping[str, Lateness]) -> None:
        """Adds the observations of a micro-batch. They are saved at once if items are later than any before.
        Otherwise `save` does that: without the newest front, a restarted job retains more than it needs, never less.
        """
        for key, lateness in observed.items():
            id = int(key)
            self.known[id] = self.of(id).added(lateness)
            self._changed.add(id)
            if self.known[id].allowance() > self._saved[id]:
                self._save(id)
            if lateness.missed and id not in self._warned:
                self._warned.add(id)
                name = open_log(self.home.streams, id).stream.name
                logger.warning("stream %s: items arrive later than allowed; joins may miss results with them", name)

    def save(self) -> None:
        """Saves the observations that were added since the last call."""
        for id in sorted(self._changed):
            self._save(id)

    def _save(self, id: int) -> None:
        write_json(_file(self.home, id), self.known[id].to_json())
        self._saved[id] = self.known[id].allowance()
        self._changed.discard(id)

    def watermarks(
        self,
        streams: Mapping[int, StreamDefinition],
        offsets: Offsets,
        published: Mapping[int, Published],
        last: Commit,
        troubled: Collection[int],
        now: float,
        level: int,
    ) -> Watermarks:
        """The watermarks of streams; `last` is the previous commit. Streams in `troubled`, whose source is known to
        fail, are behind.
        """
        reached, learned, idle = {}, {}, {}
        for id, stream in streams.items():
            waits = open_log(self.home.streams, id).head() > offsets.get(str(id), 0)
            if id in published:
                reached[id] = self._published(id, published[id], last if waits else None)
                continue
            known = self.of(id)
            if stream.late is None:
                learned[id] = known.allowance(level)
            reached[id] = known.front - (learned[id] if stream.late is None else stream.late)
            quiet = now - max(known.arrived, self.began)
            if quiet > self.idle_after and not waits and id not in troubled:
                idle[id] = now - max(known.usual_delay, stream.late or 0.0)
        return Watermarks({id: sources_of(stream) for id, stream in streams.items()}, reached, learned, idle)

    def expected(self, id: int, stream: StreamDefinition, now: float) -> float:
        """For a stream without waiting entries: the time before which its next item is not expected. It is known for a
        prompt stream, and for one that has been idle for long.
        """
        known, late = self.of(id), stream.late or 0.0
        if known.is_prompt:
            return now - PROMPT - late
        quiet = now - max(known.arrived, self.began)
        return now - max(known.usual_delay, late) if quiet > self.idle_after else -math.inf

    def drop_by(self, watermarks: Mapping[int, float]) -> None:
        """Records that documents are dropped by these watermarks from now on."""
        for id, time in watermarks.items():
            if time > self.dropped_by.get(str(id), -math.inf):
                self.dropped_by[str(id)] = time

    def _published(self, id: int, own: Published, last: Commit | None) -> float:
        """The watermark of its inputs; if some of its results wait, its own watermark in the `last` commit."""
        if last is not None:
            return last.watermarks.get(str(id), -math.inf)
        then = self.table.of_batch(own.settled).watermarks
        return min((then.get(str(one), -math.inf) for one in own.inputs), default=-math.inf)


def load_lateness(home: Home, stream: int | str) -> Lateness:
    return Lateness.from_json(read_json(_file(home, stream), {}, rebuilt="observing the stream again"))


def _file(home: Home, stream: int | str) -> Path:
    return home.streams / str(stream) / "lateness.json"

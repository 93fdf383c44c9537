"""The heads of all logs of a home, and the definitions of its streams, without looking at every log each time.

In: the arrivals that processes announce (intake/arrivals.py). Out: the number of each stream's last entry. All logs are
looked at from time to time, the less often the longer this takes.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from fishweir.algebra.nodes import Source, StreamDefinition, sources_of
from fishweir.intake.arrivals import NAME, Arrivals
from fishweir.pipeline.home import open_log

if TYPE_CHECKING:
    from fishweir.pipeline.home import Home

LOOK_EVERY, SHARE = 0.5, 0.005
"""Seconds after which all logs are looked at, and the share of the time that this may take."""


class LogHeads:
    """Can be used by several threads. A returned mapping never changes."""

    def __init__(self, home: Home) -> None:
        self._home, self._lock = home, threading.Lock()
        self._arrivals = Arrivals(home.path / NAME)
        self._heads: dict[str, int] = {}
        self._streams: dict[int, StreamDefinition] = {}
        self._of_source: tuple[Mapping[int, StreamDefinition], dict[Source, list[int]]] = {}, {}
        self._look_at = 0.0

    def heads(self) -> Mapping[str, int]:
        """The number of the last entry of each stream, by the stream's id as text."""
        with self._lock:
            self._update()
            return self._heads

    def streams(self) -> Mapping[int, StreamDefinition]:
        with self._lock:
            self._update()
            return self._streams

    def of_source(self, source: Source) -> Sequence[int]:
        """The streams that belong to a source."""
        streams, found = self.streams(), self._of_source
        if found[0] is not streams:
            by_source = defaultdict(list)
            for id, stream in streams.items():
                for one in sources_of(stream):
                    by_source[one].append(id)
            found = self._of_source = streams, by_source
        return found[1].get(source, ())

    def _update(self) -> None:
        arrived, now = self._arrivals.next(), time.monotonic()
        if arrived is None or now >= self._look_at or not all(map(self._home.has_stream, arrived)):
            self._take(self._home.stream_ids(), {}, {})
            took = time.monotonic() - now
            self._look_at = now + max(LOOK_EVERY, took / SHARE)
            self._arrivals.shorten()
        elif arrived:
            self._take(sorted(arrived), dict(self._heads), dict(self._streams))

    def _take(self, ids: list[int], heads: dict[str, int], streams: dict[int, StreamDefinition]) -> None:
        for id in ids:
            log = open_log(self._home.streams, id)
            heads[str(id)], streams[id] = log.head(), log.stream
        self._heads = heads
        if streams != self._streams:
            self._streams = streams

"""An XML document on the web that changes: the differences between its versions are the arrivals.

This is a changing file whose text is fetched outside of the caller's thread. After a restart, it is fetched completely
and compared with the log.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from concurrent.futures import Future, wait
from pathlib import Path

from fishweir.algebra.nodes import StreamDefinition
from fishweir.guard import Guard
from fishweir.intake.log import StreamLog
from fishweir.intake.schema import logger
from fishweir.intake.sources.addresses import with_credentials, without_credentials
from fishweir.intake.sources.changing import ChangingSource
from fishweir.intake.sources.fetch import GONE, FetchError, Response, fetch, submit
from fishweir.intake.sources.fetched import LONGEST, SOON

EVERY = 600.0


class WebRows(ChangingSource):
    """The changes of one document. `poll` never waits for a server."""

    def __init__(self, stream: StreamDefinition, log: StreamLog, base: Path, guard: Guard) -> None:
        super().__init__(stream, log, base)
        self.place, self.guard = stream.path or "", guard
        self.shown = without_credentials(self.place)
        self.every = EVERY if stream.every is None else stream.every
        self.working = True
        self._address: str | None = None
        self._headers: dict[str, str] = {}
        self._fetching: Future[Response] | None = None
        self._failures = 0

    def poll(self, now: float) -> Iterator[int]:
        yield from self._append_pending(now)
        self.begin(now)
        if self._fetching is None or not self._fetching.done():
            return
        fetched, self._fetching = self._fetching, None
        try:
            self._take(fetched.result(), now)
        except FetchError as error:
            self._failed(error, now)
        self.working = False
        yield from self._append_pending(now)

    def begin(self, now: float) -> None:
        if self._fetching is None and now >= self._due:
            address = self._address and with_credentials(self._address, self.place)
            self._fetching = submit(fetch(address or self.place, self._headers, guard=self.guard))

    def wait(self) -> None:
        if self._fetching is not None:
            wait([self._fetching])

    def close(self) -> None:
        if self._fetching is not None:
            self._fetching.cancel()
            self._fetching = None

    def _take(self, response: Response, now: float) -> None:
        self.trouble, self._failures, self._due = None, 0, now + self.every
        self._headers, self._address = response.version, response.moved or self._address
        if response.body is not None:
            number = int.from_bytes(hashlib.blake2b(response.body, digest_size=6).digest(), "big")
            self._left_of = number, len(response.body)
            self._left = self._arrivals(response.body, self._left_of)

    def _failed(self, error: FetchError, now: float) -> None:
        self._failures += 1
        self._address = None
        again = min(min(self.every, SOON) * 2.0 ** (self._failures - 1), LONGEST)
        self._due = float("inf") if error.status == GONE else now + max(again, min(error.wait, LONGEST))
        then = "it will not be fetched again" if error.status == GONE else "it will be retried"
        trouble = f"stream {self.stream.name}: {self.shown}: {error}"
        if trouble != self.trouble:
            logger.warning("%s; %s", trouble, then)
        self.trouble = trouble

"""Publishing: appends documents to the log of a stream, and blocks while the backlog is too large."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from fishweir.pipeline.home import Home
from fishweir.pipeline.settings import AHEAD
from fishweir.pipeline.wakeup import wake_up

if TYPE_CHECKING:
    from fishweir.engine.runner import Runner
    from fishweir.intake import StreamLog

Publication = tuple[Any, ...]
LAST_DIGITS = [f"{number:03d}" for number in range(1000)]


class Publishing(ABC):
    """The part of the weir that publishes documents."""

    home: Home
    clock: Callable[[], float]
    _runner: Runner | None
    backlog: int = AHEAD
    """The number of unevaluated entries at which publishing waits while the job runs."""

    @abstractmethod
    def _log(self, name: str) -> tuple[int, StreamLog]:
        """The log of a stream that programs may append to."""

    def publish(
        self,
        stream: str,
        documents: Sequence[Any],
        timestamps: Sequence[float] | None = None,
        ids: Sequence[str] | None = None,
        wait: float | None = None,
    ) -> list[str]:
        """Appends documents to a stream's log and returns their ids. On return, they are on disk. While the job of this
        weir runs and `backlog` entries wait, the call blocks, for at most `wait` seconds, and then raises BacklogError.
        """
        self._make_room(stream, wait)
        given = self._append(stream, documents, timestamps, ids)
        wake_up(self.home)
        return given

    def publish_together(self, publications: Sequence[Publication], wait: float | None = None) -> list[list[str]]:
        """Appends to several streams, and only then wakes the job, which processes everything in one micro-batch if it
        was idle. Each publication contains the arguments of `publish`: stream, documents, and optionally timestamps and
        ids.
        """
        if publications:
            self._make_room(publications[0][0], wait)
        given = [self._append(*_arguments(*publication)) for publication in publications]
        wake_up(self.home)
        return given

    def _make_room(self, stream: str, wait: float | None) -> None:
        if self._runner is not None:
            self._runner.make_room(stream, self.backlog, wait)

    def _append(
        self,
        stream: str,
        documents: Sequence[Any],
        timestamps: Sequence[float] | None,
        ids: Sequence[str] | None,
    ) -> list[str]:
        from fishweir.intake.sources.push import documents_batch

        if isinstance(documents, str | bytes | dict):
            documents = [documents]
        _, log = self._log(stream)
        batch = documents_batch(log.stream, documents, timestamps, ids, self.clock())
        numbers = log.append(batch)
        given = batch.column("id")
        if given.null_count == len(given):
            return numbered(f"{stream}-", numbers)
        return [id or f"{stream}-{n}" for n, id in zip(numbers, given.to_pylist(), strict=True)]


def numbered(prefix: str, numbers: range) -> list[str]:
    """The prefix, which contains no spaces, with each of some positive consecutive numbers. Most of them end in one of
    a thousand known texts. These are joined to one text, which is then split: a third of the time of formatting each
    number."""
    found: list[str] = []
    for thousand in range(numbers.start // 1000, (numbers.stop + 999) // 1000):
        first, last = max(numbers.start - 1000 * thousand, 0), min(numbers.stop - 1000 * thousand, 1000)
        if thousand and numbers:
            begin = f"{prefix}{thousand}"
            found += (begin + f" {begin}".join(LAST_DIGITS[first:last])).split(" ")
        else:
            found += [f"{prefix}{number}" for number in range(first, last)]
    return found


def _arguments(
    stream: str, documents: Sequence[Any], timestamps: Sequence[float] | None = None, ids: Sequence[str] | None = None
) -> tuple[str, Sequence[Any], Sequence[float] | None, Sequence[str] | None]:
    return stream, documents, timestamps, ids

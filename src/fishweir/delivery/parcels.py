"""What is handed to an output, what an output is, and how it says that it could not deliver."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from fishweir.pipeline.result import Result, json_texts

AT_ONCE = 10_000
"""Results of a delivery that are handed over together, unless an output says otherwise (`at_once`)."""


class Parcel(list[Result]):
    """Results that are delivered together. `key` is the same however often it is tried; `feeds` are the names of
    what was subscribed to; `token` ends the subscription; `media` is what a stylesheet made: text, html or xml."""

    def __init__(
        self,
        results: Iterable[Result],
        key: str = "",
        feeds: Sequence[str] = (),
        token: str = "",
        media: str | None = None,
        now: float = 0.0,
        texts: Callable[[], Sequence[str]] | None = None,
    ) -> None:
        super().__init__(results)
        self.key, self.feeds, self.token, self.media, self.now = key, tuple(feeds), token, media, now
        self._texts = texts

    @property
    def texts(self) -> Sequence[str]:
        """Each result as JSON."""
        return list(json_texts(self)) if self._texts is None else self._texts()


class Deliverer(Protocol):
    """An output that is open. One that can say where it stands and go back there delivers exactly once, also over a
    crash; one that cannot (`position` is None) delivers at least once, and `key` tells repetitions."""

    def position(self) -> int | None:
        """Where the target stands now, or None where it cannot go back."""

    def rewind(self, position: int) -> None:
        """Takes back whatever was delivered after `position`."""

    def deliver(self, results: Parcel) -> None:
        """Returns once the target has acknowledged all of them; raises otherwise."""


class NotDelivered(Exception):
    """The reason, and what is known beyond it: how many results came through, when to try again, whether to at all."""

    def __init__(self, reason: str, delivered: int = 0, after: float | None = None, never: bool = False) -> None:
        super().__init__(reason)
        self.delivered, self.after, self.never = delivered, after, never


class Forward:
    """Outputs that cannot go back."""

    def position(self) -> None:
        return None

    def rewind(self, position: int) -> None:
        """What was sent cannot be taken back."""

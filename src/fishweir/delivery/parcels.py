"""What is handed to an output, what an output is, and how it says that it could not deliver."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Protocol, overload

from fishweir.pipeline.result import Result, json_texts

AT_ONCE = 10_000
"""Results of a delivery that are handed over together, unless an output says otherwise (`at_once`)."""


class Parcel(Sequence[Result]):
    """Results that are delivered together. `key` is the same however often it is tried; `feeds` are the names of
    what was subscribed to; `token` ends the subscription; `media` is what a stylesheet made: text, html or xml. An
    output that takes them as JSON (`texts`) does without the results themselves, which are made when they are asked
    for."""

    def __init__(
        self,
        size: int,
        results: Callable[[], Sequence[Result]],
        texts: Callable[[], Sequence[str]] | None = None,
        key: str = "",
        feeds: Sequence[str] = (),
        token: str = "",
        media: str | None = None,
        now: float = 0.0,
    ) -> None:
        self._size, self._make, self._write = size, results, texts
        self.key, self.feeds, self.token, self.media, self.now = key, tuple(feeds), token, media, now

    @cached_property
    def _results(self) -> Sequence[Result]:
        return self._make()

    @cached_property
    def texts(self) -> Sequence[str]:
        """Each result as JSON."""
        return list(json_texts(self)) if self._write is None else self._write()

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, place: int) -> Result: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Result]: ...
    def __getitem__(self, place: int | slice) -> Result | Sequence[Result]:
        return self._results[place]

    def __iter__(self) -> Iterator[Result]:
        return iter(self._results)


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

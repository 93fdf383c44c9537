"""The interface of outputs: the payload of a delivery, the protocol of an open output, and its error."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Protocol, overload

from fishweir.pipeline.result import Result, json_texts

RESULTS_PER_PAYLOAD = 10_000
"""The maximum number of results in one payload, unless an output sets its own (`at_once`)."""


class Payload(Sequence[Result]):
    """A lazy sequence of results that are delivered together. `key` is the same on every attempt; `feeds` are the names
    in the subscriptions; `token` ends the subscription; `media` is the output type of the stylesheet: text, html or
    xml. An output that uses JSON (`texts`) does not construct the results, which are created on access."""

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


class OpenOutput(Protocol):
    """An open output. If it can report its position and be rewound, it delivers exactly once, even after a crash;
    otherwise (`position` is None) it delivers at least once, and `key` identifies repetitions."""

    def position(self) -> int | None:
        """The current position of the target, or None if it cannot be rewound."""

    def rewind(self, position: int) -> None:
        """Undoes everything that was delivered after `position`."""

    def deliver(self, results: Payload) -> None:
        """Returns once the target has acknowledged all of them; raises otherwise."""


class NotDelivered(Exception):
    """The reason, the number of delivered results, and when to retry, if at all."""

    def __init__(self, reason: str, delivered: int = 0, after: float | None = None, never: bool = False) -> None:
        super().__init__(reason)
        self.delivered, self.after, self.never = delivered, after, never


class NotRewindable:
    """An output that cannot be rewound."""

    def position(self) -> None:
        return None

    def rewind(self, position: int) -> None:
        """Does nothing: a sent payload cannot be undone."""

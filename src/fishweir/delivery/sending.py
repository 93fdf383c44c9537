"""Sends one delivery: reads its results, passes them to its output in payloads, and returns the outcome."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from fishweir.delivery.contents import Content, Contents
from fishweir.delivery.outbox import Delivery, Outbox, Outcome, Rejected
from fishweir.delivery.outputs.registry import Outputs
from fishweir.delivery.payload import RESULTS_PER_PAYLOAD, NotDelivered, OpenOutput, Payload
from fishweir.delivery.retries import backoff, is_exhausted
from fishweir.delivery.stylesheet_pool import TooSlow, render
from fishweir.delivery.stylesheets import BadItem, Stylesheet
from fishweir.errors import FishweirError
from fishweir.pipeline.result import Result

logger = logging.getLogger("fishweir.delivery")

SLOW_ATTEMPTS = 3
"""The attempt at which a result is rejected if a stylesheet takes too long for it: the machine may have been busy."""

Sent = tuple[Outcome, int]
"""The outcome of a delivery, and the number of delivered results."""


class Sender:
    def __init__(self, outbox: Outbox, contents: Contents, outputs: Outputs, clock: Callable[[], float]) -> None:
        self.outbox, self.contents, self.outputs, self.clock = outbox, contents, outputs, clock

    def send(self, delivery: Delivery) -> Sent:
        """Sends a delivery and returns its outcome with the number of delivered results. An output may be the user's
        code: whatever it raises, other deliveries continue.
        """
        attempt = Attempt(self, delivery)
        return self.ended(attempt, attempt.run)

    def ended(self, attempt: Attempt, last: Callable[[], object]) -> Sent:
        """The outcome of an attempt after its last step."""
        try:
            last()
            return Outcome(attempt.delivery, rejected=attempt.skipped()), attempt.delivered
        except Exception as error:
            return self.failed(attempt, error)

    def failed(self, attempt: Attempt, error: Exception) -> Sent:
        delivery, now = attempt.delivery, self.clock()
        failure = error if isinstance(error, NotDelivered) else NotDelivered(_message(error))
        attempt.advance(failure.delivered)
        position = attempt.roll_back()
        is_final = failure.never or is_exhausted(delivery.attempts, now - delivery.made)
        due = None if is_final else now + backoff(delivery.attempts, failure.after)
        channel = delivery.channel
        what = f"{channel.output} {channel.arguments[0] if channel.arguments else ''}".strip()
        next_step = "given up, see the dead letters" if is_final else f"next attempt in {due - now:.1f} s"  # type: ignore[operator]
        logger.warning("delivery %s to %s failed (attempt %d): %s; %s", key(self, delivery), what, delivery.attempts,
                       failure, next_step)  # fmt: skip
        outcome = Outcome(delivery, attempt.sent, str(failure), due, position, rejected=attempt.skipped())
        return outcome, attempt.delivered


class Attempt:
    def __init__(self, sender: Sender, delivery: Delivery) -> None:
        self.sender, self.delivery, self.sent = sender, delivery, delivery.sent
        self.opened: OpenOutput | None = None
        self.position = delivery.position
        self._accepted: list[int] = []
        """The positions of the results in the payload, if a stylesheet has rejected others."""
        self._rejected: dict[int, Rejected] = {}
        """By position, the rejected results that have no dead letter yet."""
        self._dead = 0

    @property
    def delivered(self) -> int:
        """The number of delivered results."""
        return self.sent - self.delivery.sent - self._dead - len(self.skipped())

    def open(self) -> OpenOutput:
        channel = self.delivery.channel
        self.opened, _ = self.sender.outputs.open(channel.output, channel.arguments)
        if self.position is not None:
            self.opened.rewind(self.position)  # removes what an interrupted attempt may have left
        return self.opened

    def run(self) -> None:
        delivery = self.delivery
        opened = self.open()
        content = self.sender.contents.of(delivery.channel.id, delivery.after - delivery.is_single, delivery.upto)
        end = delivery.sent + 1 if delivery.is_single else len(content)
        at_once = getattr(opened, "at_once", RESULTS_PER_PAYLOAD)
        while self.sent < end:
            upto = min(self.sent + at_once, end)
            self.position = opened.position()
            if self.position is not None or self.sent > delivery.sent:
                self.sender.outbox.record_positions([(delivery, self.sent, self.position)], self.skipped())
                self._dead += len(self._rejected)
                self._rejected.clear()
            payload = self._payload(content, slice(self.sent, upto))
            if payload:
                opened.deliver(payload)
            self.sent = upto
            self.position = None

    def skipped(self) -> list[Rejected]:
        """The rejected results before the next one to be sent, which become dead letters."""
        return [one for place, one in self._rejected.items() if place < self.sent]

    def advance(self, delivered: int) -> None:
        """Counts the delivered results of a payload that failed after them."""
        self.sent = self._accepted[delivered - 1] + 1 if delivered and self._accepted else self.sent + delivered

    def _payload(self, content: Content, some: slice) -> Payload:
        channel = self.delivery.channel
        about = (f"{key(self.sender, self.delivery)}-{self.sent}", content.names, channel.token)
        if channel.stylesheet is None:
            given = some.stop - some.start, lambda: content.some(some), lambda: content.texts[some]
            return Payload(*given, *about, now=self.sender.clock())
        media = stylesheet(channel.stylesheet).media
        transformed = self._transform(channel.stylesheet, content, some)
        return Payload(len(transformed), lambda: transformed, None, *about, media, self.sender.clock())

    def _transform(self, path: str, content: Content, some: slice) -> list[Result]:
        """The results transformed by a stylesheet. Those on which it fails are rejected."""
        results, found = content.some(some), []
        self._accepted = []
        for place, result, transformed in zip(
            range(some.start, some.stop), results, _apply(path, results), strict=True
        ):
            if isinstance(transformed, TooSlow) and self.delivery.attempts < SLOW_ATTEMPTS:
                raise NotDelivered(str(transformed))
            if not isinstance(transformed, BadItem):
                found.append(replace(result, output=transformed))
                self._accepted.append(place)
                continue
            reason = f"{result.query}, {', '.join(result.documents)}: {transformed}"
            if self.delivery.is_single:
                raise NotDelivered(reason, never=True)
            logger.warning("a result was not delivered, see the dead letters: %s", reason)
            self._rejected[place] = Rejected(*content.located(place), reason)
        return found

    def roll_back(self) -> int | None:
        """Undoes a failed attempt. If that fails, too, the next attempt does it."""
        if self.opened is None or self.position is None:
            return self.position
        try:
            self.opened.rewind(self.position)
        except Exception as error:
            logger.warning("a partial delivery could not be rolled back: %s", error)
            return self.position
        return None


def key(sender: Sender, delivery: Delivery) -> str:
    return f"{sender.outbox.home}-{delivery.id}"


def _apply(path: str, results: list[Result]) -> list[str | BadItem]:
    try:
        return render(path, [result.output for result in results])
    except TooSlow as error:
        raise NotDelivered(str(error)) from error


@lru_cache(maxsize=100)
def _stylesheet(path: str, _written: int) -> Stylesheet:
    return Stylesheet(path)


def stylesheet(path: str) -> Stylesheet:
    """The stylesheet, compiled once per version of the file."""
    try:
        written = Path(path).stat().st_mtime_ns
    except OSError:
        written = 0
    return _stylesheet(path, written)


def _message(error: Exception) -> str:
    return error.args[0] if isinstance(error, FishweirError) and error.args else repr(error)

"""Sending one delivery: read its results, hand them to its output in parcels, say what became of it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from fishweir.delivery.bounded import TooSlow, render
from fishweir.delivery.contents import Contents
from fishweir.delivery.outbox import Delivery, Outbox, Outcome
from fishweir.delivery.outputs.registry import Outputs
from fishweir.delivery.parcels import AT_ONCE, Deliverer, NotDelivered, Parcel
from fishweir.delivery.retries import is_hopeless, pause
from fishweir.delivery.stylesheets import BadItem, Stylesheet
from fishweir.errors import FishweirError
from fishweir.pipeline.result import Result

logger = logging.getLogger("fishweir.delivery")


class Sender:
    def __init__(self, outbox: Outbox, contents: Contents, outputs: Outputs, clock: Callable[[], float]) -> None:
        self.outbox, self.contents, self.outputs, self.clock = outbox, contents, outputs, clock

    def send(self, delivery: Delivery) -> tuple[Outcome, int]:
        """What became of it, and how many results came through. An output may be the user's code: whatever it raises,
        the rest goes on."""
        attempt = _Attempt(self, delivery)
        try:
            attempt.run()
            return Outcome(delivery), attempt.sent - delivery.sent
        except Exception as error:
            return self._failed(attempt, error), attempt.sent - delivery.sent

    def _failed(self, attempt: _Attempt, error: Exception) -> Outcome:
        delivery, now = attempt.delivery, self.clock()
        known = error if isinstance(error, NotDelivered) else NotDelivered(_said(error))
        attempt.sent += known.delivered
        position = attempt.taken_back()
        hopeless = known.never or is_hopeless(delivery.attempts, now - delivery.made)
        due = None if hopeless else now + pause(delivery.attempts, known.after)
        channel = delivery.channel
        what = f"{channel.output} {channel.arguments[0] if channel.arguments else ''}".strip()
        left = "given up, see the dead letters" if hopeless else f"tried again in {due - now:.1f} s"  # type: ignore[operator]
        logger.warning("delivery %s to %s failed (attempt %d): %s; %s", key(self, delivery), what, delivery.attempts,
                       known, left)  # fmt: skip
        return Outcome(delivery, attempt.sent, str(known), due, position)


class _Attempt:
    def __init__(self, sender: Sender, delivery: Delivery) -> None:
        self.sender, self.delivery, self.sent = sender, delivery, delivery.sent
        self.opened: Deliverer | None = None
        self.position = delivery.position

    def run(self) -> None:
        channel, outbox = self.delivery.channel, self.sender.outbox
        self.opened, _ = self.sender.outputs.open(channel.output, channel.arguments)
        if self.position is not None:
            self.opened.rewind(self.position)  # what an interrupted attempt may have left
        results, feeds = self.sender.contents.of(channel.id, self.delivery.after, self.delivery.upto)
        at_once = getattr(self.opened, "at_once", AT_ONCE)
        while self.sent < len(results):
            some = results[self.sent : self.sent + at_once]
            self.position = self.opened.position()
            if self.position is not None or self.sent > self.delivery.sent:
                outbox.note(self.delivery, self.sent, self.position)
            parcel = self._parcel(some, feeds)
            if parcel:
                self.opened.deliver(parcel)
            self.sent += len(some)
            self.position = None

    def _parcel(self, results: list[Result], feeds: list[str]) -> Parcel:
        channel, media = self.delivery.channel, None
        if channel.stylesheet is not None:
            media, results = stylesheet(channel.stylesheet).media, _applied(channel.stylesheet, results)
        key_of = f"{key(self.sender, self.delivery)}-{self.sent}"
        return Parcel(results, key_of, feeds, channel.token, media, self.sender.clock())

    def taken_back(self) -> int | None:
        """Takes back what a failed attempt left; where that fails too, it is left to the next attempt."""
        if self.opened is None or self.position is None:
            return self.position
        try:
            self.opened.rewind(self.position)
        except Exception as error:
            logger.warning("what was delivered in part could not be taken back: %s", error)
            return self.position
        return None


def key(sender: Sender, delivery: Delivery) -> str:
    return f"{sender.outbox.home}-{delivery.id}"


def _applied(path: str, results: list[Result]) -> list[Result]:
    """What a stylesheet makes of results, without those that it fails on."""
    try:
        outputs = render(path, [result.output for result in results])
    except TooSlow as error:
        raise NotDelivered(str(error)) from error
    found = []
    for result, made in zip(results, outputs, strict=True):
        if isinstance(made, BadItem):
            shown = ", ".join(result.documents)
            logger.warning("a result of %s on %s is not delivered: %s", result.query, shown, made)
        else:
            found.append(replace(result, output=made))
    return found


@lru_cache(maxsize=100)
def _stylesheet(path: str, _written: int) -> Stylesheet:
    return Stylesheet(path)


def stylesheet(path: str) -> Stylesheet:
    """Compiled once per version of the file."""
    try:
        written = Path(path).stat().st_mtime_ns
    except OSError:
        written = 0
    return _stylesheet(path, written)


def _said(error: Exception) -> str:
    return error.args[0] if isinstance(error, FishweirError) and error.args else repr(error)

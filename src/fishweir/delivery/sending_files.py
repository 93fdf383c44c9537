"""Sends many deliveries to files together: a hundred thousand subscribers of one feed have as many small files.

In: deliveries of outputs that are `together`. Out: the outcome of each. One transaction records the positions of all
files before anything is written. Content that several files get is constructed once. The files are synced in parallel,
since a disk serves many concurrent requests with one write. Deliveries that need more (a stylesheet, very many results,
something that is not an ordinary file and may hang) are sent individually.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from fishweir.delivery.contents import Content, Part
from fishweir.delivery.disks import is_ordinary, local_disks
from fishweir.delivery.outbox import Delivery
from fishweir.delivery.outputs.append import Append
from fishweir.delivery.payload import RESULTS_PER_PAYLOAD
from fishweir.delivery.sending import Attempt, Sender, Sent

MOST = 256
"""The maximum number of open files."""
SYNC_THREADS = 16
"""The number of threads that wait for the disk."""


def grouped(sender: Sender, deliveries: Sequence[Delivery]) -> Iterator[list[Delivery]]:
    """Deliveries grouped by sender: those to ordinary local files together, each of the others separately."""
    files = [one for one in deliveries if _is_plain(sender, one)]
    disks = local_disks() if len(files) > 1 else ()
    together = {one.id: one for one in files if is_ordinary(one.channel.arguments[0], disks)}
    yield from ([one] for one in deliveries if one.id not in together)
    chosen = list(together.values())
    yield from (chosen[i : i + MOST] for i in range(0, len(chosen), MOST))


def _is_plain(sender: Sender, delivery: Delivery) -> bool:
    return delivery.channel.stylesheet is None and sender.outputs.is_together(delivery.channel.output)


def send_group(sender: Sender, deliveries: Sequence[Delivery]) -> list[Sent]:
    """Sends deliveries together and returns the outcome of each."""
    if len(deliveries) == 1:
        return [sender.send(deliveries[0])]
    try:
        contents = sender.contents.of_all([(one.channel.id, one.after, one.upto) for one in deliveries])
    except Exception:  # read errors are reported by the deliveries concerned
        return [sender.send(delivery) for delivery in deliveries]
    given = list(zip(deliveries, contents, strict=True))
    large = [sender.send(delivery) for delivery, content in given if len(content) > RESULTS_PER_PAYLOAD]
    return (
        large + _Group(sender, [(one, content) for one, content in given if len(content) <= RESULTS_PER_PAYLOAD]).send()
    )


class _Group:
    def __init__(self, sender: Sender, given: Sequence[tuple[Delivery, Content]]) -> None:
        self.sender = sender
        self.writings = [_Writing(sender, delivery, content) for delivery, content in given]
        self.failed: list[Sent] = []
        self._texts: dict[tuple[Part, ...], bytes] = {}

    def send(self) -> list[Sent]:
        self._each(_Writing.begin)
        self._record_positions()
        self._each(lambda writing: writing.write(self._text(writing)))
        if not self.writings:
            return self.failed
        with ThreadPoolExecutor(min(SYNC_THREADS, len(self.writings)), "fishweir_syncing") as pool:
            synced = pool.map(lambda writing: self.sender.ended(writing, writing.sync), self.writings)
            return self.failed + list(synced)

    def _each(self, act: Callable[[_Writing], None]) -> None:
        """Applies a step to each attempt. Attempts that fail are left out from then on."""
        remaining = []
        for writing in self.writings:
            try:
                act(writing)
                remaining.append(writing)
            except Exception as error:
                self.failed.append(self.sender.failed(writing, error))
        self.writings = remaining

    def _record_positions(self) -> None:
        try:
            self.sender.outbox.record_positions([(one.delivery, one.sent, one.position) for one in self.writings])
        except Exception as error:
            self.failed += [self.sender.failed(writing, error) for writing in self.writings]
            self.writings = []

    def _text(self, writing: _Writing) -> bytes:
        """The text to append; one shared object for equal contents."""
        content = writing.content
        if writing.sent:
            return "".join([f"{text}\n" for text in content.texts[writing.sent :]]).encode()
        key = tuple(content.parts)
        if key not in self._texts:
            self._texts[key] = "".join([part.lines for part in key]).encode()
        return self._texts[key]


class _Writing(Attempt):
    """An attempt in three steps, interleaved with those of the other attempts of the group."""

    output: Append

    def __init__(self, sender: Sender, delivery: Delivery, content: Content) -> None:
        super().__init__(sender, delivery)
        self.content, self.file = content, -1

    def begin(self) -> None:
        output = self.open()
        assert isinstance(output, Append)
        self.output, self.position = output, output.position()

    def write(self, text: bytes) -> None:
        self.file = self.output.write(text)

    def sync(self) -> None:
        try:
            os.fsync(self.file)
        finally:
            os.close(self.file)
        self.sent, self.position = len(self.content), None

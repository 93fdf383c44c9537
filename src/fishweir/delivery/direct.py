"""The fast path: deliveries that start in the transaction that adds them to the outbox.

In: new rows of the outbox. Out: those that can be sent immediately, marked as tried like any claimed row; a crash
repeats them. A function of this process thus gets its results without a second transaction for the claim. The fast path
applies to targets on this machine without waiting deliveries, if no options and no other deliveries interfere.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from fishweir.catalog.database import Connection
from fishweir.delivery.options import Options
from fishweir.delivery.outbox import DIGEST_OUTPUTS, Channel, Delivery, Outbox
from fishweir.delivery.outputs.registry import Outputs

MAX_DIRECT_ROWS = 8
"""The maximum number of rows that start together; if there are more, the dispatcher distributes them to senders."""

Row = tuple[int, int, int]
"""Channel, after, upto."""

_IDLE = """
    select channels.id, channels.target from channels join targets on targets.id = channels.target
    where channels.id in :some and targets.host = '' and targets.due is null
        and not exists (select 1 from outbox where outbox.target = targets.id and not outbox.dead)
"""
_INSERT = """
    insert into outbox (target, channel, after, upto, sent, made, attempts, dead)
    values (:target, :channel, :after, :upto, 0, :now, 1, false) returning id
"""


class Direct:
    def __init__(self, outbox: Outbox, outputs: Outputs, busy: set[int], moving: threading.Lock) -> None:
        """`busy` contains the targets with deliveries in flight; `moving` is the lock for moving deliveries."""
        self.outbox, self.outputs, self.busy, self.moving = outbox, outputs, busy, moving

    def start(self, connection: Connection, rows: Sequence[Row], now: float) -> tuple[list[Delivery], list[Row]]:
        """The deliveries that start, and the rows that are left to the dispatcher."""
        if not rows or len(rows) > MAX_DIRECT_ROWS:
            return [], list(rows)
        channels = self.outbox.channels_of(connection, [channel for channel, _, _ in rows])
        plain = [channel for channel, _, _ in rows if self._is_plain(channels[channel])]
        idle = {row.id: row.target for row in connection.execute(_IDLE, some=plain)} if plain else {}
        started: dict[int, Delivery] = {}
        left = []
        for channel, after, upto in rows:
            target = idle.get(channel)
            if target is None or target in started:
                left.append((channel, after, upto))
                continue
            id = connection.scalar(_INSERT, target=target, channel=channel, after=after, upto=upto, now=now)
            started[target] = Delivery(id, target, "", channels[channel], after, upto, 0, 1, None, now)
        return list(started.values()), left

    def _is_plain(self, channel: Channel) -> bool:
        is_held = channel.options != Options() or channel.output in DIGEST_OUTPUTS
        return not is_held and not self.outputs.is_together(channel.output)

"""The outbox: the pending deliveries, in the catalog's database.

A row stands for the results of some micro-batches for one channel. Rows of one target are sent in order, one at a time.
A target is `due` while one of its rows waits, and rows are looked up only for due targets. A row is marked as tried
before it is sent, and removed once the target has acknowledged it. A crash therefore repeats at most the deliveries in
flight, under the same key. Rows that were never tried are merged into one delivery. A result that a stylesheet cannot
transform becomes a dead row of its own once its delivery has advanced past it.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from fishweir.catalog.database import Connection, Database, chunks
from fishweir.delivery.options import Options, split_options
from fishweir.records import dataclass

MAX_MERGED_ROWS = 200
"""The maximum number of rows that are merged into one delivery."""
DIGEST_OUTPUTS = frozenset({"mail", "notify"})
"""Outputs whose deliveries are combined into digests under overload."""
DUE_TARGETS_PER_CLAIM = 512
"""The number of due targets that are examined together."""
CHANNEL_CACHE_SIZE = 10_000
"""The maximum number of cached channels."""
MAX_GATHERING_TIME = 600.0
"""The maximum number of seconds for which a delivery waits to be combined with others."""


@dataclass(frozen=True, slots=True)
class Channel:
    id: int
    output: str
    arguments: tuple[str, ...]
    stylesheet: str | None
    token: str
    options: Options


@dataclass(frozen=True, slots=True)
class Delivery:
    """A row that was claimed for sending."""

    id: int
    target: int
    host: str
    channel: Channel
    after: int
    upto: int
    sent: int
    attempts: int
    position: int | None
    made: float

    @property
    def is_single(self) -> bool:
        """Whether it stands for one result only: number `sent` of micro-batch `upto` (see `Rejected`)."""
        return self.after == self.upto


@dataclass(frozen=True, slots=True)
class Rejected:
    """A result that cannot be sent: its micro-batch, its position among the channel's results there, and the reason."""

    batch: int
    place: int
    reason: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a delivery: acknowledged (`error` is None), to be retried at `due`, or given up; or none if it was
    not `tried`. `rejected` are the results among those sent that become dead letters.
    """

    delivery: Delivery
    sent: int = 0
    error: str | None = None
    due: float | None = None
    position: int | None = None
    tried: bool = True
    rejected: Sequence[Rejected] = ()


class Outbox:
    def __init__(self, database: Database) -> None:
        self.database = database
        self._channels: dict[int, Channel] = {}
        self.home = self._home()
        self.is_overloaded: Callable[[], bool] = lambda: False
        self.gathering: set[int] = set()
        """Targets whose deliveries wait for the end of the overload."""

    def _home(self) -> str:
        """Identifies the deliveries of this home among those of others."""
        with self.database.begin() as connection:
            home = connection.scalar("select value from facts where name = 'home'")
            if home is None:
                home = secrets.token_hex(6)
                connection.insert("facts", name="home", value=home)
        return str(home)

    def restart(self, now: float) -> None:
        """Makes all waiting rows due: those in flight, and those that failed before the restart."""
        waiting = "select target from outbox where not dead"
        with self.database.begin() as connection:
            connection.execute(f"update targets set due = :now where id in ({waiting})", now=now)

    def claim(
        self,
        now: float,
        most: int,
        may: Callable[[str], float | None],
        busy: Collection[int] = (),
        without: Collection[str] = (),
    ) -> list[Delivery]:
        """Claims the first row of some due targets. `may` returns the time until which a host must wait, 0 for not now,
        None for no wait. Targets in `busy` become due again when their outcome is settled. Those of the hosts in
        `without` are skipped.
        """
        with self.database.begin() as connection:
            others = "and host not in :without" if without else ""
            due = f"select id, host from targets where due <= :now {others} order by due limit :most"
            rows = connection.execute(due, now=now, most=DUE_TARGETS_PER_CLAIM, without=list(without))
            hosts: dict[int, str] = {}
            full: set[str] = set()
            for row in rows:
                if row.id in busy:
                    _set_due(connection, [row.id], None)
                    continue
                until = may(row.host) if len(hosts) < most and row.host not in full else 0.0
                if until is None:
                    hosts[row.id] = row.host
                elif until <= now:
                    full.add(row.host)
                else:
                    _set_due(connection, [row.id], until)
            return self._claim_rows(connection, hosts, now) if hosts else []

    def _claim_rows(self, connection: Connection, hosts: dict[int, str], now: float) -> list[Delivery]:
        firsts = "select min(id), count(*) from outbox where target in :targets and not dead group by target"
        counts = {row[0]: row[1] for row in connection.execute(firsts, targets=list(hosts))}
        rows = connection.execute("select * from outbox where id in :ids order by id", ids=list(counts))
        taken, idle = [], set(hosts) - {row.target for row in rows}
        channels = self.channels_of(connection, (row.channel for row in rows))
        for row in rows:
            channel = channels[row.channel]
            delayed = self._delayed_until(connection, channel, now) or self._digest_until(row, channel, now)
            if delayed is not None:
                _set_due(connection, [row.target], delayed)
                continue
            upto = self._merge(connection, row) if counts[row.id] > 1 and not row.attempts else row.upto
            idle.add(row.target)
            where = (row.id, row.target, hosts[row.target], channel)
            taken.append(Delivery(*where, row.after, upto, row.sent, row.attempts + 1, row.position, row.made))
        if taken:
            tried = "update outbox set attempts = attempts + 1 where id in :ids"
            connection.execute(tried, ids=[one.id for one in taken])
        _set_due(connection, sorted(idle), None)
        return taken

    def _delayed_until(self, connection: Connection, channel: Channel, now: float) -> float | None:
        """The time until which quiet hours or `at most N per hour` delay a delivery."""
        options = channel.options
        quiet = options.quiet.until(now) if options.quiet else None
        if quiet is not None or options.per_hour is None:
            return quiet
        recent = self._recent(connection, channel, now)
        return recent[-options.per_hour] + 3600.0 if len(recent) >= options.per_hour else None

    def _digest_until(self, row: Any, channel: Channel, now: float) -> float | None:
        """The time until which a delivery waits under overload: one digest takes the time of one mail."""
        until = row.made + MAX_GATHERING_TIME
        if channel.output not in DIGEST_OUTPUTS or row.attempts or now >= until or not self.is_overloaded():
            return None
        self.gathering.add(row.target)
        return float(until)

    def release(self, now: float) -> None:
        """Sends the combined deliveries once the overload has ended."""
        if self.gathering and not self.is_overloaded():
            with self.database.begin() as connection:
                waiting = "update targets set due = :now where id in :ids and due is not null"
                connection.execute(waiting, now=now, ids=sorted(self.gathering))
            self.gathering.clear()

    def _recent(self, connection: Connection, channel: Channel, now: float) -> list[float]:
        text = connection.scalar("select recent from channels where id = :id", id=channel.id)
        return [at for at in json.loads(text or "[]") if at > now - 3600.0]

    def _merge(self, connection: Connection, row: Any) -> int:
        """Merges later rows into this one, as long as they have the same channel and were never tried."""
        behind = "target = :target and not dead and id > :id order by id limit :most"
        select = f"select id, channel, attempts, upto from outbox where {behind}"
        upto, merged = row.upto, []
        for other in connection.execute(select, target=row.target, id=row.id, most=MAX_MERGED_ROWS):
            if other.channel != row.channel or other.attempts:
                break
            merged.append(other.id)
            upto = other.upto
        if merged:
            connection.execute("delete from outbox where id in :ids", ids=merged)
            connection.execute("update outbox set upto = :upto where id = :id", upto=upto, id=row.id)
        return int(upto)

    def record_positions(
        self, given: Sequence[tuple[Delivery, int, int | None]], rejected: Sequence[Rejected] = ()
    ) -> None:
        """Records the progress of deliveries, and the position of each target at that point. `rejected` are results of
        the first delivery.
        """
        rows = [{"id": delivery.id, "sent": sent, "position": position} for delivery, sent, position in given]
        with self.database.begin() as connection:
            connection.execute_many("update outbox set sent = :sent, position = :position where id = :id", rows)
            if rejected:
                _add_dead_letters(connection, given[0][0], rejected)

    def settle(self, outcomes: Sequence[Outcome], now: float) -> None:
        """Records the outcomes of deliveries, and makes the next ones of their targets due."""
        with self.database.begin() as connection:
            good = [one.delivery for one in outcomes if one.tried and one.error is None]
            if good:
                connection.execute("delete from outbox where id in :ids", ids=[one.id for one in good])
            for delivery in good:
                self._count(connection, delivery.channel, now)
            for one in outcomes:
                if one.rejected:
                    _add_dead_letters(connection, one.delivery, one.rejected)
                if one.error is not None:
                    self._record_failure(connection, one)
            if untried := [one.delivery.id for one in outcomes if not one.tried]:
                connection.execute("update outbox set attempts = attempts - 1 where id in :ids", ids=untried)
            free = [one.delivery.target for one in outcomes if one.due is None]
            if free:
                waiting = "select target from outbox where not dead and target in :targets"
                connection.execute(f"update targets set due = :now where id in ({waiting})", now=now, targets=free)

    def _count(self, connection: Connection, channel: Channel, now: float) -> None:
        if channel.options.per_hour is not None:
            recent = json.dumps([*self._recent(connection, channel, now), now])
            connection.execute("update channels set recent = :recent where id = :id", recent=recent, id=channel.id)

    def _record_failure(self, connection: Connection, one: Outcome) -> None:
        connection.execute(
            "update outbox set error = :error, sent = :sent, position = :position, dead = :dead where id = :id",
            id=one.delivery.id,
            error=one.error,
            sent=one.sent,
            position=one.position,
            dead=one.due is None,
        )
        if one.due is not None:
            _set_due(connection, [one.delivery.target], one.due)

    def next_due(self) -> float | None:
        found = self.database.scalar("select min(due) from targets")
        return None if found is None else float(found)

    def has_early_retry(self, now: float, within: float, attempts: int) -> bool:
        """Whether a host with few attempts so far will be retried soon."""
        soon = "select id from targets where due <= :soon and host != ''"
        chosen = f"target in ({soon}) and not dead and attempts < :attempts and attempts > 0"
        found = f"select id from outbox where {chosen} limit 1"
        return self.database.scalar(found, soon=now + within, attempts=attempts) is not None

    def channels_of(self, connection: Connection, ids: Iterable[int]) -> dict[int, Channel]:
        """Channels by id; recently used ones are cached."""
        requested = set(ids)
        found = {id: self._channels[id] for id in requested if id in self._channels}
        if missing := sorted(requested - set(found)):
            rows = connection.execute("select * from channels where id in :ids", ids=missing)
            found |= {row.id: _channel(row) for row in rows}
            if len(self._channels) > CHANNEL_CACHE_SIZE:
                self._channels.clear()
            self._channels |= found
        return found


def _add_dead_letters(connection: Connection, delivery: Delivery, rejected: Sequence[Rejected]) -> None:
    """Adds a dead letter for each rejected result. Its range of micro-batches is empty, and `sent` is its position."""
    common = {"target": delivery.target, "channel": delivery.channel.id, "made": delivery.made}
    common |= {"attempts": 1, "dead": True}
    rows = [{"after": one.batch, "upto": one.batch, "sent": one.place, "error": one.reason} for one in rejected]
    connection.insert_rows("outbox", [{**common, **row} for row in rows])


def _set_due(connection: Connection, targets: Sequence[int], due: float | None) -> None:
    connection.execute("update targets set due = :due where id in :targets", due=due, targets=list(targets))


def _channel(row: Any) -> Channel:
    arguments = tuple(json.loads(row.arguments))
    _, options = split_options(arguments)
    return Channel(row.id, row.output, arguments, row.stylesheet, row.token, options)


def enqueue(connection: Connection, rows: Iterable[tuple[int, int, int]], now: float) -> int:
    """Inserts rows of (channel, after, upto) within the caller's transaction, and returns their number."""
    values = [{"channel": channel, "after": after, "upto": upto} for channel, after, upto in rows]
    for some in chunks(values):
        ids = [row["channel"] for row in some]
        found = connection.execute("select id, target from channels where id in :ids", ids=ids)
        to = {row.id: row.target for row in found}
        fresh = {"sent": 0, "attempts": 0, "dead": False, "made": now}
        connection.insert_rows("outbox", [{**row, **fresh, "target": to[row["channel"]]} for row in some])
        idle = "update targets set due = :now where id in :targets and due is null"
        connection.execute(idle, now=now, targets=sorted(set(to.values())))
    return len(values)

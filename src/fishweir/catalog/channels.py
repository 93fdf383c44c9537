"""Channels, found or made many at a time: delivery routes with their targets and timers.

In: ways, each an action with an interval and a stylesheet. Out: the numbers of their channels. What there is already is
looked up by one statement for thousands of ways, and the rest is stored by one insertion for each table.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from json.encoder import encode_basestring_ascii
from typing import NamedTuple

from fishweir.algebra.nodes import Action, Schedule
from fishweir.catalog.database import Connection, chunks
from fishweir.catalog.schema import COLLECTED

_CHANNEL = ("id", "key", "target", "output", "arguments", "stylesheet", "every", "anchor", "token")


class ChannelSpec(NamedTuple):
    """How results go out. `own` names the query whose deliveries are its own, where they are."""

    action: Action
    schedule: Schedule
    stylesheet: str | None = None
    own: str | None = None


class Channels:
    """Within one change of the catalog, while other writers are kept out: the numbers are ours to give."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.now = 0.0
        self._known: dict[str, int] = {}
        self._collected: int | None = None

    def of(self, ways: Sequence[ChannelSpec]) -> list[int]:
        """The channel of each way; those with an interval are in the event list from now on."""
        anchors = [self._anchor(way.schedule) for way in ways]
        keys = [_key(way, anchor) for way, anchor in zip(ways, anchors, strict=True)]
        new = {key: place for place, key in enumerate(keys) if key not in self._known}
        if new:
            found = self._found("channels", "key", list(new))
            there = [(found[key], ways[at].schedule.every, anchors[at]) for key, at in new.items() if key in found]
            self._set_timers(there)
            missing = [(key, ways[at], anchors[at]) for key, at in new.items() if key not in found]
            self._known |= found | self._made(missing)
        return [self._known[key] for key in keys]

    def forget(self) -> None:
        """Timers may have ended; they are set again when their channels are requested."""
        self._known.clear()

    def _anchor(self, schedule: Schedule) -> float | None:
        if not schedule.every:
            return None
        return self.now if schedule.start is None else schedule.start

    def _found(self, table: str, column: str, values: Sequence[str]) -> dict[str, int]:
        found: dict[str, int] = {}
        wanted = f"select {column}, id from {table} where {column} in :some"
        for some in chunks(values):
            found |= {row[0]: row.id for row in self.connection.execute(wanted, some=some)}
        return found

    def _made(self, ways: Sequence[tuple[str, ChannelSpec, float | None]]) -> dict[str, int]:
        if not ways:
            return {}
        import secrets  # late: it loads OpenSSL

        to = self._targets([way.action for _, way, _ in ways])
        made = dict(zip((key for key, _, _ in ways), self._numbers("channels", len(ways)), strict=True))
        rows = [
            (made[key], key, target, way.action.name, _list(way.action.arguments), way.stylesheet,
             way.schedule.every or 0.0, anchor, secrets.token_urlsafe(18))
            for (key, way, anchor), target in zip(ways, to, strict=True)
        ]  # fmt: skip
        self.connection.insert_tuples("channels", _CHANNEL, rows)
        self._add_timers([(made[key], way.schedule.every, anchor) for key, way, anchor in ways])
        return made

    def _targets(self, actions: Sequence[Action]) -> list[int]:
        addresses = [action.address or json.dumps([action.name, *action.arguments]) for action in actions]
        hosts = {address: action.host for address, action in zip(addresses, actions, strict=True)}
        known = self._found("targets", "address", list(hosts))
        new = [address for address in hosts if address not in known]
        numbers = self._numbers("targets", len(new))
        rows = [(id, address, hosts[address]) for id, address in zip(numbers, new, strict=True)]
        self.connection.insert_tuples("targets", ("id", "address", "host"), rows)
        known |= {address: id for id, address, _ in rows}
        return [known[address] for address in addresses]

    def _numbers(self, table: str, count: int) -> range:
        last = int(self.connection.scalar(f"select max(id) from {table}") or 0) if count else 0
        return range(last + 1, last + 1 + count)

    def set_timer(self, channel: int, every: float, anchor: float | None) -> None:
        self._set_timers([(channel, every, anchor)])

    def _set_timers(self, given: Sequence[tuple[int, float | None, float | None]]) -> None:
        """In the event list from now on, unless they are there."""
        there: set[int] = set()
        for some in chunks([channel for channel, every, _ in given if every]):
            there |= set(self.connection.scalars("select channel from timers where channel in :some", some=some))
        self._add_timers([one for one in given if one[0] not in there])

    def _add_timers(self, given: Sequence[tuple[int, float | None, float | None]]) -> None:
        timed = [(id, every, anchor) for id, every, anchor in given if every and anchor is not None]
        if timed and self._collected is None:
            self._collected = collected(self.connection)
        rows = [(id, next_due(anchor, every, self.now), self._collected) for id, every, anchor in timed]
        self.connection.insert_tuples("timers", ("channel", "due", "batch"), rows)


def _key(way: ChannelSpec, anchor: float | None) -> str:
    """What tells channels apart, as JSON. It is put together by hand: `json.dumps` takes most of its time to begin."""
    action, every = way.action, way.schedule.every or 0.0
    texts = (
        _json(action.address),
        _json(way.stylesheet),
        repr(float(every)),
        "null" if anchor is None else repr(anchor),
    )
    return f"[{_json(action.name)}, {_list(action.arguments)}, {', '.join(texts)}, {_json(way.own)}]"


def _json(text: str | None) -> str:
    return "null" if text is None else encode_basestring_ascii(text)


def _list(texts: Sequence[str]) -> str:
    return f"[{', '.join(map(encode_basestring_ascii, texts))}]"


def next_due(anchor: float, every: float, now: float) -> float:
    """The first of anchor, anchor + every, ... that is to come."""
    if anchor > now:
        return anchor
    due = anchor + (int((now - anchor) / every) + 1) * every
    return due if due > now else due + every


def collected(connection: Connection) -> int:
    """Up to which micro-batch results have been handed to the outbox."""
    return int(connection.scalar("select value from facts where name = :name", name=COLLECTED) or -1)

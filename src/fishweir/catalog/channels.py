"""Channels: delivery routes with their targets and timers, looked up or created in bulk.

In: specifications, each an action with an interval and a stylesheet. Out: the ids of their channels. One statement
looks up thousands of existing channels, and one insertion per table stores the others.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from json.encoder import encode_basestring_ascii
from typing import NamedTuple

from fishweir.algebra.nodes import Action, Schedule
from fishweir.catalog.database import Connection, chunks
from fishweir.catalog.schema import COLLECTED

_CHANNEL = ("id", "key", "target", "output", "arguments", "stylesheet", "every", "anchor", "token")


class ChannelSpec(NamedTuple):
    """How results are delivered. `own` is the name of the query if its deliveries are separate from others."""

    action: Action
    schedule: Schedule
    stylesheet: str | None = None
    own: str | None = None


class Channels:
    """Channels within one change of the catalog. Other writers are locked out, so ids can be assigned without races."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.now = 0.0
        self._cache: dict[str, int] = {}
        self._collected: int | None = None

    def of(self, specs: Sequence[ChannelSpec]) -> list[int]:
        """The channel of each specification. Adds those with an interval to the event list."""
        anchors = [self._anchor(spec.schedule) for spec in specs]
        keys = [_key(spec, anchor) for spec, anchor in zip(specs, anchors, strict=True)]
        new = {key: place for place, key in enumerate(keys) if key not in self._cache}
        if new:
            found = self._ids("channels", "key", list(new))
            existing = [(found[key], specs[at].schedule.every, anchors[at]) for key, at in new.items() if key in found]
            self._set_timers(existing)
            missing = [(key, specs[at], anchors[at]) for key, at in new.items() if key not in found]
            self._cache |= found | self._create(missing)
        return [self._cache[key] for key in keys]

    def forget(self) -> None:
        """Clears the cache: timers may have ended. They are set again when their channels are requested."""
        self._cache.clear()

    def _anchor(self, schedule: Schedule) -> float | None:
        if not schedule.every:
            return None
        return self.now if schedule.start is None else schedule.start

    def _ids(self, table: str, column: str, values: Sequence[str]) -> dict[str, int]:
        found: dict[str, int] = {}
        select = f"select {column}, id from {table} where {column} in :some"
        for some in chunks(values):
            found |= {row[0]: row.id for row in self.connection.execute(select, some=some)}
        return found

    def _create(self, specs: Sequence[tuple[str, ChannelSpec, float | None]]) -> dict[str, int]:
        if not specs:
            return {}
        to = self._targets([spec.action for _, spec, _ in specs])
        created = dict(zip((key for key, _, _ in specs), self._numbers("channels", len(specs)), strict=True))
        rows = [
            (created[key], key, target, spec.action.name, _list(spec.action.arguments), spec.stylesheet,
             spec.schedule.every or 0.0, anchor, token)
            for (key, spec, anchor), target, token in zip(specs, to, _tokens(len(specs)), strict=True)
        ]  # fmt: skip
        self.connection.insert_tuples("channels", _CHANNEL, rows)
        self._add_timers([(created[key], spec.schedule.every, anchor) for key, spec, anchor in specs])
        return created

    def _targets(self, actions: Sequence[Action]) -> list[int]:
        addresses = [action.address or json.dumps([action.name, *action.arguments]) for action in actions]
        hosts = {address: action.host for address, action in zip(addresses, actions, strict=True)}
        ids = self._ids("targets", "address", list(hosts))
        new = [address for address in hosts if address not in ids]
        numbers = self._numbers("targets", len(new))
        rows = [(id, address, hosts[address]) for id, address in zip(numbers, new, strict=True)]
        self.connection.insert_tuples("targets", ("id", "address", "host"), rows)
        ids |= {address: id for id, address, _ in rows}
        return [ids[address] for address in addresses]

    def _numbers(self, table: str, count: int) -> range:
        last = int(self.connection.scalar(f"select max(id) from {table}") or 0) if count else 0
        return range(last + 1, last + 1 + count)

    def set_timer(self, channel: int, every: float, anchor: float | None) -> None:
        self._set_timers([(channel, every, anchor)])

    def _set_timers(self, given: Sequence[tuple[int, float | None, float | None]]) -> None:
        """Adds timers to the event list unless they are in it."""
        existing: set[int] = set()
        for some in chunks([channel for channel, every, _ in given if every]):
            existing |= set(self.connection.scalars("select channel from timers where channel in :some", some=some))
        self._add_timers([one for one in given if one[0] not in existing])

    def _add_timers(self, given: Sequence[tuple[int, float | None, float | None]]) -> None:
        timed = [(id, every, anchor) for id, every, anchor in given if every and anchor is not None]
        if timed and self._collected is None:
            self._collected = collected(self.connection)
        rows = [(id, next_due(anchor, every, self.now), self._collected) for id, every, anchor in timed]
        self.connection.insert_tuples("timers", ("channel", "due", "batch"), rows)


def _tokens(count: int) -> list[str]:
    """Random texts of 24 characters, three bytes in four characters each, for the unsubscribe links of channels."""
    import secrets  # imported late: it loads OpenSSL

    together = base64.urlsafe_b64encode(secrets.token_bytes(18 * count)).decode()
    return [together[start : start + 24] for start in range(0, len(together), 24)]


def _key(spec: ChannelSpec, anchor: float | None) -> str:
    """The key of a channel, as JSON. It is assembled by hand because most of the time of `json.dumps` is its setup."""
    action, every = spec.action, spec.schedule.every or 0.0
    texts = (
        _json(action.address),
        _json(spec.stylesheet),
        repr(float(every)),
        "null" if anchor is None else repr(anchor),
    )
    return f"[{_json(action.name)}, {_list(action.arguments)}, {', '.join(texts)}, {_json(spec.own)}]"


def _json(text: str | None) -> str:
    return "null" if text is None else encode_basestring_ascii(text)


def _list(texts: Sequence[str]) -> str:
    return f"[{', '.join(map(encode_basestring_ascii, texts))}]"


def next_due(anchor: float, every: float, now: float) -> float:
    """The first of anchor, anchor + every, ... that is after now."""
    if anchor > now:
        return anchor
    due = anchor + (int((now - anchor) / every) + 1) * every
    return due if due > now else due + every


def collected(connection: Connection) -> int:
    """The last micro-batch whose results have been handed to the outbox."""
    return int(connection.scalar("select value from facts where name = :name", name=COLLECTED) or -1)

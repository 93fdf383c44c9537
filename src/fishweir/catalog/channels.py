"""Channels: delivery routes with their targets and timers, looked up or created in bulk.

In: specifications as columns, each an action with an interval and a stylesheet. Out: the ids of their channels. One
statement looks up thousands of existing channels, and one insertion per table stores the others.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from json.encoder import encode_basestring_ascii
from typing import Any, NamedTuple

from fishweir.algebra.action_columns import ActionColumns
from fishweir.algebra.nodes import Schedule
from fishweir.catalog.database import Connection, chunks
from fishweir.catalog.schema import COLLECTED

RANGES_PER_STATEMENT = 400
"""Ranges per lookup statement: SQLite takes no more than 999 values in some builds."""


class ChannelSpecs(NamedTuple):
    """How results are delivered. `names` are the names that were subscribed to: if an action has its own deliveries,
    those to one name are separate from others."""

    actions: ActionColumns
    schedules: Sequence[Schedule]
    stylesheets: Sequence[str | None]
    names: Sequence[str]

    def at(self, places: Sequence[int]) -> ChannelSpecs:
        """The specifications at these places."""
        return ChannelSpecs(
            self.actions.at(places),
            [self.schedules[i] for i in places],
            [self.stylesheets[i] for i in places],
            [self.names[i] for i in places],
        )


class Channels:
    """Channels within one change of the catalog. Other writers are locked out, so ids can be assigned without races."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.now = 0.0
        self._cache: dict[str, int] = {}
        self._collected: int | None = None

    def of(self, specs: ChannelSpecs) -> list[int]:
        """The channel of each specification. Adds those with an interval to the event list."""
        every = [schedule.every or 0.0 for schedule in specs.schedules]
        anchors = [self._anchor(schedule) for schedule in specs.schedules]
        arguments = [_list(one) for one in specs.actions.arguments]
        keys = _keys(specs, arguments, every, anchors)
        new = {key: place for place, key in enumerate(keys) if key not in self._cache}
        if new:
            found = self._ids("channels", "key", list(new))
            self._set_timers([(found[key], every[at], anchors[at]) for key, at in new.items() if key in found])
            missing = {key: at for key, at in new.items() if key not in found}
            columns = {
                "output": specs.actions.names,
                "arguments": arguments,
                "stylesheet": specs.stylesheets,
                "every": every,
                "anchor": anchors,
            }
            created = self._create(missing, columns, specs.actions)
            self._add_timers([(created[key], every[at], anchors[at]) for key, at in missing.items()])
            self._cache |= found | created
        return [self._cache[key] for key in keys]

    def with_actions(self, actions: ActionColumns) -> list[list[int]]:
        """The channels of each action, with any stylesheet and interval. Their keys begin with the action."""
        given = zip(actions.names, actions.arguments, strict=True)
        heads = [f"[{_json(name)}, {_list(arguments)}, " for name, arguments in given]
        found: dict[str, list[int]] = {head: [] for head in heads}
        for some in chunks(list(found), RANGES_PER_STATEMENT):
            marks = ", ".join(f"(:first{at}, :last{at})" for at in range(len(some)))
            values = {f"first{at}": head for at, head in enumerate(some)}
            values |= {f"last{at}": head + chr(0x10FFFF) for at, head in enumerate(some)}
            between = f"(values {marks}) as given cross join channels where key between column1 and column2"
            for head, key, id in self.connection.execute(f"select column1, key, id from {between}", **values):
                if key.startswith(head):  # the order of a database may be that of a language
                    found[head].append(id)
        return [found[head] for head in heads]

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

    def _create(
        self, missing: Mapping[str, int], columns: Mapping[str, Sequence[Any]], actions: ActionColumns
    ) -> dict[str, int]:
        """Creates channels, given their keys with their places in the columns, and returns their ids."""
        places = list(missing.values())
        ids = self._numbers("channels", len(places))
        self.connection.insert_columns(
            "channels",
            {"id": ids, "key": list(missing), "target": self._targets(actions.at(places)), "token": _tokens(len(ids))}
            | {name: [column[at] for at in places] for name, column in columns.items()},
        )
        return dict(zip(missing, ids, strict=True))

    def _targets(self, actions: ActionColumns) -> list[int]:
        given = zip(actions.addresses, actions.names, actions.arguments, strict=True)
        addresses = [address or json.dumps([name, *arguments]) for address, name, arguments in given]
        hosts = dict(zip(addresses, actions.hosts, strict=True))
        ids = self._ids("targets", "address", list(hosts))
        new = [address for address in hosts if address not in ids]
        numbers = self._numbers("targets", len(new))
        columns = {"id": numbers, "address": new, "host": [hosts[address] for address in new]}
        self.connection.insert_columns("targets", columns)
        ids |= zip(new, numbers, strict=True)
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
        due = [next_due(anchor, every, self.now) for _, every, anchor in timed]
        channels = [id for id, _, _ in timed]
        self.connection.insert_columns("timers", {"channel": channels, "due": due}, {"batch": self._collected})


def _tokens(count: int) -> list[str]:
    """Random texts of 24 characters, three bytes in four characters each, for the unsubscribe links of channels. In
    their order, their index is written from left to right, and each is still as hard to guess."""
    import secrets  # imported late: it loads OpenSSL

    together = base64.urlsafe_b64encode(secrets.token_bytes(18 * count)).decode()
    return sorted(together[start : start + 24] for start in range(0, len(together), 24))


def _keys(
    specs: ChannelSpecs, arguments: Sequence[str], every: Sequence[float], anchors: Sequence[float | None]
) -> list[str]:
    """The keys of channels, as JSON. They are assembled by hand because most of the time of `json.dumps` is its
    setup."""
    names, addresses = map(encode_basestring_ascii, specs.actions.names), map(_json, specs.actions.addresses)
    own = [_json(name if is_own else None) for name, is_own in zip(specs.names, specs.actions.own, strict=True)]
    timed = [
        f"{float(seconds)!r}, {'null' if anchor is None else repr(anchor)}"
        for seconds, anchor in zip(every, anchors, strict=True)
    ]
    columns = (names, arguments, addresses, map(_json, specs.stylesheets), timed, own)
    return [f"[{', '.join(parts)}]" for parts in zip(*columns, strict=True)]


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

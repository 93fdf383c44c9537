"""Actions and subscriptions as columns: most users have an address of their own, so there are as many as queries."""

from __future__ import annotations

from collections.abc import Sequence

from fishweir.algebra.feeds import Subscribe
from fishweir.algebra.nodes import Action, Schedule
from fishweir.records import dataclass


@dataclass(frozen=True, slots=True)
class ActionColumns:
    """One action of each of many statements, with the fields of `Action`."""

    names: Sequence[str]
    arguments: Sequence[tuple[str, ...]]
    addresses: Sequence[str]
    hosts: Sequence[str]
    own: Sequence[bool]

    def __len__(self) -> int:
        return len(self.names)

    def one(self, place: int) -> Action:
        arguments = self.arguments[place]
        return Action(self.names[place], arguments, self.addresses[place], self.hosts[place], self.own[place])

    def at(self, places: Sequence[int]) -> ActionColumns:
        """The actions at these places."""
        columns = (self.names, self.arguments, self.addresses, self.hosts, self.own)
        return ActionColumns(*([column[i] for i in places] for column in columns))  # type: ignore[arg-type]


def to_columns(actions: Sequence[Action]) -> ActionColumns:
    return ActionColumns(
        [one.name for one in actions],
        [one.arguments for one in actions],
        [one.address for one in actions],
        [one.host for one in actions],
        [one.own for one in actions],
    )


def repeated(action: Action, count: int) -> ActionColumns:
    """An action that all statements have."""
    fields = (action.name, action.arguments, action.address, action.host, action.own)
    return ActionColumns(*([field] * count for field in fields))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, eq=False)
class Subscriptions:
    """Subscriptions as columns, with the fields of `Subscribe`."""

    feeds: Sequence[str]
    actions: ActionColumns
    stylesheets: Sequence[str | None]
    schedules: Sequence[Schedule]
    texts: Sequence[str]
    lines: Sequence[int]

    def __len__(self) -> int:
        return len(self.texts)

    def one(self, place: int) -> Subscribe:
        action, schedule = self.actions.one(place), self.schedules[place]
        return Subscribe(
            self.feeds[place], action, self.stylesheets[place], schedule, self.texts[place], self.lines[place]
        )


def to_subscriptions(statements: Sequence[Subscribe]) -> Subscriptions:
    return Subscriptions(
        [one.feed for one in statements],
        to_columns([one.action for one in statements]),
        [one.stylesheet for one in statements],
        [one.schedule for one in statements],
        [one.text for one in statements],
        [one.line for one in statements],
    )

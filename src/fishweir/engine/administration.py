"""Administration: lists, searches, replaces, pauses and resumes queries; manages undelivered results and actions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from fishweir.algebra.nodes import ON_CHANGE, DropQuery, Schedule
from fishweir.catalog.catalog import Catalog
from fishweir.catalog.query_admin import QueryInfo, list_queries, matches, pause, resume
from fishweir.catalog.subscribers import Subscription, feeds_by
from fishweir.delivery.outputs.registry import Factory, Outputs
from fishweir.delivery.undelivered import Undelivered, list_undelivered, resend
from fishweir.errors import QueryError
from fishweir.pipeline.home import Home, about_feed
from fishweir.pipeline.result import Result

if TYPE_CHECKING:
    from fishweir.delivery.unsubscribing import Ticket
    from fishweir.engine.registration import Registration


def schedule_of(defaults: str) -> Callable[[float], Schedule]:
    """An administrator's default schedule, as a function of the registration time."""
    if not defaults:
        return lambda _: ON_CHANGE
    from fishweir.languages.clauses import parse_clauses

    clauses = parse_clauses(defaults, "defaults")
    if clauses.actions:
        raise QueryError("defaults can only contain start, every and expire")
    return clauses.schedule


class Administration(ABC):
    """The administrative part of the weir."""

    catalog: Catalog
    clock: Callable[[], float]
    outputs: Outputs
    home: Home

    @abstractmethod
    def execute(self, script: str) -> list[str]:
        """Registers the statements of a script, all or none, and returns the names of its queries."""

    @abstractmethod
    def _registration(self) -> AbstractContextManager[Registration]:
        """A context for changes of the catalog, all or none."""

    def drop(self, what: str | int) -> None:
        """Removes a query by its name, or a subscription by its id. Results are kept."""
        with self._registration() as registration:
            if isinstance(what, int):
                self._subscription(what)
                registration.registering.end_one(what)
            else:
                registration.run([DropQuery(what)])

    def drop_many(self, names: Iterable[str]) -> int:
        """Removes many queries, all or none, and returns their number."""
        given = list(names)
        with self._registration() as registration:
            registration.drop_many(given)
        return len(given)

    def _expire(self) -> int:
        """Drops expired queries, and activates those whose start has come. Returns the version of the catalog."""
        now, version = self.clock(), self.catalog.version()
        if now < self.catalog.next_due(version) or not (self.catalog.expired(now) or self.catalog.has_due_start(now)):
            return version
        with self._registration() as registration:
            registration.expire(now)
            registration.change.start_due(now)
        return self.catalog.version()

    def action(self, name: str, function: Callable[[Result], Any]) -> None:
        """Registers a Python function as an action: `do NAME` calls it with each result."""
        self.outputs.register_callable(name, function)

    def register_action(self, name: str, factory: Factory) -> None:
        """Registers an action: `do NAME ARGUMENTS` opens `factory(*arguments)` and passes it the results of a
        micro-batch.

        The factory returns an `OpenOutput` (delivery/payload.py). Register it before the queries that use it, and again
        whenever the home is opened.
        """
        self.outputs.register(name, factory)

    def replace(self, statement: str, subscription: int | None = None) -> str:
        """Replaces the definition of a query or feed. Earlier results and subscriptions are kept; the actions are those
        of the new statement. Takes effect with the next micro-batch. With the id of a `subscription`, the statement
        replaces that subscription. Earlier results that wait for a timer are delivered immediately.
        """
        from fishweir.engine.replacing import replace_query, replace_subscription
        from fishweir.languages.script import parse_script

        with self._registration() as registration:
            parsed = parse_script(statement, self.clock())
            if subscription is None:
                return replace_query(registration, parsed)
            self._subscription(subscription)
            return replace_subscription(registration, subscription, parsed)

    def act(self, name: str, clauses: str) -> None:
        """Changes the actions and the schedule of a query: `weir.act("q", "do http 'URL' every 1 hour")`."""
        from fishweir.engine.replacing import change_actions

        with self._registration() as registration:
            change_actions(registration, name, clauses)

    def drop_stream(self, name: str) -> None:
        """Removes a declared stream that no query reads. Its results are kept."""
        with self._registration() as registration:
            registration.registering.drop_stream(name)

    def queries(self, pattern: str | None = None) -> list[QueryInfo]:
        """The registered queries, optionally by a name pattern such as `x*`, or with a word in their names or texts."""
        with self.catalog.database.connect() as connection:
            return list_queries(connection, pattern)

    def subscriptions(self, pattern: str | None = None) -> list[Subscription]:
        """The subscriptions, by `do` and `subscribe`, optionally by a feed pattern, or with a word in their texts."""
        return [one for one in self.catalog.subscribers() if matches(pattern, one.feed, f"{one.text} {one.action}")]

    def pause(self, what: str | int) -> None:
        """Pauses a query by its name, or a subscription by its id. Documents that arrive in the meantime are missed."""
        with self.catalog.change() as change:
            if isinstance(what, int):
                if self._subscription(what).paused:
                    raise QueryError(f"the subscription {what} is already paused")
                change.subscribers.pause(what)
            else:
                pause(change, what)

    def resume(self, what: str | int) -> None:
        """Resumes a paused query or subscription."""
        with self.catalog.change() as change:
            change.subscribers.now = self.clock()
            if isinstance(what, int):
                if not self._subscription(what).paused:
                    raise QueryError(f"the subscription {what} is not paused")
                change.subscribers.resume(what)
            else:
                resume(change, what)

    def _subscription(self, id: int) -> Subscription:
        found = self.catalog.subscription(id)
        if found is None:
            raise QueryError(f"there is no subscription {id}")
        return found

    def unsubscribe(self, token: str) -> bool:
        """Ends the subscription of the unsubscribe link in a mail. Returns whether there was one."""
        with self._registration() as registration:
            return registration.registering.end(token)

    def _ticket(self, token: str) -> Ticket | None:
        """The subscription of the token of an unsubscribe link, or None."""
        from fishweir.delivery.unsubscribing import Ticket

        with self.catalog.database.connect() as connection:
            feeds, is_active = feeds_by(connection, token)
        return Ticket(feeds, is_active) if feeds else None

    def import_opml(self, document: bytes | str) -> list[str]:
        """Registers the feeds of an OPML document, all or none, except those already registered by URL. Returns their
        names.
        """
        from fishweir.engine.opml import from_opml, registration

        streams = self.catalog.streams()
        places = [stream.path for _, stream in streams.values() if stream.path]
        text = document.encode() if isinstance(document, str) else document
        feeds = from_opml(text, streams, places)
        if feeds:
            self.execute(registration(feeds))
        return [name for name, _ in feeds]

    def export_opml(self) -> str:
        """The registered feeds as OPML, without passwords."""
        from fishweir.engine.opml import to_opml

        feeds = {n: (id, s) for n, (id, s) in self.catalog.streams().items() if s.format == "feed"}
        return to_opml({name: (stream, about_feed(self.home, id)) for name, (id, stream) in feeds.items()})

    def letters(self) -> list[Undelivered]:
        """Deliveries that are not acknowledged yet, and those that were given up, the oldest first."""
        with self.catalog.database.connect() as connection:
            return list_undelivered(connection)

    def dead_letters(self) -> list[Undelivered]:
        """Deliveries that were given up: after three days, or because the target will never accept them."""
        with self.catalog.database.connect() as connection:
            return list_undelivered(connection, dead=True)

    def resend(self, ids: Collection[int] | None = None) -> int:
        """Retries dead letters, all or those with the given ids, and returns their number."""
        with self.catalog.database.begin() as connection:
            return resend(connection, self.clock(), ids)

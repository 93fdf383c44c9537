"""Registration and subscription of feeds (RoSeS 3.1): sources by URL, materialized feeds, subscriptions.

A fetched or materialized feed is an ordinary stream. This module checks what a parser cannot check: that the feeds
exist, that the stylesheets compile, and that a dropped feed has no readers.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from fishweir.algebra.action_columns import Subscriptions, to_columns, to_subscriptions
from fishweir.algebra.feeds import FeedName, FeedQuery, RegisterFeed, Subscribe, Unsubscribe
from fishweir.algebra.nodes import DERIVED, Action, CreateQuery, CreateStream, Schedule, StreamDefinition
from fishweir.catalog.change import Change
from fishweir.catalog.channels import ChannelSpecs
from fishweir.catalog.subscribers import SubscriptionRequests, current_subscriptions
from fishweir.delivery.options import BadArgument
from fishweir.delivery.outputs.registry import Outputs
from fishweir.engine.feeds import Feeds
from fishweir.engine.statement_errors import quoted, statement_error
from fishweir.errors import QueryError, SourceError
from fishweir.guard import GuardError
from fishweir.intake import is_url

ITEMS = f"{DERIVED}items."
"""The name prefix of queries that return all items of a stream to its subscribers."""


class FeedRegistration:
    def __init__(
        self,
        change: Change,
        streams: dict[str, StreamDefinition],
        feeds: Feeds,
        base: Path,
        add_stream: Callable[[CreateStream], None],
        add_query: Callable[[CreateQuery], None],
        scheduled: Callable[[Schedule], Schedule],
        outputs: Outputs,
    ) -> None:
        self.change, self.streams, self.feeds, self.base, self.add_stream = change, streams, feeds, base, add_stream
        self.add_query, self.scheduled, self.outputs = add_query, scheduled, outputs
        self.subscribers = change.subscribers

    def register(self, statement: RegisterFeed) -> None:
        """Creates the stream N: of the content of a URL or file, or of the items of a published feed."""
        place = statement.virtual or statement.url or ""
        if self.feeds.is_published(statement.name):
            raise statement_error(
                statement, f"feed {statement.name}: there is already a feed with this name", statement.name, "as"
            )
        if self.feeds.is_published(place):
            sheet = self._stylesheet(statement, statement.stylesheet)
            stream = StreamDefinition(statement.name, virtual=place, stylesheet=sheet)
        else:
            stream = self._source(statement, place)
        try:
            self.add_stream(CreateStream(stream, statement.text, statement.line))
        except SourceError as error:
            raise statement_error(statement, str(error).replace("stream ", "feed ", 1), place) from error
        except QueryError as error:
            raise statement_error(statement, f"feed {statement.name}: {error.reason}", statement.name, "as") from error

    def _source(self, statement: RegisterFeed, place: str) -> StreamDefinition:
        if place in self.streams:
            hint = f"write: create feed NAME from {place}; register feed NAME ..."
            raise statement_error(
                statement, f"feed {statement.name}: {place} is a stream, not a published feed; {hint}", place
            )
        if statement.stylesheet is not None:
            raise statement_error(statement, f"feed {statement.name}: there is no feed '{place}'", place)
        is_path = not is_url(place) and not place.startswith("file:")
        path = os.path.abspath(self.base / place) if is_path else place
        if statement.virtual is not None and not Path(path).is_file():
            raise statement_error(
                statement, f"feed {statement.name}: there is neither a feed nor a file '{place}'", place
            )
        return StreamDefinition(statement.name, path=path, format="feed")

    def subscribe(self, given: Iterable[Subscribe | Subscriptions]) -> None:
        """Subscribes to feeds or queries by name, or to all items of a stream."""
        for is_one, some in groupby(given, lambda one: isinstance(one, Subscribe)):
            for part in [to_subscriptions(list(some))] if is_one else some:  # type: ignore[arg-type]
                self._subscribe(part)  # type: ignore[arg-type]

    def _subscribe(self, given: Subscriptions) -> None:
        queries = {feed: self._query_of(feed) for feed in dict.fromkeys(given.feeds)}
        requests = self._requests(given, queries)
        for feed, query in queries.items():
            if query != feed and not self.change.has(str(query)):
                everything = FeedQuery(FeedName(feed))
                self.add_query(CreateQuery(everything, (), query, text=f"all items of {feed}", derived=True))
        self.subscribers.add(requests)

    def _requests(self, given: Subscriptions, queries: Mapping[str, str | None]) -> SubscriptionRequests:
        """The subscriptions as they are stored. If one of them is invalid, they are checked one by one, since the first
        error is the one to report."""
        firsts = {sheet: place for place, sheet in reversed(list(enumerate(given.stylesheets)))}
        try:
            sheets = {sheet: self._stylesheet(given.one(place), sheet) for sheet, place in firsts.items()}
            actions = self.outputs.all_resolved(given.actions, self.base)
        except (BadArgument, QueryError):
            self._check_each(given, queries)
            raise
        if None in queries.values():
            self._check_each(given, queries)
        schedules = {schedule: self.scheduled(schedule) for schedule in set(given.schedules)}
        specs = ChannelSpecs(
            actions,
            [schedules[schedule] for schedule in given.schedules],
            [sheets[sheet] for sheet in given.stylesheets],
            given.feeds,
        )
        return SubscriptionRequests([str(queries[feed]) for feed in given.feeds], specs, given.texts)

    def _check_each(self, given: Subscriptions, queries: Mapping[str, str | None]) -> None:
        """Raises the error of the first invalid subscription."""
        for statement in map(given.one, range(len(given))):
            if queries[statement.feed] is None:
                reason = f"there is no feed '{statement.feed}' to subscribe to"
                raise statement_error(statement, reason, statement.feed, "to")
            self._stylesheet(statement, statement.stylesheet)
            self._resolved(statement, statement.action)

    def _query_of(self, feed: str) -> str | None:
        """The query that yields the subscribed results."""
        if self.change.has(feed) or self.feeds.is_published(feed):
            return feed
        return f"{ITEMS}{feed}" if feed in self.streams else None

    def unsubscribe(self, statements: Iterable[Unsubscribe]) -> None:
        """Ends subscriptions, in order. Consecutive statements that name an output are handled together."""
        queries: dict[str, str | None] = {}
        for is_one, some in groupby(statements, lambda statement: statement.action is not None):
            group = list(some)
            queries |= {feed: self._query_of(feed) for feed in dict.fromkeys(one.feed for one in group)}
            named = [queries[statement.feed] or "" for statement in group]
            if is_one:
                self._end_each(group, named)
                continue
            for statement, query in zip(group, named, strict=True):
                if not self.subscribers.end_of(query):
                    raise _no_subscription(statement)
        for swept in queries.values():
            self._sweep(str(swept))

    def _end_each(self, group: Sequence[Unsubscribe], queries: Sequence[str]) -> None:
        """If an output is invalid, the statements are handled one by one, since the first error is the one to
        report."""
        given = [statement.action for statement in group if statement.action is not None]
        try:
            actions = self.outputs.all_resolved(to_columns(given), self.base)
        except (BadArgument, QueryError):
            if len(group) == 1:
                self._resolved(group[0], given[0])
                raise
            for statement, query in zip(group, queries, strict=True):
                self._end_each([statement], [query])
            return
        missing = self.subscribers.end_each(queries, actions)
        if missing is not None:
            raise _no_subscription(group[missing])

    def end(self, token: str) -> bool:
        """Ends the subscriptions whose mails contain this token. A click on an old mail has no effect."""
        ended = self.subscribers.end_by(token)
        for query in ended:
            self._sweep(query)
        return bool(ended)

    def end_one(self, id: int) -> None:
        """Ends a subscription by its id."""
        (query,) = [one.query for one in current_subscriptions(self.change.connection, "subscriptions.id = :id", id=id)]
        self.subscribers.end("id = :id", id=id)
        self._sweep(query)

    def _sweep(self, query: str) -> None:
        """Drops a query that existed only for subscribers when the last of them is gone."""
        if query.startswith(ITEMS) and not self.subscribers.of(query):
            self.change.drop(query)

    def _resolved(self, statement: Subscribe | Unsubscribe, action: Action) -> Action:
        try:
            return self.outputs.resolved(action, self.base)
        except BadArgument as error:
            raise statement_error(statement, error.reason, quoted(statement, error.word), "output") from error

    def check_unsubscribed(self, name: str) -> None:
        subscriptions = [one for one in self.subscribers.of(self._query_of(name) or name) if not one.by_query]
        if subscriptions:
            shown = "; ".join(subscription.text for subscription in subscriptions[:3])
            raise QueryError(f"the feed {name} has subscribers: {shown}; unsubscribe first")

    def drop(self, name: str) -> None:
        """Drops a registered feed. Its items remain in the log, for earlier results."""
        stream = self.streams.get(name)
        if stream is None:
            raise QueryError(f"there is no feed {name}")
        if stream.format != "feed" and stream.virtual is None:
            raise QueryError(f"{name} is a stream that was not registered as a feed: use drop_stream")
        self.drop_stream(name)

    def drop_stream(self, name: str) -> None:
        """Drops a stream without readers. Its items remain in the log, for earlier results."""
        if name not in self.streams:
            raise QueryError(f"there is no stream {name}")
        if self.streams[name].virtual == name:
            raise QueryError(f"the stream {name} contains the results of a query: drop the query instead")
        self.check_unsubscribed(name)
        readers = sorted(self._readers(name))
        if readers:
            shown = ", ".join(readers[:5]) + (" and others" if len(readers) > 5 else "")
            kind = "feed" if self.streams[name].format == "feed" or self.streams[name].virtual else "stream"
            raise QueryError(f"the {kind} {name} is read by {shown}; drop them first")
        self.change.drop_stream(name)
        del self.streams[name]

    def _readers(self, name: str) -> set[str]:
        """The user-named queries, feeds and streams that read this stream."""
        materialized = {stream.name for stream in self.streams.values() if stream.virtual == name != stream.name}
        read = {*self.change.reading(name), *self.change.publications.reader_names(name), *materialized}
        inner = {reader for reader in read if reader.startswith(DERIVED)}
        return (read - inner).union(*(self._readers(reader) for reader in inner))

    def _stylesheet(self, statement: RegisterFeed | Subscribe, path: str | None) -> str | None:
        """The absolute path of the stylesheet, after checking that it compiles."""
        if path is None:
            return None
        from fishweir.delivery.stylesheets import Stylesheet

        whole = os.path.abspath(self.base / path)
        try:
            self.outputs.guard.check(path, self.base)
            Stylesheet(whole)
        except QueryError as error:
            raise statement_error(statement, error.reason, path) from error
        except GuardError as error:
            raise statement_error(statement, str(error), path) from error
        return whole


def _no_subscription(statement: Unsubscribe) -> QueryError:
    reason = f"there is no such subscription to '{statement.feed}'"
    return statement_error(statement, reason, statement.feed, "from")

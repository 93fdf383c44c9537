"""Registration and subscription of feeds (RoSeS 3.1): sources by URL, feeds materialised, who wants them.

A feed that is fetched or materialised is a stream like any other. What is checked here is what a parser
cannot know: that the feeds exist, that the stylesheets compile, that nothing reads what goes away.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from fishweir.algebra.feeds import RegisterFeed, Subscribe, Unsubscribe
from fishweir.algebra.nodes import CreateStream, StreamDefinition
from fishweir.catalog.change import Change
from fishweir.catalog.subscribers import Subscribers
from fishweir.delivery.stylesheets import Stylesheet
from fishweir.engine.feeds import Feeds
from fishweir.engine.places import refused
from fishweir.errors import QueryError, SourceError
from fishweir.guard import Guard, GuardError
from fishweir.intake import is_url

FILES = ("file", "rss")
"""Outputs whose target is a file."""


class FeedRegistration:
    def __init__(
        self,
        change: Change,
        streams: dict[str, StreamDefinition],
        feeds: Feeds,
        base: Path,
        add_stream: Callable[[CreateStream], None],
        guard: Guard,
    ) -> None:
        self.guard = guard
        self.change, self.streams, self.feeds, self.base, self.add_stream = change, streams, feeds, base, add_stream
        self.subscribers = Subscribers(change)

    def register(self, statement: RegisterFeed) -> None:
        """N becomes a stream: of what a URL or file gives, or of the items of a published feed."""
        place = statement.virtual or statement.url or ""
        if self.feeds.is_published(statement.name):
            raise refused(statement, f"feed {statement.name}: there is a feed of that name", statement.name, "as")
        if self.feeds.is_published(place):
            sheet = self._stylesheet(statement, statement.stylesheet)
            stream = StreamDefinition(statement.name, virtual=place, stylesheet=sheet)
        else:
            stream = self._source(statement, place)
        try:
            self.add_stream(CreateStream(stream, statement.text, statement.line))
        except SourceError as error:
            raise refused(statement, str(error).replace("stream ", "feed ", 1), place) from error
        except QueryError as error:
            raise refused(statement, f"feed {statement.name}: {error.reason}", statement.name, "as") from error

    def _source(self, statement: RegisterFeed, place: str) -> StreamDefinition:
        if place in self.streams:
            hint = f"write: create feed NAME from {place}; register feed NAME ..."
            raise refused(statement, f"feed {statement.name}: {place} is a stream, not a published feed; {hint}", place)
        if statement.stylesheet is not None:
            raise refused(statement, f"feed {statement.name}: there is no feed '{place}'", place)
        is_path = not is_url(place) and not place.startswith("file:")
        path = os.path.abspath(self.base / place) if is_path else place
        if statement.virtual is not None and not Path(path).is_file():
            raise refused(statement, f"feed {statement.name}: there is neither a feed nor a file '{place}'", place)
        return StreamDefinition(statement.name, path=path, format="feed")

    def subscribe(self, statement: Subscribe) -> None:
        if not self.feeds.is_published(statement.feed) and statement.feed not in self.streams:
            raise refused(statement, f"there is no feed '{statement.feed}' to subscribe to", statement.feed, "to")
        sheet = self._stylesheet(statement, statement.stylesheet)
        target = self._target(statement.output, statement.target)
        self.subscribers.add(replace(statement, stylesheet=sheet, target=target))

    def unsubscribe(self, statement: Unsubscribe) -> None:
        output, target = statement.output, statement.target
        if output is not None and target is not None:
            target = self._target(output, target)
        if not self.subscribers.drop(statement.feed, output, target):
            raise refused(statement, f"there is no such subscription to '{statement.feed}'", statement.feed, "from")

    def _target(self, output: str, target: str) -> str:
        """Files are named whole: deliveries may run in another folder."""
        if output not in FILES or "://" in target:
            return target
        return os.path.abspath(self.base / target)

    def check_unsubscribed(self, name: str) -> None:
        standing = self.subscribers.of(name)
        if standing:
            shown = "; ".join(subscription.text for subscription in standing[:3])
            raise QueryError(f"the feed {name} has subscribers: {shown}; unsubscribe first")

    def drop(self, name: str) -> None:
        """Drops a registered feed; its items stay in the log, where results find them."""
        stream = self.streams.get(name)
        if stream is None:
            raise QueryError(f"there is no feed {name}")
        if stream.format != "feed" and stream.virtual is None:
            raise QueryError(f"{name} is a stream that was not registered as a feed; streams are not dropped")
        self.check_unsubscribed(name)
        self.feeds.check_unread(name)
        readers = self.change.reading(name)
        if readers:
            raise QueryError(f"the feed {name} is read by {', '.join(readers[:5])}; drop them first")
        self.change.drop_stream(name)
        del self.streams[name]

    def _stylesheet(self, statement: RegisterFeed | Subscribe, path: str | None) -> str | None:
        """The stylesheet's whole path, once it is known to compile."""
        if path is None:
            return None
        whole = os.path.abspath(self.base / path)
        try:
            self.guard.check(path, self.base)
            Stylesheet(whole)
        except QueryError as error:
            raise refused(statement, error.reason, path) from error
        except GuardError as error:
            raise refused(statement, str(error), path) from error
        return whole

"""What an administrator does: list, search, replace, pause and resume, and look after what was not delivered."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from fishweir.algebra.nodes import DropQuery
from fishweir.catalog.catalog import Catalog
from fishweir.delivery.letters import Letter, letters, resend
from fishweir.pipeline.home import Home, about_feed

if TYPE_CHECKING:
    from fishweir.engine.register import Registration


class Administration:
    """A part of the weir."""

    catalog: Catalog
    clock: Callable[[], float]
    home: Home

    def execute(self, script: str) -> list[str]:
        raise NotImplementedError

    def _registration(self) -> AbstractContextManager[Registration]:
        raise NotImplementedError

    def drop(self, name: str) -> None:
        """Removes a query; its results stay."""
        with self._registration() as registration:
            registration.run([DropQuery(name)])

    def drop_many(self, names: Iterable[str]) -> int:
        """Removes many queries, all or none; how many."""
        given = list(names)
        with self._registration() as registration:
            registration.drop_many(given)
        return len(given)

    def import_opml(self, document: bytes | str) -> list[str]:
        """Registers the feeds of an OPML document, all or none, but those that are there by their URL; their names."""
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

    def letters(self) -> list[Letter]:
        """Deliveries that have not been acknowledged yet, and those that were given up, the oldest first."""
        with self.catalog.engine.connect() as connection:
            return letters(connection)

    def dead_letters(self) -> list[Letter]:
        """Deliveries that were given up: after three days, or because the target will never take them."""
        with self.catalog.engine.connect() as connection:
            return letters(connection, dead=True)

    def resend(self, ids: Collection[int] | None = None) -> int:
        """Lets dead letters be tried again, all or those with these ids; how many."""
        with self.catalog.engine.begin() as connection:
            return resend(connection, self.clock(), ids)

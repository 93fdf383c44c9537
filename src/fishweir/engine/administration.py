"""What an administrator does: list, search, replace, pause and resume, and look after what was not delivered."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from fishweir.algebra.nodes import DropQuery
from fishweir.catalog.catalog import Catalog
from fishweir.delivery.letters import Letter, letters, resend

if TYPE_CHECKING:
    from fishweir.engine.register import Registration


class Administration:
    """A part of the weir."""

    catalog: Catalog
    clock: Callable[[], float]

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

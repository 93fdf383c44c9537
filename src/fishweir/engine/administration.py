"""What an administrator does: list, search, replace, pause and resume, and look after what was not delivered."""

from __future__ import annotations

from collections.abc import Callable, Collection

from fishweir.catalog.catalog import Catalog
from fishweir.delivery.letters import Letter, letters, resend


class Administration:
    """A part of the weir."""

    catalog: Catalog
    clock: Callable[[], float]

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

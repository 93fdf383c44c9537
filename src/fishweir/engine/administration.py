"""What an administrator does: list, search, replace, pause and resume, and look after what was not delivered;
and the actions of programs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from fishweir.algebra.nodes import DropQuery
from fishweir.catalog.catalog import Catalog
from fishweir.delivery.letters import Letter, letters, resend
from fishweir.delivery.outputs.registry import Factory, Outputs

if TYPE_CHECKING:
    from fishweir.engine.register import Registration
    from fishweir.pipeline.result import Result


class Administration:
    """A part of the weir."""

    catalog: Catalog
    clock: Callable[[], float]
    outputs: Outputs

    def _registration(self) -> AbstractContextManager[Registration]:
        raise NotImplementedError

    def action(self, name: str, function: Callable[[Result], Any]) -> None:
        """Makes a Python function an action: `do NAME` calls it with each result."""
        self.outputs.register_callable(name, function)

    def register_action(self, name: str, factory: Factory) -> None:
        """Adds an action: `do NAME ARGUMENTS` opens `factory(*arguments)` and hands it the results of a micro-batch.

        The factory gives a `Deliverer` (delivery/parcels.py). Register it before the queries that use it, and again
        whenever the home is opened.
        """
        self.outputs.register(name, factory)

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

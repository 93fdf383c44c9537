"""Segments of queries that are registered in bulk, written while they are registered.

The job then only adopts them: no micro-batch waits until a hundred thousand queries are planned. The catalog names a
segment in the transaction that stores its queries, so a change that is taken back leaves a file that nobody reads.
Few queries are left to the job: it has a small segment for them in no time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fishweir.algebra.clauses import constants_of, to_normals
from fishweir.algebra.nodes import Constant
from fishweir.catalog.change import Added, Change

if TYPE_CHECKING:
    from fishweir.engine.planning import Planning

BULK = 1_000
"""From so many queries in one change on, they come with segments."""
MOST = 100_000
"""Queries in one of these segments."""


@contextmanager
def written_in_bulk(change: Change, planning: Callable[[], Planning]) -> Iterator[None]:
    writer = _Writer(change, planning)
    change.on_added = writer.add
    yield
    writer.write()


class _Writer:
    def __init__(self, change: Change, planning: Callable[[], Planning]) -> None:
        self.change, self.planning = change, planning
        self.waiting: list[Added] = []
        self.any = False

    def add(self, some: Sequence[Added]) -> None:
        self.waiting += some
        if len(self.waiting) >= MOST:
            self.write()

    def write(self) -> None:
        if self.waiting and (self.any or len(self.waiting) >= BULK):
            after, upto = self.waiting[0].change - 1, self.waiting[-1].change
            piece = self.planning().write(after, upto, _rows(self.waiting))
            self.change.add_segment(after, upto, piece.size, piece.plan, piece.asked)
            self.waiting, self.any = [], True


def _rows(added: Sequence[Added]) -> Iterator[tuple[int, Any, list[Constant]]]:
    """The queries as planners want them."""
    normals = {id(one.shape): to_normals(one.shape) for one in {id(one.shape): one for one in added}.values()}
    for one in added:
        for normal in normals[id(one.shape)]:
            yield one.number, normal.template, constants_of(normal, one.constants)

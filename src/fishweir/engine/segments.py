"""Writes the segments of queries that are registered in bulk, during registration.

The job then only adopts them: no micro-batch waits until a hundred thousand queries are planned. The catalog names a
segment in the transaction that stores its queries, so a rolled-back change leaves only an unused file. Small numbers of
queries are left to the job, which quickly creates a small segment for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fishweir.algebra.clauses import constants_in_order, to_normals
from fishweir.algebra.nodes import Constant
from fishweir.algebra.path_queries import Paths
from fishweir.catalog.change import Change
from fishweir.catalog.query_inserter import InsertedQueries

if TYPE_CHECKING:
    from fishweir.engine.planning import Planning
    from fishweir.evaluate.query_rows import PathRow

BULK = 1_000
"""The minimum number of queries in one change for which segments are written."""
MOST = 100_000
"""The maximum number of queries in one of these segments."""


@contextmanager
def written_in_bulk(change: Change, planning: Callable[[], Planning]) -> Iterator[None]:
    writer = _Writer(change, planning)
    change.adding.on_added = writer.add
    yield
    writer.write()


class _Writer:
    def __init__(self, change: Change, planning: Callable[[], Planning]) -> None:
        self.change, self.planning = change, planning
        self.waiting: list[InsertedQueries] = []
        self.size = 0
        self.any = False

    def add(self, some: Sequence[InsertedQueries]) -> None:
        self.waiting += some
        self.size += sum(len(one.constants) for one in some)
        if self.size >= MOST:
            self.write()

    def write(self) -> None:
        if self.waiting and (self.any or self.size >= BULK):
            after, upto = self.waiting[0].change - 1, self.waiting[-1].upto
            piece = self.planning().write(after, upto, _rows(self.waiting), _paths(self.waiting))
            self.change.add_segment(after, upto, piece.size, piece.plan, piece.asked)
            self.waiting, self.size, self.any = [], 0, True


def _rows(added: Sequence[InsertedQueries]) -> Iterator[tuple[int, Any, Sequence[Constant]]]:
    """The queries in the form that planners need."""
    for some in added:
        for normal in () if isinstance(some.shape, Paths) else to_normals(some.shape):
            ordered = constants_in_order(normal)
            for number, constants in zip(some.numbers, some.constants, strict=True):
                yield number, normal.template, ordered(constants)


def _paths(added: Sequence[InsertedQueries]) -> Iterator[PathRow]:
    """The queries that have their path as a constant."""
    for some in added:
        if isinstance(some.shape, Paths):
            for number, constants in zip(some.numbers, some.constants, strict=True):
                yield number, some.shape.source, constants

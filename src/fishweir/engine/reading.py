"""Readers of results, the same on the driver and in tasks, built from home and catalog.

In: a home, its catalog, and the requested queries. Out: batches of results, for all micro-batches or some of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np

from fishweir.catalog.catalog import Catalog
from fishweir.engine.own_catalog import catalog_address
from fishweir.pipeline.commits import Commit, ResultsTable
from fishweir.pipeline.home import Home
from fishweir.pipeline.result_batch import ResultBatch
from fishweir.pipeline.results import InTasks, ResultReader
from fishweir.pipeline.shares import WHOLE, Part, Share, parts_of
from fishweir.records import dataclass

if TYPE_CHECKING:
    from fishweir.pipeline.spark.session import SparkSession


@dataclass(frozen=True)
class ResultSelection:
    """The results of some queries, or of all queries that users registered."""

    reader: ResultReader
    table: ResultsTable
    queries: tuple[int, ...] | None

    def batches(self, commits: Iterable[Commit], share: Share = WHOLE) -> Iterator[ResultBatch]:
        numbers = None if self.queries is None else np.array(self.queries)
        for batch in self.reader.batches(self.table, commits, numbers, share):
            yield batch if self.queries is not None else batch.asked_for()

    def commits(self) -> Iterator[Commit]:
        """The micro-batches that may have results."""
        numbers = None if self.queries is None else np.array(self.queries)
        return (one for one in self.table.commits() if self.reader.may_have(self.table, one, numbers))

    def all(self) -> Iterator[ResultBatch]:
        return self.batches(self.commits())

    def in_tasks(self, session: SparkSession, catalog: Catalog) -> InTasks:
        """The current results, read in tasks."""
        from fishweir.pipeline.spark.reading import SparkReading

        home, upto = self.reader.home, self.table.newest().batch
        read = InTask(str(home.path), home.id, catalog_address(catalog), self.queries, upto)
        return SparkReading(session, read, list(parts_of(self.commits())), home.results)


@dataclass(frozen=True)
class InTask:
    """The data sent to a task: the locations of home and catalog, and the request, for the micro-batches `upto` one."""

    home: str
    id: str
    catalog: str
    queries: tuple[int, ...] | None
    upto: int

    def __call__(self, part: Part) -> Iterator[ResultBatch]:
        reader = _reader(self.home, self.id, self.catalog)
        selection = ResultSelection(reader, ResultsTable(reader.home.results, self.upto), self.queries)
        for share, some in groupby(part, key=itemgetter(1)):
            yield from selection.batches((commit for commit, _ in some), share)


@lru_cache(maxsize=4)
def _reader(home: str, id: str, address: str) -> ResultReader:
    """A reader, cached in the process of a task, so that later tasks reuse the queries that it has looked up."""
    return reader_of(Home(home), Catalog(address, id, is_new=False))


def reader_of(home: Home, catalog: Catalog) -> ResultReader:
    return ResultReader(home, catalog, lambda version: catalog.tombstones().upto(version), catalog.absences)

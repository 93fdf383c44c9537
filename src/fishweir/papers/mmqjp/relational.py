"""Base of the strategies on a relational engine: the engine's protocol, the state, and the pairs that can join.

In: join queries, then documents in batches. Out: the results of each query per batch, as rows or as counts. The state
consists of three relations, Rbin, Rdoc and RdocTS. Each batch is loaded into their W forms, evaluated, and then added
to the state (algorithm 2). The paper has a single FOLLOWED BY and documents in the order of their times. Beyond that,
pairs are found with the left document retained and the right one new, vice versa, and with both new.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fishweir.algebra.nodes import Constant, Shape
from fishweir.papers.mmqjp.conjunctive import CURRENT, STATE, SideTables, counted, within_window
from fishweir.papers.mmqjp.join_graph import Variable
from fishweir.papers.mmqjp.relations import BIN, DOC, DOC_TS, Arrival, Relations, WitnessFinder
from fishweir.papers.mmqjp.templates import QueryTemplate, QueryTemplates, Reach, TemplateRelation

Counts = NDArray[np.int64]
JoinQuery = tuple[Shape, Sequence[Constant]]
MinorQuery = tuple[QueryTemplate, Sequence[Variable], tuple[float, ...]]
"""A query's template, the variable at each of its nodes, and the reaches of its windows."""


class Engine(Protocol):
    """An engine that runs SQL: DuckDB, Spark."""

    def create(self, name: str, table: pa.Table) -> None:
        """Creates a table with this content, replacing one of that name."""

    def append(self, name: str, table: pa.Table) -> None: ...

    def materialize(self, name: str, query: str) -> None:
        """Creates a table with a query's rows, replacing one of that name."""

    def run(self, query: str) -> pa.Table: ...

    def drop(self, name: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Role:
    """The locations of the documents of the left and of the right side."""

    left: SideTables
    right: SideTables


@dataclass(frozen=True, slots=True)
class Found:
    """Rows of RoutT within the window: qid, docid1, docid2, the output nodes."""

    template: QueryTemplate
    rows: pa.Table


class RelationalJoin(ABC):
    """Queries and state, evaluated batch by batch. Subclasses define the evaluation of a batch.

    `share_equal`: equal queries are one row of RT and share their results; else each has its own row, as published.
    `seconds` has the accumulated time of each stage.
    """

    def __init__(self, engine: Engine, share_equal: bool = False) -> None:
        self.engine = engine
        self.templates = QueryTemplates()
        self.finder = WitnessFinder(self.templates)
        self.documents = 0
        self.seconds: dict[str, float] = {}
        self._share, self._ids = share_equal, dict[tuple[int, tuple[int, ...], tuple[float, ...]], int]()
        self._rows: list[int] = []
        self._span = (np.inf, -np.inf)
        self._changed: dict[str, TemplateRelation] = {}
        for name, schema in (("Rbin", BIN), ("Rdoc", DOC), ("RdocTS", DOC_TS)):
            engine.create(name, schema.empty_table())

    def register(self, queries: Iterable[JoinQuery]) -> None:
        """Registers queries, numbered in order. They see documents from the next batch on."""
        with self.timed("register"):
            for shape, constants in queries:
                self._add(*self.templates.place(shape, constants))
            self.load_templates()

    def register_minors(self, queries: Iterable[MinorQuery]) -> None:
        """Registers queries whose templates are known."""
        for query in queries:
            self._add(*self.templates.place_minor(*query))
        self.load_templates()

    def _add(self, relation: TemplateRelation, variables: tuple[int, ...], ends: tuple[float, ...]) -> None:
        key = (relation.number, variables, ends)
        row = self._ids.get(key) if self._share else None
        if row is None:
            row = self._ids[key] = len(self._rows) if not self._share else len(self._ids)
            relation.rows.append((row, variables, ends))
            self._changed[relation.name] = relation
        self._rows.append(row)

    def load_templates(self) -> None:
        """Loads the relations RT into the engine."""
        for name, relation in self._changed.items():
            self.engine.create(name, relation.to_arrow())
        self._changed.clear()

    @property
    def query_rows(self) -> Counts:
        """The row of RT of each registered query."""
        return np.array(self._rows, np.int64)

    def process(self, arrivals: Sequence[Arrival], keep: bool = True) -> list[Found]:
        """The results that a batch of documents adds. Unless `keep`, the state is restored afterwards."""
        return list(self._process(arrivals, lambda query: query, keep))

    def count(self, arrivals: Sequence[Arrival], keep: bool = True) -> Counts:
        """The number of results that a batch adds to each registered query."""
        totals = np.zeros(len(self._rows), np.int64)
        for found in self._process(arrivals, counted, keep):
            np.add.at(totals, found.rows["qid"].to_numpy(), found.rows["results"].to_numpy())
        return totals[self.query_rows]

    def _process(self, arrivals: Sequence[Arrival], head: Callable[[str], str], keep: bool) -> Iterator[Found]:
        """Algorithm 1."""
        with self.timed("witnesses"):
            batch = self.finder.find(arrivals, self.documents)
        with self.timed("load"):
            self.load(batch)
        with self.timed("join"):
            found = [f for f in self.evaluate(batch, head) if len(f.rows)]
        with self.timed("maintain"):
            if keep:
                self.maintain(batch)
            else:
                self.forget(batch)
        yield from found

    def restore(self, state: Relations) -> None:
        """Replaces the retained documents by these, numbered from 0."""
        for name, table in state.named().items():
            self.engine.create(name, table)
        self.documents, self._span = len(state.doc_ts), _span(state)

    def load(self, batch: Relations) -> None:
        for name, table in batch.named("W").items():
            self.engine.create(name, table)

    @abstractmethod
    def evaluate(self, batch: Relations, head: Callable[[str], str]) -> Iterator[Found]: ...

    def maintain(self, batch: Relations) -> None:
        """Algorithm 2."""
        for name, table in batch.named().items():
            self.engine.append(name, table)
        self.documents += len(batch.doc_ts)
        low, high = _span(batch)
        self._span = (min(self._span[0], low), max(self._span[1], high))

    def forget(self, batch: Relations) -> None:  # noqa: B027
        """Undoes the effect of loading a batch on the state."""

    def roles(self, batch: Relations, reach: Reach) -> list[Role]:
        """The possible locations of the two documents of a new result, by the times of the retained documents and the
        batch."""
        new, old = _span(batch), self._span
        found = [Role(STATE, CURRENT)] if self.documents and can_pair(reach, old, new) else []
        found += [Role(CURRENT, STATE)] if self.documents and can_pair(reach, new, old) else []
        return found + ([Role(CURRENT, CURRENT)] if len(batch.doc_ts) > 1 else [])

    def answer(self, query: str, template: QueryTemplate, role: Role, head: Callable[[str], str]) -> Found:
        """RoutT of a conjunctive query, within the window."""
        within = within_window(query, template.reach, role.left, role.right)
        return Found(template, self.engine.run(head(within)))

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - began


def can_pair(reach: Reach, left: tuple[float, float], right: tuple[float, float]) -> bool:
    """Whether documents of these time spans can be within some window of this kind."""
    forward, backward = reach.left and left[0] < right[1], reach.right and right[0] < left[1]
    return forward or backward or (not reach.strict and left[0] <= right[1] and right[0] <= left[1])


def _span(batch: Relations) -> tuple[float, float]:
    times = batch.doc_ts["timestamp"].to_numpy()
    return (float(times.min()), float(times.max())) if len(times) else (np.inf, -np.inf)

"""MMQJP, with and without views, and Sequential as strategies of the engine: `--strategy joins=mmqjp`.

A strategy takes the joins that the paper has: two streams, equal values only, windows in seconds. The default
strategies evaluate the rest. Documents are retained in the default format (join/state.py), so that a home may be opened
with another strategy at any time. The paper's relations are built from the retained documents (retained.py) when a
process starts, and then extended batch by batch (algorithm 2). With views, RL is assembled from the slices of the view
cache (algorithms 4 and 5). The queries are divided among the tasks: each evaluates its own on all documents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from fishweir.algebra.nodes import Source
from fishweir.errors import QueryError
from fishweir.evaluate.arrays import Ints
from fishweir.evaluate.group import Bundle, PlacedBundle, Strategy
from fishweir.evaluate.join.join_tables import JoinTable
from fishweir.evaluate.join.operators import EdgeSetJoins
from fishweir.evaluate.join.pairing import RunContext
from fishweir.evaluate.join.rows.probing import Joined
from fishweir.evaluate.join.state import Run
from fishweir.evaluate.join.variables import Variable
from fishweir.evaluate.statistics import Statistics
from fishweir.papers.document_numbering import DocumentNumbering, NumberedRuns
from fishweir.papers.mmqjp.duckdb_engine import DuckDBEngine
from fishweir.papers.mmqjp.mmqjp import Mmqjp
from fishweir.papers.mmqjp.relational import Found, MinorQuery, RelationalJoin
from fishweir.papers.mmqjp.relations import ATTRIBUTE, Relations
from fishweir.papers.mmqjp.retained import run_relations, together
from fishweir.papers.mmqjp.sequential import Sequential
from fishweir.papers.mmqjp.side_graphs import PlacedTemplate, place_template

Make = Callable[[], RelationalJoin]


@dataclass(frozen=True)
class Share:
    """The queries of one task: the table and number of the query for each row of RT."""

    join: RelationalJoin
    tables: Ints
    numbers: Ints
    documents: DocumentNumbering


class RelationalJoins(EdgeSetJoins):
    """Plain join tables, evaluated by one of the paper's algorithms. The state is that of the default strategy."""

    def __init__(self, tables: Sequence[JoinTable], make: Make) -> None:
        super().__init__(tables)
        self.make = make
        self.placed: list[PlacedTemplate] = [place_template(table.template) for table in tables]
        self.by_source: dict[Source, list[Variable]] = {}
        for variable in self.variables:
            self.by_source.setdefault(variable.source, []).append(variable)
        self._shares: dict[tuple[int, int], Share] = {}

    def pairs(self, new: Run, old: Sequence[Run], part: int, parts: int, known: RunContext) -> Iterator[Joined]:
        share = self.share(part, parts)
        join, runs = share.join, [*old, new]
        numbered = share.documents.number(old, [new])
        if numbered.restarted:
            join.restore(self._relations(share, old, numbered.numbers[:-1]))
        batch = self._relations(share, [new], numbered.numbers[-1:])
        join.load(batch)
        with join.timed("join"):
            answers = [found for found in join.evaluate(batch, lambda query: query) if len(found.rows)]
        join.maintain(batch)
        for found in answers:
            yield from self._pairs(share, found, runs, numbered)

    def _relations(self, share: Share, runs: Sequence[Run], numbers: Sequence[Ints]) -> Relations:
        parts = [run_relations(share.join.finder, run, self.by_source) for run in runs]
        return together(parts, numbers)

    def share(self, part: int, parts: int) -> Share:
        if (part, parts) not in self._shares:
            tables = np.repeat(np.arange(len(self.tables)), [table.size for table in self.tables])[part::parts]
            numbers = np.concatenate([table.numbers for table in self.tables])[part::parts]
            join = self.make()
            join.register_minors(query for at, query in enumerate(self._queries()) if at % parts == part)
            self._shares[part, parts] = Share(join, tables, numbers, DocumentNumbering())
        return self._shares[part, parts]

    def _queries(self) -> Iterator[MinorQuery]:
        for table, placed in zip(self.tables, self.placed, strict=True):
            waiting = [reach for reach in table.reaches if len(reach) and reach[0] >= 0]
            for ends in zip(*(reach.tolist() for reach in waiting), strict=True):
                yield placed.template, placed.variables, ends

    def _pairs(self, share: Share, found: Found, runs: Sequence[Run], numbered: NumberedRuns) -> Iterator[Joined]:
        """The rows of RoutT, grouped by pair of runs and join table."""
        names = found.rows.column_names
        rows = dict(zip(names, (found.rows[name].to_numpy() for name in names), strict=True))
        there = numbered.is_retained(rows["docid1"]) & numbered.is_retained(rows["docid2"])
        rows = {name: column[there] for name, column in rows.items()}
        (left_runs, lefts), (right_runs, rights) = (numbered.locate(rows[name]) for name in ("docid1", "docid2"))
        tables = share.tables[rows["qid"]]
        kinds = np.stack([tables, left_runs, right_runs], axis=1)
        for table, left, right in np.unique(kinds, axis=0).tolist():
            own = np.flatnonzero((kinds == (table, left, right)).all(axis=1))
            nodes = [element(rows[name][own]) for name in self.placed[table].outputs]
            yield Joined(
                runs[left],
                runs[right],
                lefts[own],
                rights[own],
                np.stack(nodes, axis=1) if nodes else np.empty((len(own), 0), np.int64),
                np.arange(len(own) + 1),
                share.numbers[rows["qid"][own]],
            )


def element(nodes: Ints) -> Ints:
    """The nodes of results. An attribute becomes its element; a node above a split becomes the document element."""
    half = 1 << (ATTRIBUTE - 1)
    return np.maximum(((nodes + half) & ((1 << ATTRIBUTE) - 1)) - half, 0)


class ByRelations(Strategy):
    kind, module = "joins", __name__

    def __init__(self, name: str, make: Make, needs_duckdb: bool) -> None:
        self.name, self.make, self.needs_duckdb = name, make, needs_duckdb  # type: ignore[misc]

    def take(self, groups: Mapping[int, Any], statistics: Statistics) -> list[Bundle]:
        if self.needs_duckdb and find_spec("duckdb") is None:
            raise QueryError(f"joins={self.name} needs DuckDB: pip install 'fishweir[bench]'")
        taken = [place for place, table in groups.items() if is_published(table)]
        return [self.bundle(taken)] if taken else []

    def operator(self, placed: PlacedBundle) -> RelationalJoins:
        return RelationalJoins(placed.groups, self.make)  # type: ignore[arg-type]


def is_published(table: JoinTable) -> bool:
    """Whether a join is one of the paper's: two streams, equal values, seconds; no variable on @*, which has no node of
    its own."""
    if not table.is_plain:
        return False
    steps = (side.nodes[node].step for side in table.template.sides for node in side.outputs)
    return not any(step.is_attribute and step.name == "*" for step in steps)


STRATEGIES: dict[str, Strategy] = {
    "mmqjp": ByRelations("mmqjp", lambda: Mmqjp(DuckDBEngine()), True),
    "mmqjp-views": ByRelations("mmqjp-views", lambda: Mmqjp(DuckDBEngine(), "cached"), True),
    "sequential": ByRelations("sequential", Sequential, False),
}

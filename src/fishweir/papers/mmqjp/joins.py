"""MMQJP, with and without views, and Sequential as strategies of the engine: `--strategy joins=mmqjp`.

A strategy takes the joins of two streams by equal values alone, with windows in seconds: those that the paper has. The
default strategies evaluate the rest. Documents are retained as the default retains them (join/state.py), so that a home
may be opened with another strategy at any time; the paper's relations are made of what is retained (retained.py). With
views, RL and RR are materialized for each batch, as in the paper's experiments (section 6.2). Tasks share the queries:
each evaluates its own on all documents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import count
from typing import Any

import numpy as np

from fishweir.algebra.nodes import Source
from fishweir.errors import QueryError
from fishweir.evaluate.arrays import Ints
from fishweir.evaluate.group import Bundle, Placed, Strategy
from fishweir.evaluate.join.join_tables import JoinTable
from fishweir.evaluate.join.operators import EdgeSetJoins
from fishweir.evaluate.join.pairing import RunContext
from fishweir.evaluate.join.rows.probing import Joined
from fishweir.evaluate.join.state import Run
from fishweir.evaluate.join.variables import Variable
from fishweir.evaluate.statistics import Statistics
from fishweir.papers.mmqjp.duckdb_engine import DuckDBEngine
from fishweir.papers.mmqjp.mmqjp import Mmqjp
from fishweir.papers.mmqjp.relational import Found, MinorQuery, RelationalJoin
from fishweir.papers.mmqjp.relations import ATTRIBUTE, Relations
from fishweir.papers.mmqjp.retained import run_relations, together
from fishweir.papers.mmqjp.sequential import Sequential
from fishweir.papers.mmqjp.side_graphs import PlacedTemplate, place_template

Make = Callable[[], RelationalJoin]
_VIEWS = count(1)


@dataclass(frozen=True)
class Share:
    """The queries of one task: by row of RT, the table and the number of its query."""

    join: RelationalJoin
    tables: Ints
    numbers: Ints
    view: int
    """What its relations of a run are remembered under; below 0, where no class of rows is."""


class RelationalJoins(EdgeSetJoins):
    """Plain join tables, evaluated by one of the paper's algorithms. What is kept is what the default keeps."""

    def __init__(self, tables: Sequence[JoinTable], make: Make) -> None:
        super().__init__(tables)
        self.make = make
        self.placed: list[PlacedTemplate] = [place_template(table.template) for table in tables]
        self.by_source: dict[Source, list[Variable]] = {}
        for variable in self.variables:
            self.by_source.setdefault(variable.source, []).append(variable)
        self._shares: dict[tuple[int, int], Share] = {}

    def pairs(self, new: Run, old: Sequence[Run], part: int, parts: int, known: RunContext) -> Iterator[Joined]:
        share = self._share(part, parts)
        runs = [*old, new]
        first = np.append(0, np.cumsum([len(run) for run in runs]))
        relations = [self._relations(share, run) for run in runs]
        share.join.restore(together(relations[:-1], first[:-2].tolist()))
        batch = together(relations[-1:], [int(first[-2])])
        share.join.load(batch)
        for found in share.join.evaluate(batch, lambda query: query):
            if len(found.rows):
                yield from self._pairs(share, found, runs, first)

    def _relations(self, share: Share, run: Run) -> Relations:
        if share.view not in run.views:
            run.views[share.view] = run_relations(share.join.finder, run, self.by_source)
        relations: Relations = run.views[share.view]
        return relations

    def _share(self, part: int, parts: int) -> Share:
        if (part, parts) not in self._shares:
            tables = np.repeat(np.arange(len(self.tables)), [table.size for table in self.tables])[part::parts]
            numbers = np.concatenate([table.numbers for table in self.tables])[part::parts]
            join = self.make()
            join.register_minors(query for at, query in enumerate(self._queries()) if at % parts == part)
            self._shares[part, parts] = Share(join, tables, numbers, -next(_VIEWS))
        return self._shares[part, parts]

    def _queries(self) -> Iterator[MinorQuery]:
        for table, placed in zip(self.tables, self.placed, strict=True):
            waiting = [reach for reach in table.reaches if len(reach) and reach[0] >= 0]
            for ends in zip(*(reach.tolist() for reach in waiting), strict=True):
                yield placed.template, placed.variables, ends

    def _pairs(self, share: Share, found: Found, runs: Sequence[Run], first: Ints) -> Iterator[Joined]:
        """The rows of RoutT, those of two runs and one join table together."""
        rows = {name: found.rows[name].to_numpy() for name in found.rows.column_names}
        lefts, rights = rows["docid1"], rows["docid2"]
        left_runs, right_runs = (np.searchsorted(first, side, "right") - 1 for side in (lefts, rights))
        tables = share.tables[rows["qid"]]
        kinds = np.stack([tables, left_runs, right_runs], axis=1)
        for table, left, right in np.unique(kinds, axis=0).tolist():
            own = np.flatnonzero((kinds == (table, left, right)).all(axis=1))
            nodes = [element(rows[name][own]) for name in self.placed[table].outputs]
            yield Joined(
                runs[left],
                runs[right],
                lefts[own] - first[left],
                rights[own] - first[right],
                np.stack(nodes, axis=1) if nodes else np.empty((len(own), 0), np.int64),
                np.arange(len(own) + 1),
                share.numbers[rows["qid"][own]],
            )


def element(nodes: Ints) -> Ints:
    """The nodes of results: an attribute is its element; what stood above a split is the document element."""
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

    def operator(self, placed: Placed) -> RelationalJoins:
        return RelationalJoins(placed.groups, self.make)  # type: ignore[arg-type]


def is_published(table: JoinTable) -> bool:
    """Whether a join is one of the paper's: two streams, equal values, seconds; no variable on any attribute, @*, which
    has no node of its own."""
    if not table.is_plain:
        return False
    steps = (side.nodes[node].step for side in table.template.sides for node in side.outputs)
    return not any(step.is_attribute and step.name == "*" for step in steps)


STRATEGIES: dict[str, Strategy] = {
    "mmqjp": ByRelations("mmqjp", lambda: Mmqjp(DuckDBEngine()), True),
    "mmqjp-views": ByRelations("mmqjp-views", lambda: Mmqjp(DuckDBEngine(), "recomputed"), True),
    "sequential": ByRelations("sequential", Sequential, False),
}

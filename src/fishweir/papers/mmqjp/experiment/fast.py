"""Strategies of the engine as contestants, run like in the join stage (evaluate/join/stage.py).

Fishweir's own strategy uses sorted runs, anchors and cached edge sets. The published ones are requested by name.
Registration builds the tables of the join templates. A batch is walked, stored as a run and joined with the retained
runs, which are merged as the job merges them. Results are counted by query, from the result rows and the counts of
their sets.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from fishweir.algebra.clauses import constants_of
from fishweir.algebra.joins import to_join
from fishweir.algebra.nodes import Constant, Source
from fishweir.evaluate.group import Batch
from fishweir.evaluate.join.edges import Contained
from fishweir.evaluate.join.join_tables import JoinTable, build_join
from fishweir.evaluate.join.operators import JoinsOfTwo
from fishweir.evaluate.join.pairing import PairBlock, find_pairs
from fishweir.evaluate.join.stage import JoinStage, batch_run
from fishweir.evaluate.join.state import Run
from fishweir.evaluate.plan.segments import planned_segment
from fishweir.evaluate.statistics import Statistics
from fishweir.evaluate.witnesses.shared_paths import SharedPaths
from fishweir.papers.mmqjp.joins import RelationalJoins
from fishweir.papers.mmqjp.relational import Counts, JoinQuery
from fishweir.papers.mmqjp.relations import Arrival
from fishweir.papers.strategies import named_strategies

NAME = "Fishweir"
MOST_RUNS = 8


class Fast:
    """`strategy` is one of `joins=`; without it the engine chooses. With `share_equal`, equal queries are registered
    once and share their results."""

    def __init__(
        self, name: str = NAME, strategy: str = "", share_equal: bool = False, statistics: Statistics | None = None
    ) -> None:
        self.name, self.share_equal = name, share_equal
        self.seconds = {"join": 0.0}
        self.requested = named_strategies({"joins": strategy}) if strategy else ()
        self.statistics = statistics or {}
        self.runs: list[Run] = []
        self.documents = self.queries = 0
        self.same_as: Any = slice(None)
        """The registered query for each given one, if equal queries are registered once."""

    def register(self, queries: Sequence[JoinQuery]) -> None:
        queries = self._once(queries) if self.share_equal else queries
        grouped: dict[object, tuple[list[int], list[Sequence[Constant]]]] = defaultdict(lambda: ([], []))
        for number, (shape, constants) in enumerate(queries):
            normal = to_join(shape)
            numbers, rows = grouped[normal.template]
            numbers.append(number)
            rows.append(constants_of(normal, tuple(constants)))
        tables = [build_join(template, *both, self.statistics) for template, both in grouped.items()]  # type: ignore[arg-type]
        self.hold(tables, len(queries))

    def _once(self, queries: Sequence[JoinQuery]) -> list[JoinQuery]:
        known: dict[tuple[int, tuple[Constant, ...]], int] = {}
        same = [known.setdefault((id(shape), tuple(constants)), i) for i, (shape, constants) in enumerate(queries)]
        first, self.same_as = np.unique(same, return_inverse=True)
        return [queries[i] for i in first.tolist()]

    def hold(self, tables: Sequence[JoinTable], queries: int) -> None:
        self.queries = queries
        self.joins: list[JoinsOfTwo] = planned_segment("", tables, self.statistics, self.requested).operators["joins"]
        self.relational = [joins.share(0, 1).join for joins in self.joins if isinstance(joins, RelationalJoins)]
        self.stage = JoinStage(self.joins)
        self.paths: dict[Source, SharedPaths] = {}
        for source in {source for table in tables for source in table.sources}:
            self.paths[source] = SharedPaths()
            self.paths[source].hold({"all": self.stage.paths([source])})

    def process(self, documents: Sequence[Arrival], keep: bool = True) -> Counts:
        new = self.run_of(documents)
        began, before = time.perf_counter(), self._relational_seconds()
        counts: Counts = count_blocks(find_pairs(self.joins, new, self.runs), self.queries)[self.same_as]
        for stage, seconds in self._relational_seconds().items():
            self.seconds[stage] = self.seconds.get(stage, 0.0) + seconds - before.get(stage, 0.0)
        if not self.relational:
            self.seconds["join"] += time.perf_counter() - began
        if not keep:
            self.documents -= len(documents)
            return counts
        self.runs.append(new)
        if len(self.runs) > MOST_RUNS:
            self.runs = [self.stage.merged(self.runs)]
        return counts

    def _relational_seconds(self) -> dict[str, float]:
        """Seconds by stage, for algorithms that separate the join from loading relations."""
        times = [joined.seconds for joined in self.relational]
        return {stage: sum(own.get(stage, 0.0) for own in times) for stage in {s for own in times for s in own}}

    def run_of(self, documents: Sequence[Arrival]) -> Run:
        """The witnesses of a batch."""
        runs = []
        for stream, (source, paths) in enumerate(self.paths.items()):
            walk, numbers, times = paths.start(), list[int](), list[float]()
            for own, document in documents:
                if own == source:
                    walk.add(len(numbers), document.root, document.context)
                    numbers.append(self.documents + len(numbers))
                    times.append(document.timestamp)
            runs.append(batch_run(self.stage, Batch.of(stream, [source], numbers, times, walk.tables())))
        self.documents += len(documents)
        return runs[0] if len(runs) == 1 else self.stage.merged(runs)

    def close(self) -> None:
        self.runs = []


def count_blocks(blocks: Iterable[PairBlock], queries: int) -> Counts:
    """Results per query. The counts of a set are added up first, since it occurs with many pairs."""
    counts = np.zeros(queries, np.int64)
    sets: dict[int, tuple[Contained, Counts]] = {}
    for block in blocks:
        if block.contained is None:
            counts += np.bincount(block.members, minlength=queries)
            continue
        contained, seen = sets.setdefault(
            id(block.contained), (block.contained, np.zeros(len(block.contained.members) + 1, np.int64))
        )
        seen += np.bincount(block.counts, np.diff(block.partner_starts), len(seen)).astype(np.int64)
    for contained, seen in sets.values():
        counts[contained.members] += seen[::-1].cumsum()[::-1][1:]
    return counts

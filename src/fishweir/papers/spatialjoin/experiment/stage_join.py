"""The contestants of figure 18: SQL queries as the engine plans and runs them with a given strategy, without Spark.

In: window join queries, which are converted to the algebra's form of SQL (`select * from R [rows n] as l, S [rows m] as
r where l.a0 >= ... and l.a0 < r.a0`) and planned into join tables; batches of tuples. Out: (query, r, s). A batch of
tuples becomes a run, `find_pairs` finds its join partners, and runs are kept, merged and dropped as in the job.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from fishweir.algebra.clauses import constants_of, to_normals
from fishweir.algebra.column_joins import in_block
from fishweir.algebra.formula import And, Atom
from fishweir.algebra.nodes import Constant, CreateQuery, Shape, Slot, Source, Step
from fishweir.evaluate.group import Batch
from fishweir.evaluate.join.join_tables import JoinTable, build_join
from fishweir.evaluate.join.operators import JoinsOfTwo
from fishweir.evaluate.join.pairing import PairBlock, find_pairs
from fishweir.evaluate.join.stage import JoinStage, batch_run
from fishweir.evaluate.join.state import Run
from fishweir.evaluate.plan.segments import planned_segment
from fishweir.evaluate.select.boxes.matches import Numbers
from fishweir.evaluate.select.boxes.regions import Boxes, key_floats
from fishweir.evaluate.watermarks import Watermarks
from fishweir.evaluate.witnesses.path_tables import tuple_tables
from fishweir.languages.script import parse_script
from fishweir.papers.spatialjoin.window_joins import SlidingJoins
from fishweir.papers.spatialjoin.windows import ALL_ROWS, OPERATORS, Arrivals, JoinQueries, SlidingJoin, State, Triples
from fishweir.papers.strategies import named_strategies
from fishweir.pipeline.retained import MERGE_FACTOR, SMALL

NAME = "fishweir"
SOURCES = Source("R"), Source("S")


class StageJoin:
    """Has the interface of the algorithms in windows/: `process_both` and `count`. `strategy` is one of
    `window-joins=`; without it the engine chooses."""

    def __init__(self, queries: JoinQueries, strategy: str = "") -> None:
        self.queries = queries
        requested = named_strategies({"window-joins": strategy}) if strategy else ()
        self.joins: list[JoinsOfTwo] = planned_segment("", join_tables(queries), {}, requested).operators["joins"]
        self.stage = JoinStage(self.joins)
        self.runs: list[Run] = []
        self.arrived = [0, 0]
        self.paths = [self.stage.paths([source]) for source in SOURCES]

    def process_both(self, left: Arrivals, right: Arrivals) -> Triples:
        return Triples.joined([_triples(block) for block in self._blocks(left, right)])

    def count(self, left: Arrivals, right: Arrivals) -> Any:
        counts = np.zeros(self.queries.count, np.int64)
        for block in self._blocks(left, right):
            counts += np.bincount(_triples(block).numbers, minlength=len(counts))
        return counts

    def state_size(self) -> int:
        """The number of retained tuples."""
        return sum(len(run) for run in self.runs)

    @property
    def published(self) -> list[SlidingJoin]:
        """The algorithms that the requested strategy runs."""
        return [joins.sliding for joins in self.joins if isinstance(joins, SlidingJoins)]

    def restore(self, state: State) -> None:
        """Continues from the state of another join."""
        self.arrived = list(state.next)
        self._keep(self._run(state.left, state.right))

    def _blocks(self, left: Arrivals, right: Arrivals) -> Iterator[PairBlock]:
        new = self._run(left, right)
        yield from find_pairs(self.joins, new, self.runs)
        self._keep(new)

    def _run(self, *sides: Arrivals) -> Run:
        runs = []
        for side, arrivals in enumerate(sides):
            if not len(arrivals.times):
                continue
            first = self.arrived[side]
            numbers = np.arange(first, first + len(arrivals.times)) if arrivals.numbers is None else arrivals.numbers
            self.arrived[side] = int(numbers[-1]) + 1
            columns = {f"a{i}": pa.array(column, from_pandas=True) for i, column in enumerate(arrivals.columns.T)}
            witnesses = tuple_tables("tuple", columns, self.paths[side])
            batch = Batch.of(side, [SOURCES[side]], numbers, arrivals.times, witnesses)
            runs.append(batch_run(self.stage, batch))
        return runs[0] if len(runs) == 1 else self.stage.merged(runs)

    def _keep(self, new: Run) -> None:
        runs = [*self.runs, new]
        reached = max(run.newest for run in runs)
        needed = self.stage.needed(runs, Watermarks.at(reached, {i: (own,) for i, own in enumerate(SOURCES)}))
        groups: list[list[Run]] = []
        for run in runs:
            if not needed(run).any():
                continue
            groups.append([run])
            while len(groups) > 1 and _size(groups[-2]) <= max(SMALL, MERGE_FACTOR * _size(groups[-1])):
                last = groups.pop()
                groups[-1] += last
        self.runs = [group[0] if len(group) == 1 else self.stage.merged(group, needed) for group in groups]


def _size(group: Sequence[Run]) -> int:
    return sum(len(run) for run in group)


def _triples(block: PairBlock) -> Triples:
    row = np.repeat(np.arange(len(block)), np.diff(block.partner_starts))
    own, others = block.numbers[row], block.partners
    lefts, rights = (others, own) if block.by_right else (own, others)
    if block.contained is None:  # rows with one partner each
        return Triples(lefts, rights, block.member_starts, block.members.astype(np.int32))
    counts = block.counts[row]
    offsets = np.append(0, np.cumsum(counts)).astype(np.int64)
    at = np.arange(offsets[-1]) - np.repeat(offsets[:-1], counts)
    numbers: Numbers = block.contained.members[at].astype(np.int32)
    return Triples(lefts, rights, offsets, numbers)


def join_tables(queries: JoinQueries) -> list[JoinTable]:
    """The queries in the planner's form: one table per template."""
    grouped: dict[Any, tuple[list[int], list[list[Constant]]]] = defaultdict(lambda: ([], []))
    for number in range(queries.count):
        shape, constants = _shape(queries, number)
        (normal,) = to_normals(shape)
        numbers, rows = grouped[normal.template]  # type: ignore[union-attr]
        numbers.append(number)
        rows.append(constants_of(normal, constants))
    return [build_join(template, *both, {}) for template, both in grouped.items()]


def _shape(queries: JoinQueries, number: int) -> tuple[Shape, tuple[Constant, ...]]:
    windows, constants = zip(*(_window(queries, number, side) for side in (0, 1)), strict=True)
    shape = _windowed(*windows)
    found: list[Constant] = list(constants)
    atoms: list[Atom] = []
    for side, boxes in enumerate(queries.selections):
        for attribute, op, constant in _ends(boxes, number):
            slot = Slot(len(found), "number")
            atoms.append(Atom(in_block(side, (Step(f"a{attribute}", "child"),)), op, slot))  # type: ignore[arg-type]
            found.append(constant)
    names = {ends: op for op, ends in OPERATORS.items()}
    c = queries.comparisons
    for i in range(queries.starts[number], queries.starts[number + 1]):
        ends = [in_block(side, (Step(f"a{at[i]}", "child"),)) for side, at in enumerate((c.left, c.right))]
        atoms.append(Atom(ends[0], names[float(c.low[i]), float(c.high[i])], ends[1]))  # type: ignore[arg-type]
    slots = tuple(Slot(i, "number") for i in range(len(found)))
    return replace(shape, formula=And(tuple(atoms)), slots=slots), tuple(found)


@lru_cache(maxsize=4)
def _windowed(left: str, right: str) -> Shape:
    (statement,) = parse_script(f"select * from R [{left}] as l, S [{right}] as r where l.a0 < r.a0")
    assert isinstance(statement, CreateQuery)
    assert isinstance(statement.shape, Shape)
    return statement.shape


def _window(queries: JoinQueries, number: int, side: int) -> tuple[str, float]:
    rows, seconds = int(queries.rows[number, side]), float(queries.seconds[number, side])
    return ("rows 1", float(rows)) if rows < ALL_ROWS else ("range 1", seconds)


def _ends(boxes: Boxes, number: int) -> Iterator[tuple[int, str, float]]:
    """The conditions on one side's attributes. An infinite bound is no condition."""
    for op, keys in ((">=", boxes.low[number]), ("<=", boxes.high[number])):
        for attribute, constant in enumerate(key_floats(keys).tolist()):
            if math.isfinite(constant):
                yield attribute, op, constant

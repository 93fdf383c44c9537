"""Twigs: many small tables, each with its own tree pattern, matched together.

In: tables with different patterns, and a batch as the automaton found it. Such tables share little, and separate
lookups would dominate the cost. Out: Matches with lists of queries. The paths of all tables already form one automaton.
Here, each query is a small tree of that automaton's nodes, and all queries form one program of arrays. A kernel runs
the program over the rows of the batch (twig_kernels.py), from the rows of a query's rarest node upwards, then down to
its output. Shared: rows, text codes and numbers are computed once for all queries. This corresponds to what YFilter
calls selection postponed, the selection after the structure match, but it is driven by the values.

The rule: a table is a twig if it has at most `LARGEST` queries, one output and only comparisons with constants,
provided that the segment has at least `FEWEST` such tables. Larger tables have an index over their constants, which is
faster.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fishweir.algebra.normal import ANY_ROOT, ConstantCondition, Template
from fishweir.evaluate.arrays import Ints
from fishweir.evaluate.matches import Matches
from fishweir.evaluate.select.constant_tables import Table
from fishweir.evaluate.select.twig_kernels import Program, TwigInput, group_pairs, run_twigs
from fishweir.evaluate.witnesses.automaton.rows import Rows
from fishweir.evaluate.witnesses.path_tables import texts_to_numbers
from fishweir.evaluate.witnesses.shared_paths import FoundTables, SharedPaths

LARGEST, FEWEST = 64, 16
OPERATORS = ("=", "!=", "<", "<=", ">", ">=")


def is_twig(table: Table) -> bool:
    template = table.template
    return (
        table.size <= LARGEST
        and len(template.outputs) == 1
        and not (template.joins or template.negated or template.absent or template.columns)
        and template.nodes[0].step != ANY_ROOT
        and not any(node.step.position for node in template.nodes)
        and all(_is_simple(condition) for condition in template.constants)
    )


def _is_simple(condition: ConstantCondition) -> bool:
    if condition.type == "number":
        return condition.part == "value" and condition.op in OPERATORS
    return condition.type == "string" and condition.op in ("=", "!=")


@dataclass(frozen=True)
class Twigs:
    """The program of some tables, with their places in the segment. `numbers` are the queries, `trie_nodes` the
    automaton's nodes by place of the program, `texts` the constants it compares with, and `numeric` the places whose
    values are read as numbers."""

    indexes: tuple[int, ...]
    program: Program
    numbers: Ints
    trie_nodes: Ints
    texts: pa.LargeStringArray
    numeric: Ints

    def match(self, witnesses: FoundTables) -> Matches | None:
        rows = witnesses.batch.rows
        if not len(rows):
            return None
        pairs = run_twigs(self.program, self._found(rows))
        if not len(pairs):
            return None
        positions = np.maximum(rows.positions, 0)  # attributes, and elements above a split, count as the element
        differ = (np.diff(rows.documents) != 0) | (np.diff(positions) != 0)
        firsts = np.flatnonzero(np.append(True, differ))
        starts, queries = group_pairs(pairs, np.append(0, np.cumsum(differ)), len(firsts))
        held = np.flatnonzero(np.diff(starts))
        none, of = np.zeros(len(held) + 1, np.int64), firsts[held]
        ends, members = np.append(starts[held], starts[-1]), self.numbers[queries]
        return Matches(rows.documents[of], positions[of][:, None], none, none[:0], ends, members)

    def _found(self, rows: Rows) -> TwigInput:
        nodes, of_nodes = rows.states_of_nodes
        order, row_starts = rows.by_state
        first, last = (np.searchsorted(nodes, self.trie_nodes, side) for side in ("left", "right"))
        entered = np.append(0, np.cumsum(np.diff(row_starts)[of_nodes]))
        codes = np.full(len(rows), -1, np.int64)
        found = pc.index_in(rows.values, value_set=self.texts)
        codes[rows.valued] = found.fill_null(-1).to_numpy(zero_copy_only=False)
        coded = np.flatnonzero(codes >= 0)
        coded = coded[np.argsort(codes[coded], kind="stable")]
        return TwigInput(
            np.column_stack([rows.state, rows.parents, rows.ends, codes]),
            self._numbers(rows, [of_nodes[first[place] : last[place]] for place in self.numeric.tolist()]),
            np.column_stack([self.trie_nodes, first, last, entered[last] - entered[first]]),
            of_nodes,
            np.column_stack([rows.node_starts[:-1], rows.node_starts[1:], row_starts[:-1], row_starts[1:]]),
            rows.nodes,
            order,
            np.searchsorted(codes[coded], np.arange(max(len(self.texts), 1) + 1)),
            coded,
        )

    @staticmethod
    def _numbers(rows: Rows, states: Sequence[Ints]) -> NDArray[np.float64]:
        """The values of the rows that a numeric condition can read, selected by their possible states."""
        wanted = np.zeros(rows.states, np.bool_)
        for some in states:
            wanted[some] = True
        numbers = np.full(len(rows), np.nan)
        read = np.flatnonzero(wanted[rows.state[rows.valued]])
        if len(read):
            numbers[rows.valued[read]] = texts_to_numbers(rows.values.take(pa.array(read)))
        return numbers


def build_twigs(tables: Sequence[tuple[int, Table]], shared: SharedPaths) -> Twigs:
    """The program of some tables, given with their places. The automaton holds their paths."""
    return _Builder(shared).build(tables)


class _Builder:
    def __init__(self, shared: SharedPaths) -> None:
        self.shared = shared
        self.places: dict[int, int] = {}
        self.codes: dict[str, int] = {}
        self.numeric: dict[int, None] = {}
        self.nodes: list[tuple[int, ...]] = []
        self.tests: list[tuple[int, int]] = []
        self.numbers: list[float] = []
        self.queries: list[tuple[int, int, int]] = []

    def build(self, placed: Sequence[tuple[int, Table]]) -> Twigs:
        indexes, tables = zip(*placed, strict=True)
        for table in tables:
            self._table(table)
        tests = np.array(self.tests, np.int64).reshape(-1, 2)
        program = Program(np.array(self.nodes), tests, np.array(self.numbers, np.float64), np.array(self.queries))
        numbers = np.concatenate([table.numbers for table in tables]).astype(np.int64)
        trie_nodes = np.array(list(self.places), np.int64)
        texts = pa.array(self.codes, pa.large_string())
        return Twigs(indexes, program, numbers, trie_nodes, texts, np.array(list(self.numeric), np.int64))

    def _table(self, table: Table) -> None:
        template = table.template
        places = self._places_of(template)
        children: list[list[int]] = [[] for _ in template.nodes]
        for i, node in enumerate(template.nodes):
            if node.parent >= 0:
                children[node.parent].append(i)
        following = {a: b for some in children for a, b in pairwise(some)}
        constants = [column.tolist() for column in table.columns]
        for row in range(table.size):
            first = len(self.nodes)
            for i, node in enumerate(template.nodes):
                begin = len(self.tests)
                for condition in template.constants:
                    if condition.node == i:
                        self._test(condition, places[i], constants[condition.slot][row])
                links = (node.parent, children[i][0] if children[i] else -1, following.get(i, -1))
                linked = (first + link if link >= 0 else -1 for link in links)
                self.nodes.append((places[i], *linked, int(node.step.is_deep), begin, len(self.tests)))
            self.queries.append((first + _top(template, children), len(self.nodes), first + template.outputs[0]))

    def _places_of(self, template: Template) -> list[int]:
        places = [-1] * len(template.nodes)
        for leaf in template.leaves:
            trunk = self.shared.automaton.paths[self.shared.ids[template.path(leaf)]].trunk
            for node, trie_node in zip(template.chain(leaf), trunk.nodes, strict=True):
                places[node] = self.places.setdefault(trie_node, len(self.places))
        return places

    def _test(self, condition: ConstantCondition, place: int, constant: str | float) -> None:
        code = self.codes.setdefault(constant, len(self.codes)) if isinstance(constant, str) else -1
        self.tests.append((OPERATORS.index(condition.op), code))
        self.numbers.append(np.nan if isinstance(constant, str) else constant)
        if code < 0:
            self.numeric[place] = None


def _top(template: Template, children: Sequence[Sequence[int]]) -> int:
    """The topmost node that must be checked. Its presence implies that of all nodes above it."""
    looked_at = {*template.outputs, *(condition.node for condition in template.constants)}
    node = 0
    while node not in looked_at and len(children[node]) == 1:
        (node,) = children[node]
    return node

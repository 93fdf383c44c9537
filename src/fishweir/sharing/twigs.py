"""Twigs: many small tables, each with a tree pattern of its own, matched together.

In: tables whose patterns differ, so that there is little to share in a table and one look-up each would be most of
the work; a batch as the automaton found it. Out: Matches with lists of queries. The paths of all are one automaton
already; here each query is a small tree of that automaton's nodes, all queries are one program of arrays, and a kernel
runs them over the rows of the batch (twig_kernels.py): from the rows with the constant that the table is anchored
at upwards, then down to the output. What is shared: rows, texts as codes and numbers are made once for all queries.
It is the selection after the structure match that YFilter calls selection postponed, driven by the values.

The rule: a table is a twig if it has at most `LARGEST` queries, one output and conditions that compare with constants,
and if there are `FEWEST` such tables in a segment. Larger tables have an index over their constants, which is better.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fishweir.algebra.normal import ANY_ROOT, ConstantCondition, Template
from fishweir.sharing.arrays import Ints
from fishweir.sharing.automaton.rows import Rows
from fishweir.sharing.match import Matches, distinct, with_members
from fishweir.sharing.paths import FoundTables, SharedPaths
from fishweir.sharing.tables import Table
from fishweir.sharing.twig_kernels import Found, Program, run_twigs
from fishweir.sharing.witnesses import texts_to_numbers

LARGEST, FEWEST = 8, 16
OPERATORS = ("=", "!=", "<", "<=", ">", ">=")


def is_twig(table: Table) -> bool:
    template = table.template
    return (
        table.size <= LARGEST
        and len(template.outputs) == 1
        and not (template.joins or template.negated or template.columns)
        and template.nodes[0].step != ANY_ROOT
        and all(_is_simple(condition) for condition in template.constants)
    )


def _is_simple(condition: ConstantCondition) -> bool:
    if condition.type == "number":
        return condition.part == "value" and condition.op in OPERATORS
    return condition.type == "string" and condition.op in ("=", "!=")


@dataclass(frozen=True)
class Twigs:
    """The program of some tables, with their places in the segment; `numbers` are the queries, `trie_nodes` the places of the program in the automaton,
    `codes` the texts that it compares with, `numeric` the places whose values are read as numbers."""

    indexes: tuple[int, ...]
    program: Program
    numbers: Ints
    trie_nodes: Ints
    codes: dict[str, int]
    numeric: Ints

    def match(self, witnesses: FoundTables) -> Matches | None:
        rows = witnesses.batch.rows
        if not len(rows):
            return None
        queries, outputs = run_twigs(self.program, self._found(rows))
        if not len(queries):
            return None
        distinct_rows, at = np.unique(outputs, return_inverse=True)
        documents, nodes = rows.documents[distinct_rows], np.maximum(rows.positions[distinct_rows], 0)[:, None]
        return with_members(documents, nodes, distinct(documents, nodes)[1], at, self.numbers[queries])

    def _found(self, rows: Rows) -> Found:
        nodes, states = rows.states_of_nodes
        node_starts = np.cumsum([0, *(len(state.nodes) for state in rows.states)])
        first, last = (np.searchsorted(nodes, self.trie_nodes, side) for side in ("left", "right"))
        lengths = last - first
        starts = np.append(0, np.cumsum(lengths))
        at = np.repeat(first - starts[:-1], lengths) + np.arange(starts[-1])
        order, row_starts = rows.by_state
        codes = np.full(len(rows), -1, np.int64)
        valued = np.fromiter(rows.texts.keys(), np.int64, len(rows.texts))
        codes[valued] = [self.codes.get(text, -1) for text in rows.texts.values()]
        coded = np.flatnonzero(codes >= 0)
        coded = coded[np.argsort(codes[coded], kind="stable")]
        text_starts = np.searchsorted(codes[coded], np.arange(len(self.codes) + 1))
        all_nodes = np.concatenate([np.empty(0, np.int64), *(state.nodes for state in rows.states)])
        numbers = self._numbers(rows, valued, starts, states[at])
        return Found(
            rows.state, rows.parents, rows.ends, self.trie_nodes, starts, states[at], node_starts, all_nodes, row_starts,
            order, codes, numbers, text_starts, coded,
        )  # fmt: skip

    def _numbers(self, rows: Rows, valued: Ints, starts: Ints, states: Ints) -> NDArray[np.float64]:
        """The values of the rows that a condition on numbers can read."""
        wanted = np.zeros(len(rows.states), np.bool_)
        for place in self.numeric.tolist():
            wanted[states[starts[place] : starts[place + 1]]] = True
        numbers = np.full(len(rows), np.nan)
        read = valued[wanted[rows.state[valued]]]
        if len(read):
            numbers[read] = texts_to_numbers(pa.array(rows.texts_of(read), pa.large_string()))
        return numbers


def build_twigs(tables: Sequence[tuple[int, Table]], shared: SharedPaths) -> Twigs:
    """The program of some tables, given with their places, whose paths the automaton holds."""
    return _Builder(shared).build(tables)


class _Builder:
    def __init__(self, shared: SharedPaths) -> None:
        self.shared = shared
        self.places: dict[int, int] = {}
        self.codes: dict[str, int] = {}
        self.nodes: list[tuple[int, int, int, int, bool]] = []
        self.tests: list[tuple[int, int, float]] = []
        self.tested = [0]
        self.queries: list[tuple[int, int, int, int]] = []
        self.numeric: dict[int, None] = {}

    def build(self, placed: Sequence[tuple[int, Table]]) -> Twigs:
        indexes, tables = zip(*placed, strict=True)
        for table in tables:
            self._table(table)
        place, parent, child, sibling, deep = zip(*self.nodes, strict=True)
        op, text, number = zip(*self.tests, strict=True) if self.tests else ((), (), ())
        columns = [np.array(column, np.int64) for column in zip(*self.queries, strict=True)]
        ints = [np.array(column, np.int64) for column in (place, parent, child, sibling)]
        tests = [np.array(column, np.int64) for column in (self.tested, op, text)]
        program = Program(*ints, np.array(deep, np.bool_), *tests, np.array(number, np.float64), *columns)
        numbers = np.concatenate([table.numbers for table in tables]).astype(np.int64)
        trie_nodes = np.array(list(self.places), np.int64)
        return Twigs(indexes, program, numbers, trie_nodes, self.codes, np.array(list(self.numeric), np.int64))

    def _table(self, table: Table) -> None:
        template = table.template
        places = self._places_of(template)
        children: list[list[int]] = [[] for _ in template.nodes]
        for i, node in enumerate(template.nodes):
            if node.parent >= 0:
                children[node.parent].append(i)
        following = {a: b for some in children for a, b in zip(some, some[1:], strict=False)}
        (output,) = template.outputs
        constants = [column.tolist() for column in table.columns]
        for row in range(table.size):
            first = len(self.nodes)
            looked_up: dict[int, int] = {}
            for i, node in enumerate(template.nodes):
                self.nodes.append((
                    places[i], first + node.parent if node.parent >= 0 else -1,
                    first + children[i][0] if children[i] else -1,
                    first + following[i] if i in following else -1, node.step.is_deep,
                ))  # fmt: skip
                for number, condition in enumerate(template.constants):
                    if condition.node == i:
                        looked_up[number] = len(self.tests)
                        self._test(condition, places[i], constants[condition.slot][row])
                self.tested.append(len(self.tests))
            anchor, test = self._anchor(table, looked_up)
            self.queries.append((first + anchor, test, first + output, first + _top(template, children)))

    def _places_of(self, template: Template) -> list[int]:
        places = [-1] * len(template.nodes)
        for leaf in template.leaves:
            trunk = self.shared.automaton.paths[self.shared.ids[template.path(leaf)]].trunk
            for node, trie_node in zip(template.chain(leaf), trunk.nodes, strict=True):
                places[node] = self.places.setdefault(trie_node, len(self.places))
        return places

    def _test(self, condition: ConstantCondition, place: int, constant: str | float) -> None:
        op = OPERATORS.index(condition.op)
        if isinstance(constant, str):
            self.tests.append((op, self.codes.setdefault(constant, len(self.codes)), np.nan))
        else:
            self.tests.append((op, -1, constant))
            self.numeric[place] = None

    @staticmethod
    def _anchor(table: Table, tests: dict[int, int]) -> tuple[int, int]:
        """The node to begin at, and its test if that can be looked up: the table's anchor, or else an equality."""
        equal = [i for i, c in enumerate(table.template.constants) if c.op == "=" and c.type == "string"]
        preferred = [i for i in equal if i in table.anchor.conditions] or equal
        if preferred:
            return table.template.constants[preferred[0]].node, tests[preferred[0]]
        return table.anchor.node, -1


def _top(template: Template, children: Sequence[Sequence[int]]) -> int:
    """The topmost node that has to be looked at: all above are there where it is."""
    looked_at = {*template.outputs, *(condition.node for condition in template.constants)}
    node = 0
    while node not in looked_at and len(children[node]) == 1:
        (node,) = children[node]
    return node

"""Measures the costs of shed queries on this machine and engine, and compares them with the cost model's predictions.

A shed query walks documents for its conditions, and constructs the kept parts of its output from the nodes they need.
Both are measured in processor time, by the functions that the job uses. The prediction is based on counts in other
documents, and on the constants of the machine.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from lxml import etree

from fishweir.algebra.documents import Element, elements, parse_document
from fishweir.algebra.nodes import CreateQuery, Output, Shape
from fishweir.algebra.return_paths import nodes_at
from fishweir.evaluate.witnesses.path_tables import Path
from fishweir.evaluate.witnesses.shared_paths import SharedPaths
from fishweir.languages.script import parse_script
from fishweir.pipeline.calibration import calibrated, construct_outputs, walk_bodies
from fishweir.pipeline.shed_costs import counts_of, output_cost, size
from fishweir.shedding.patterns import PatternTree, shed_queries, to_tree
from fishweir.shedding.problem import Candidate
from fishweir.shedding.reduced import reduced_output
from fishweir.shedding.utility import Utilities, utilities

ROUNDS = 5
Costs = tuple[float, float]
"""Seconds per document: matching it, and constructing its output."""


@dataclass(frozen=True)
class ShedQuery:
    """Some of a query's patterns. `node` is the number of the element that its variable is bound to."""

    shape: Shape
    kept: frozenset[int]
    node: int = 0

    @cached_property
    def tree(self) -> PatternTree:
        return to_tree(self.shape)

    @cached_property
    def conditions(self) -> dict[Path, bool]:
        patterns = self.tree.patterns
        return {patterns[i].path: True for i in self.kept if patterns[i].selected}

    @cached_property
    def returned(self) -> tuple[str, ...]:
        patterns = self.tree.patterns
        return tuple(patterns[i].key for i in sorted(self.kept) if patterns[i].returned)

    @cached_property
    def output(self) -> tuple[Output, ...]:
        return reduced_output(self.shape, self.kept) if self.returned else ()

    @cached_property
    def _paths(self) -> SharedPaths:
        shared = SharedPaths()
        shared.hold({"query": {self.tree.root: False, **self.conditions}})
        return shared

    def match(self, bodies: Sequence[bytes]) -> None:
        walk_bodies(self._paths, bodies)

    def construct(self, bodies: Sequence[bytes]) -> None:
        if self.output:
            construct_outputs(self.shape, self.output, bodies, (self.node,))

    def predicted(self, counted: PatternCounts, together: int) -> Costs:
        """The predicted costs per document when `together` documents are walked together."""
        price, counts, whole = calibrated(), counted.patterns, counted.elements
        read = tags_read(counted.roots, [self.tree.root, *self.conditions])
        nodes = sum(counts[pattern.key].nodes for pattern in self.tree.patterns if pattern.path in self.conditions)
        reading = price.walk / together + price.reading(read, whole - read, nodes + 1)
        return reading, output_cost(price, whole, counts, self.returned)


class PatternCounts:
    """Counts of a query's patterns in some documents."""

    def __init__(self, shape: Shape, bodies: Sequence[bytes]) -> None:
        self.roots = [_above(body) for body in bodies]
        self.patterns = counts_of(shape, self.roots)
        self.elements = sum(map(size, self.roots)) / len(self.roots)


def _above(body: bytes) -> Element:
    above = etree.Element("above")
    above.append(parse_document(body))
    return above


def tags_read(roots: Sequence[Element], paths: Sequence[Path]) -> float:
    """The number of elements per document whose tags are read on some paths: those below elements that a path
    enters."""
    entered: set[Element] = set()
    for path in paths:
        for end in range(len(path)):
            here = [element for root in roots for element, _ in nodes_at((root, None), path[:end])]
            entered.update(here)
            if path[end].is_deep:
                entered.update(below for element in here for below in element.iterdescendants(etree.Element))
    return sum(map(len, entered)) / max(1, len(roots))


@dataclass(frozen=True)
class MeasuredCosts:
    """The shed queries of a query, the original first, without the empty one, and the costs of each per document."""

    queries: tuple[ShedQuery, ...]
    costs: tuple[Costs, ...]
    """Costs in processor time."""

    def candidates(self, worth: Utilities) -> list[Candidate]:
        return [
            Candidate(worth.normalized(q.kept), sum(cost)) for q, cost in zip(self.queries, self.costs, strict=True)
        ]


def measured(text: str, bodies: Sequence[bytes]) -> MeasuredCosts:
    queries = queries_of(text, bodies[0])
    best = [(float("inf"), float("inf"))] * len(queries)
    for _ in range(1 + ROUNDS):  # in turns, of which the fastest counts: other work can only add time
        for number, query in enumerate(queries):
            now, before = timed(query, bodies), best[number]
            best[number] = min(now[0], before[0]), min(now[1], before[1])
    return MeasuredCosts(queries, tuple(best))


def timed(query: ShedQuery, bodies: Sequence[bytes]) -> Costs:
    began = time.thread_time()
    query.match(bodies)
    matched = time.thread_time()
    query.construct(bodies)
    return (matched - began) / len(bodies), (time.thread_time() - matched) / len(bodies)


def queries_of(text: str, body: bytes) -> tuple[ShedQuery, ...]:
    """The shed queries of a query, for documents in which its variable is bound as in this one."""
    shape = shape_of(text)
    tree = to_tree(shape)
    above = _above(body)
    ((bound, _), *_) = nodes_at((above, None), tree.root)
    node = list(elements(above[0])).index(bound)
    return tuple(ShedQuery(shape, kept, node) for kept in shed_queries(tree) if kept)


def worth_of(text: str) -> Utilities:
    (statement,) = parse_script(text)
    assert isinstance(statement, CreateQuery)
    return utilities(to_tree(shape_of(text)), statement.preference)


def shape_of(text: str) -> Shape:
    (statement,) = parse_script(text)
    assert isinstance(statement, CreateQuery)
    assert isinstance(statement.shape, Shape)
    return statement.shape

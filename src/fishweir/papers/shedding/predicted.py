"""How well the cost model predicts: each shed query of Q1 as this engine evaluates it, measured and predicted.

A shed query walks each document for its conditions and constructs what is kept of its output, from the document as it
is read again. The prediction is made of counts in other documents than those that are measured, and of the constants of
the machine. All times are processor time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lxml import etree

from fishweir.algebra.construct import construct
from fishweir.algebra.documents import elements, parse_document
from fishweir.algebra.nodes import CreateQuery, Shape
from fishweir.evaluate.witnesses.path_tables import Path
from fishweir.evaluate.witnesses.shared_paths import SharedPaths
from fishweir.languages.script import parse_script
from fishweir.papers.shedding.transactions import Q1, transactions
from fishweir.pipeline.calibration import Constants, calibrated, walked
from fishweir.pipeline.shed_costs import PatternCount, count, size
from fishweir.shedding.patterns import PatternTree, shed_queries, to_tree
from fishweir.shedding.reduced import reduced_output

ROUNDS = 5
ENTERED = 5.0
"""Elements that are walked for the condition of Q1: the root, the order and its children; the rest is skipped."""


@dataclass(frozen=True)
class Prediction:
    """A shed query by its number of patterns, and what it costs per document."""

    patterns: int
    measured: float
    predicted: float

    @property
    def ratio(self) -> float:
        return self.predicted / self.measured


def predictions(sample: int) -> list[Prediction]:
    (statement,) = parse_script(Q1)
    assert isinstance(statement, CreateQuery)
    assert isinstance(statement.shape, Shape)
    shape, tree = statement.shape, to_tree(statement.shape)
    counts = _counted(tree, transactions(sample, seed=11))
    kept = [one for one in shed_queries(tree) if one]
    bodies = transactions(sample)
    runs = [_run(shape, tree, one, bodies) for one in kept]
    best = [float("inf")] * len(kept)
    constants = calibrated()
    for _ in range(ROUNDS):  # in turns, of which the fastest counts: other work only ever adds
        for number, run in enumerate(runs):
            best[number] = min(best[number], _timed(run) / sample)
    return [Prediction(len(k), b, _predicted(tree, k, counts, constants)) for k, b in zip(kept, best, strict=True)]


def _counted(tree: PatternTree, bodies: Sequence[bytes]) -> tuple[float, list[PatternCount]]:
    """Elements per document, and its patterns."""
    roots = []
    for body in bodies:
        above = etree.Element("above")
        above.append(parse_document(body))
        roots.append(above)
    return sum(map(size, roots)) / len(roots), [count(roots, pattern.path, len(tree.root)) for pattern in tree.patterns]


def _predicted(
    tree: PatternTree, kept: frozenset[int], counts: tuple[float, list[PatternCount]], price: Constants
) -> float:
    whole, patterns = counts
    conditions = [patterns[i] for i in kept if tree.patterns[i].selected]
    parts = [patterns[i] for i in kept if tree.patterns[i].returned]
    entered = ENTERED if conditions else 1.0
    reading = price.reading(entered, whole - entered, 1 + sum(one.nodes for one in conditions))
    if not parts:
        return reading
    constructing = sum(price.constructing(one.steps, one.nodes, one.elements, one.looked) for one in parts)
    return reading + price.opening(whole) + constructing


def _run(shape: Shape, tree: PatternTree, kept: frozenset[int], bodies: Sequence[bytes]) -> Callable[[], None]:
    conditions: dict[Path, bool] = {tree.patterns[i].path: True for i in kept if tree.patterns[i].selected}
    output = reduced_output(shape, kept) if any(tree.patterns[i].returned for i in kept) else ()
    shared = SharedPaths()
    shared.hold({"query": {tree.root: False, **conditions}})

    def run() -> None:
        walked(shared, bodies)
        if output:
            for body in bodies:
                (root, *_) = list(elements(parse_document(body, comments=True)))
                construct(output, {"a": (root, None)})

    return run


def _timed(run: Callable[[], None]) -> float:
    began = time.thread_time()
    run()
    return time.thread_time() - began

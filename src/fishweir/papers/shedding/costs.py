"""What shed queries cost on this machine: processor time to read an element and construct what is kept of it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from fishweir.algebra.construct import construct
from fishweir.algebra.documents import parse_document
from fishweir.algebra.nodes import CreateQuery, Output, Shape
from fishweir.languages.script import parse_script
from fishweir.shedding.patterns import shed_queries, to_tree
from fishweir.shedding.problem import Candidate
from fishweir.shedding.reduced import reduced_output
from fishweir.shedding.utility import Utilities, utilities

ROUNDS = 3


@dataclass(frozen=True)
class Measured:
    """The shed queries of a query, the original first, without the empty one, and what each costs per element."""

    shape: Shape
    kept: tuple[frozenset[int], ...]
    outputs: tuple[tuple[Output, ...], ...]
    costs: tuple[float, ...]
    """Seconds of processor time."""

    def candidates(self, worth: Utilities) -> list[Candidate]:
        return [Candidate(worth.normalized(kept), cost) for kept, cost in zip(self.kept, self.costs, strict=True)]

    def run(self, number: int, body: bytes) -> None:
        _execute(self.outputs[number], body)


def measured(text: str, bodies: Sequence[bytes]) -> Measured:
    (statement,) = parse_script(text)
    assert isinstance(statement, CreateQuery)
    assert isinstance(statement.shape, Shape)
    tree = to_tree(statement.shape)
    kept = tuple(one for one in shed_queries(tree) if one)
    outputs = tuple(reduced_output(statement.shape, one) for one in kept)
    best = [float("inf")] * len(kept)
    for _ in range(ROUNDS):  # in turns, of which the fastest counts: other work only ever adds
        for number, output in enumerate(outputs):
            began = time.process_time()
            for body in bodies:
                _execute(output, body)
            best[number] = min(best[number], (time.process_time() - began) / len(bodies))
    return Measured(statement.shape, kept, outputs, tuple(best))


def worth_of(text: str) -> Utilities:
    (statement,) = parse_script(text)
    assert isinstance(statement, CreateQuery)
    assert isinstance(statement.shape, Shape)
    return utilities(to_tree(statement.shape), statement.preference)


def _execute(output: tuple[Output, ...], body: bytes) -> None:
    root = parse_document(body)
    construct(output, {"a": (root, None), "o": (root, None)})

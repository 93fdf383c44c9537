"""The constants of the cost model, measured on this machine when a job with a target latency starts.

In: nothing but the time. Out: seconds of processor time for each elementary operation. Documents of known sizes are
read and walked for paths that enter them or do not, and outputs of known sizes constructed; the differences are the
constants.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from fishweir.algebra.construct import construct
from fishweir.algebra.documents import BadDocument, elements, parse_document
from fishweir.algebra.nodes import Step
from fishweir.algebra.returns import PathOutput
from fishweir.evaluate.witnesses.shared_paths import SharedPaths
from fishweir.pipeline.bodies import read_bodies

DOCUMENTS, FEW, MANY, ROUNDS = 20, 20, 220, 7


@dataclass(frozen=True, slots=True)
class Constants:
    """Seconds for each elementary operation."""

    document: float
    """Reading and walking a document, whatever is in it."""
    element: float
    """Reading and walking an element."""
    skipped: float
    """Reading an element in a subtree that no path enters."""
    node: float
    """Locating and keeping a node at the end of a path."""
    opened: float
    """Reading a document again, to construct an output, whatever is in it."""
    again: float
    """Each of its elements."""
    part: float
    """A part of an output."""
    step: float
    """Each step of its path."""
    looked: float
    """Looking at an element, whether it is one of the part's nodes."""
    returned: float
    """Copying such a node."""
    copied: float
    """Each element in that node."""

    def reading(self, walked: float, skipped: float, nodes: float) -> float:
        """Locating and buffering: a document of so many elements and nodes."""
        return self.document + walked * self.element + skipped * self.skipped + nodes * self.node

    def opening(self, elements: float) -> float:
        return self.opened + elements * self.again

    def constructing(self, steps: int, nodes: float, elements: float, looked: float) -> float:
        """Manipulation: a part of an output with so many nodes, elements in them and others looked at."""
        found = self.part + steps * self.step + looked * self.looked
        return found + nodes * self.returned + elements * self.copied


@lru_cache(maxsize=1)
def calibrated() -> Constants:
    """Measured once in a process."""
    few, whole, skipped, found, opened, opened_more, *outputs = _least(
        [
            _walking(FEW, "p", "none"),
            _walking(MANY, "p", "none"),
            _walking(MANY, "none"),
            _walking(MANY, "p", "e"),
            _opening(FEW),
            _opening(MANY),
            _constructing(1, "none"),
            _constructing(MANY, "none"),
            _constructing(MANY, "e"),
            _constructing(1, "e"),
            _constructing(MANY, "p"),
            _constructing(1, "p", "none"),
        ]
    )
    nothing, passed, nodes, one, below, deeper = outputs
    span = MANY - FEW
    element, again, copied = (whole - few) / span, (opened_more - opened) / span, (below - one) / MANY
    looked = (passed - nothing) / (MANY - 1)
    step = deeper - nothing - looked
    constants = (
        few - FEW * element,
        element,
        element - (whole - skipped) / MANY,
        (found - whole) / MANY,
        opened - FEW * again,
        again,
        nothing - looked - step,
        step,
        looked,
        (nodes - passed) / MANY - copied,
        copied,
    )
    return Constants(*(max(value, 1e-9) for value in constants))


def walked(shared: SharedPaths, bodies: Sequence[bytes]) -> None:
    """Reads and walks documents as the job does."""
    walk = shared.start()
    for document, content in enumerate(read_bodies([{"problem": None, "change": "", "body": one} for one in bodies])):
        assert not isinstance(content, BadDocument)
        walk.add(document, content)
    for table in walk.tables().values():
        len(table.texts)


def _body(count: int) -> bytes:
    return b"<d><p>" + b"<e>some text</e>" * count + b"</p></d>"


def _walking(count: int, *names: str) -> Callable[[], None]:
    """Reads documents with so many elements below `p` and walks them for a path below the root."""
    shared, body = SharedPaths(), _body(count)
    shared.hold({"calibration": {(Step("d"), *map(Step, names)): True}})
    return lambda: walked(shared, [body] * DOCUMENTS)


def _opening(count: int) -> Callable[[], None]:
    body = _body(count)

    def run() -> None:
        for _ in range(DOCUMENTS):
            list(elements(parse_document(body, comments=True)))

    return run


def _constructing(count: int, *names: str) -> Callable[[], None]:
    """Constructs a part of an output: of a document with so many `e`, or with one `p` that has them."""
    inner = b"<e>some text</e>" * count
    root = parse_document(b"<d><p>" + inner + b"</p></d>" if names[0] == "p" else b"<d>" + inner + b"</d>")
    parts, bound = (PathOutput("a", tuple(map(Step, names))),), {"a": (root, None)}

    def run() -> None:
        for _ in range(DOCUMENTS):
            construct(parts, bound)

    return run


def _least(runs: Sequence[Callable[[], None]]) -> list[float]:
    """Seconds per document of each, in turns; the fastest round counts, since other work only ever adds."""
    best = [float("inf")] * len(runs)
    for _ in range(1 + ROUNDS):
        for number, run in enumerate(runs):
            began = time.thread_time()
            run()
            best[number] = min(best[number], time.thread_time() - began)
    return [seconds / DOCUMENTS for seconds in best]

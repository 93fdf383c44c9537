"""The constants of the cost model, measured on this machine when a job with a target latency starts.

In: nothing. Out: seconds of processor time for each elementary operation. The calibration reads and walks
documents of known sizes, with paths that enter them or do not, and constructs outputs of known sizes. The constants are
those that best fit all measured times by relative error: a difference of two times would have the errors of both.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from fishweir.algebra.documents import BadDocument
from fishweir.algebra.nodes import Block, Output, PatternNode, Shape, Source, Step
from fishweir.algebra.returns import PathOutput, ReturnOutput
from fishweir.evaluate.witnesses.shared_paths import SharedPaths
from fishweir.pipeline.bodies import read_bodies
from fishweir.pipeline.outputs import ResultDocuments, constructed
from fishweir.pipeline.pruned import Prunings
from fishweir.pipeline.source_documents import SourceDocument
from fishweir.records import dataclass
from fishweir.shedding.reduced import Cut

WALKED, SHOWN, ROUNDS = (40, 160), 60, 5
"""Documents per measurement, and the number of repetitions. Walks of two lengths show the fixed cost of a walk."""
SIZES = (10, 60, 220)
"""Numbers of elements of the measured documents."""
TEXTS = (b"5", b"some text", b"a text that is longer", b"2026-01-01")


@dataclass(frozen=True, slots=True)
class Constants:
    """Seconds per elementary operation."""

    walk: float
    """The fixed cost of a walk, independent of the number of documents."""
    document: float
    """The fixed cost of reading and walking a document."""
    element: float
    """An element whose tag is read."""
    skipped: float
    """An element in a subtree that no path enters."""
    node: float
    """Locating and storing a node at the end of a path."""
    opened: float
    """The fixed cost of reading a document again to construct an output."""
    passed: float
    """An element of that document that the output does not need."""
    again: float
    """An element that the output needs: it is parsed again and copied."""
    part: float
    """A part of an output."""
    step: float
    """A step of the path of a part."""
    returned: float
    """A node that the path finds."""

    def reading(self, walked: float, skipped: float, nodes: float) -> float:
        """Locating and buffering: a document with the given numbers of elements and nodes."""
        return self.document + walked * self.element + skipped * self.skipped + nodes * self.node

    def opening(self, passed: float, needed: float) -> float:
        """Reading a document again: elements that an output does not need, and elements that it needs."""
        return self.opened + passed * self.passed + needed * self.again

    def constructing(self, steps: int, nodes: float, times: float = 1.0) -> float:
        """Manipulation: a part of an output with the given number of nodes, evaluated `times` times."""
        return times * (self.part + steps * self.step) + nodes * self.returned


Run = tuple[tuple[float, ...], Callable[[], None]]
"""The count of each elementary operation, and a function that performs them."""


@lru_cache(maxsize=1)
def calibrated() -> Constants:
    """The constants, measured once per process."""
    walks = [run for size in SIZES for count in WALKED for run in _walks(size, count)]
    outputs = [run for size in SIZES for run in _outputs(size)]
    times = _fastest([run for _, run in (*walks, *outputs)])
    located = _fitted_prices([counts for counts, _ in walks], times[: len(walks)])
    made = _fitted_prices([counts for counts, _ in outputs], times[len(walks) :])
    return Constants(*located, *made)


def walk_bodies(shared: SharedPaths, bodies: Sequence[bytes]) -> None:
    """Reads and walks documents as the job does."""
    walk = shared.start()
    for document, content in enumerate(read_bodies([{"problem": None, "change": "", "body": one} for one in bodies])):
        assert not isinstance(content, BadDocument)
        walk.add(document, content)
    for table in walk.tables().values():
        len(table.texts)


def construct_outputs(
    shape: Shape, parts: tuple[Output, ...], bodies: Sequence[bytes], nodes: Sequence[int] = (0,)
) -> list[str]:
    """Constructs an output for documents, as a delivery does."""
    cut, prunings, outputs = Cut(parts, frozenset(), ()), Prunings(), []
    for body in bodies:
        document = SourceDocument("", None, (), 0, "", body)
        found = constructed(shape, (), ResultDocuments([document], nodes, cut=cut, prunings=prunings))
        outputs += [str(output) for _, output in found]
    return outputs


def _some(draw: random.Random, size: int) -> tuple[bytes, int]:
    """About `size` elements `e`. The number varies, since processors learn to predict documents that are all alike."""
    count = draw.randint(size // 2, size + size // 2)
    return b"".join(b"<e>%b</e>" % draw.choice(TEXTS) for _ in range(count)), count


def _walks(size: int, documents: int) -> list[Run]:
    """Elements `e` below `p` whose tags are read, that are skipped, or that are found."""
    inner = [_some(random.Random(number), size) for number in range(documents)]
    bodies = [b"<d><p>%b</p></d>" % some for some, _ in inner]
    total = sum(count for _, count in inner)

    def run(read: float, skipped: float, nodes: float, *names: str) -> Run:
        shared = SharedPaths()
        shared.hold({"calibration": {(Step("d"), *map(Step, names)): True}})
        return (1, documents, 2 * documents + read, skipped, nodes), lambda: walk_bodies(shared, bodies)

    return [run(total, 0, 0, "p", "none"), run(0, total, 0, "none"), run(total, 0, total, "p", "e")]


def _outputs(size: int) -> list[Run]:
    """Outputs of one large node, of many small ones, and of a few, each returned by its own part. Every part finds a
    node, as in most queries."""
    draw = random.Random(size)
    inner = [_some(draw, size) for _ in range(SHOWN)]
    total = sum(count for _, count in inner)

    def run(form: bytes, passed: int, needed: int, returned: int, *paths: str) -> Run:
        """The operations of a document besides those of its elements `e`: passed, needed and returned elements. The
        elements `e` are passed with the element around them, or needed; those of a path that ends in `e` are returned.
        """
        bodies = [(b"<l><d>%b</d></l>" % (form % some)).ljust(512) for some, _ in inner]
        steps = [tuple(map(Step, path.split("/"))) for path in paths]
        parts = tuple(PathOutput("a", one) for one in steps)
        pattern = PatternNode(Step("l"), (), (PatternNode(Step("d"), ("a",)),))
        shape = Shape((Block(Source("S"), pattern),), (), (ReturnOutput(("a",), parts),))
        each = (1, passed, 2 + needed, len(paths), sum(map(len, steps)), returned)
        found = [SHOWN * one for one in each]
        found[1 if passed else 2] += total
        found[5] += total * any(path.endswith("e") for path in paths)
        return tuple(found), lambda: _discard(construct_outputs(shape, shape.output, bodies, (1,)))

    few = b"<z>%b</z><q>1</q><r>2</r><s>3</s><t>4</t><u>5</u>"
    return [
        run(b"<z>%b</z><q>1</q>", 1, 1, 1, "q"),
        run(few, 5, 1, 1, "q"),
        run(few, 1, 5, 5, "q", "r", "s", "t", "u"),
        run(b"<z>%b</z><q><w>1</w><x>2</x></q><r><y>3</y></r>", 1, 5, 3, "q/w", "q/x", "r/y"),
        run(b"<p>%b</p>", 0, 1, 1, "p"),
        run(b"<c>%b</c>", 0, 1, 0, "c/e"),
        run(b"<c>%b</c><q>1</q><r>2</r>", 0, 3, 2, "c/e", "q", "r"),
    ]


def _discard(_: object) -> None:
    pass


def _fitted_prices(counts: Sequence[Sequence[float]], total: NDArray[np.float64]) -> list[float]:
    """The price of each operation: least squares of the relative errors, with no price below zero."""
    rows = np.array(counts, np.float64)
    prices: NDArray[np.float64] = np.zeros(rows.shape[1])
    used = np.arange(rows.shape[1])
    while len(used):
        found = np.linalg.lstsq(rows[:, used] / total[:, None], np.ones(len(total)), rcond=None)[0]
        if (found > 0).all():
            prices[used] = found
            break
        used = used[found > 0]
    return np.maximum(prices, 1e-10).tolist()


def _fastest(runs: Sequence[Callable[[], None]]) -> NDArray[np.float64]:
    """Seconds of each run, measured in rotation. The fastest round counts, since other load only adds time."""
    best = [float("inf")] * len(runs)
    for _ in range(1 + ROUNDS):
        for number, run in enumerate(runs):
            began = time.thread_time()
            run()
            best[number] = min(best[number], time.thread_time() - began)
    return np.array(best)

"""What the patterns of a stream cost: counted in some of its newest documents, priced by the constants of the machine.

In: a log and the parts that may be left out. Out: for each part the share of the two costs of a document that leaving
it out saves. The terms of the paper's model, in this engine:

- **Locating** is reading and walking: each element that is walked costs `element`, one in a subtree that no path enters
  `skipped`. Suspending paths turns elements of the first kind into the second.
- **Buffering** is the witness of a node at the end of a path, its place and value (`node`). Nothing is buffered for
  outputs: a document is read again when one is constructed (`opened`, `again`).
- **Manipulation** is constructing: a part of an output (`part`, `step`), the elements that are looked at to find its
  nodes (`looked`), copying its nodes (`returned`) and what is in them (`copied`). Looking up constants costs the same
  whatever is left out of a document, and is not counted.

Outputs are constructed only where somebody takes them, once for all queries of a shape.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from lxml import etree

from fishweir.algebra.documents import BadDocument, Element
from fishweir.algebra.feeds import Selection
from fishweir.algebra.nodes import Step
from fishweir.algebra.return_paths import Bound, nodes_at
from fishweir.intake.log import StreamLog
from fishweir.pipeline.calibration import Constants
from fishweir.pipeline.taken import taken_of
from fishweir.shedding.patterns import AbsolutePath, is_alone, to_tree
from fishweir.shedding.suspension import Part, Parts, Saved, needed_paths

SAMPLE = 20
"""Documents that are counted in: a decision must cost next to nothing."""
COUNTED = 200
"""Shapes and preferences whose patterns are counted: those with the most subscribers."""


@dataclass(frozen=True, slots=True)
class PatternCount:
    """Per document: the nodes at a path, all elements in them, and those that are looked at to find them."""

    nodes: float
    elements: float
    looked: float = 0.0
    steps: int = 1


@dataclass(frozen=True)
class StreamCosts:
    """Of a stream: elements per document, the share of them that no path enters, and its patterns."""

    elements: float
    skipped: float
    patterns: Mapping[str, PatternCount]
    parts: Parts
    constants: Constants

    def saved(self, part: Part) -> Saved:
        lost = {place for place, _ in part.losers}
        shapes = {self.parts.wishes[place].shape for place in lost if self.parts.wishes[place].taken}
        if not part.is_condition:
            return 0.0, _share(len(shapes) * self._constructing(part.key), self._outputs)
        located, outputs = self._located(self.parts.only(lost)), sum(map(self._output, shapes))
        return _share(located, self._matching), _share(outputs, self._outputs)

    @cached_property
    def _matching(self) -> float:
        skipped = self.skipped * self.elements
        nodes = sum(self._count(key).nodes for key in self.parts.needed)
        return self.constants.reading(self.elements - skipped, skipped, nodes)

    def _located(self, keys: Sequence[str]) -> float:
        """What is saved where some paths are suspended: their nodes, and walking what is below the topmost."""
        nodes = sum(self._count(key).nodes for key in keys)
        topmost = (key for key in keys if not any(key.startswith(f"{other}.") for other in keys))
        below = sum(self._count(key).elements for key in topmost)
        return nodes * self.constants.node + below * max(0.0, self.constants.element - self.constants.skipped)

    @cached_property
    def _outputs(self) -> float:
        shapes = {wish.shape for wish in self.parts.wishes if wish.taken}
        return self.constants.opening(self.elements) + sum(map(self._output, shapes))

    def _output(self, shape: Any) -> float:
        return sum(self._constructing(pattern.key) for pattern in to_tree(shape).patterns if pattern.returned)

    def _constructing(self, key: str) -> float:
        count = self._count(key)
        return self.constants.constructing(count.steps, count.nodes, count.elements, count.looked)

    def _count(self, key: str) -> PatternCount:
        return self.patterns.get(key, PatternCount(0.0, 0.0))


def counted(log: StreamLog, stream: int, parts: Parts, skipped: float, constants: Constants) -> StreamCosts:
    """Counts in the last documents of a log, of which a share of the elements is `skipped`."""
    roots = list(_sample(log, stream, log.head()))
    paths: dict[str, tuple[AbsolutePath, int]] = {}
    for wish in sorted(parts.wishes, key=lambda one: -one.weight)[:COUNTED]:
        if is_alone(wish.shape):
            tree, item = to_tree(wish.shape), (Step("*"),) if isinstance(wish.shape, Selection) else ()
            own = {one.key: one.path for one in tree.patterns} | dict(needed_paths(wish.shape))
            paths |= {key: ((*item, *path), len(item) or len(tree.root)) for key, path in own.items()}
    found = {key: count(roots, path, above) for key, (path, above) in paths.items()}
    return StreamCosts(sum(map(size, roots)) / max(1, len(roots)), skipped, found, parts, constants)


def _sample(log: StreamLog, stream: int, upto: int) -> Iterator[Element]:
    """The document elements, each below another one: paths begin above them."""
    for document in taken_of(log, stream, np.arange(max(1, upto - SAMPLE + 1), upto + 1)):
        with suppress(BadDocument):
            above = etree.Element("above")
            above.append(deepcopy(document.nodes[0]))
            yield above


def count(roots: Sequence[Element], path: AbsolutePath, above: int = 0) -> PatternCount:
    """What is at a path below some elements, each above the root of a document; the first steps, down to the nodes of a
    variable, are not looked for when an output is constructed."""
    found: list[Bound] = [(root, None) for root in roots]
    looked = 0
    for place, step in enumerate(path):
        if place >= above:
            looked += sum(size(element) if step.is_deep else len(element) for element, _ in found)
        found = [node for one in found for node in nodes_at(one, (step,))]
    elements = sum(1 if attribute is not None else size(element) + 1 for element, attribute in found)
    many = max(1, len(roots))
    return PatternCount(len(found) / many, elements / many, looked / many, max(1, len(path) - above))


def size(element: Element) -> int:
    """The elements below one."""
    return sum(1 for _ in element.iterdescendants(etree.Element))


def _share(some: float, whole: float) -> float:
    return min(1.0, some / whole) if whole > 0 else 0.0

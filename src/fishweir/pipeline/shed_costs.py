"""The cost of a stream's patterns: counted in some of its newest documents, priced by the constants of the machine.

In: a log and the parts that may be left out. Out: for each part, the share of the two costs of a document that leaving
it out saves. The terms of the paper's model, in this engine:

- **Locating** is reading and walking: each element whose tag is read costs `element`, one in a subtree that no path
  enters `skipped`. Suspending paths turns elements of the first kind into the second.
- **Buffering** is the witness of a node at the end of a path, its position and value (`node`), and reading a document
  again when an output is constructed (`opened`): the elements of the storing pattern set and those above them
  (`again`). All others are pruned (`passed`), unless outputs of several shapes are constructed from the document.
- **Manipulation** is constructing: a part of an output (`part`, `step`) and the nodes that it finds (`returned`).
  Looking up constants costs the same whatever is left out of a document, and is not counted.

Outputs are constructed only if they are consumed, once for all queries of a shape.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from lxml import etree

from fishweir.algebra.documents import BadDocument, Element
from fishweir.algebra.feeds import Selection
from fishweir.algebra.nodes import ElementOutput, Output, Shape, Step
from fishweir.algebra.normal import dotted
from fishweir.algebra.return_paths import Bound, nodes_at
from fishweir.algebra.returns import ForOutput, PathOutput, ReturnOutput
from fishweir.intake.log import StreamLog
from fishweir.pipeline.calibration import Constants
from fishweir.pipeline.source_documents import taken_of
from fishweir.records import dataclass
from fishweir.shedding.patterns import AbsolutePath, is_alone, places_of, to_tree
from fishweir.shedding.suspension import Part, Parts, PreferenceGroup, Saved, needed_paths

SAMPLE, LONGEST = 20, 1 << 15
"""The number of sampled documents, and the bytes after which no more are sampled: a decision must cost almost nothing.
"""
COUNTED = 200
"""The number of shapes and preferences whose patterns are counted: those with the most subscribers."""


@dataclass(frozen=True, slots=True)
class PatternCount:
    """Per document: the nodes at a path and all elements in them; the steps after its variable, the number of
    evaluations, and the keys of the paths in between.
    """

    nodes: float
    elements: float
    steps: int = 1
    above: tuple[str, ...] = ()
    times: float = 1.0


def needed_elements(counts: Mapping[str, PatternCount], keys: Collection[str]) -> float:
    """The elements of the storing pattern set (figure 6), and those on the paths to them."""
    topmost = [key for key in keys if not any(above in keys for above in counts[key].above)]
    ways = dict.fromkeys(above for key in topmost for above in counts[key].above)
    return 1 + sum(counts[key].elements for key in topmost) + sum(counts[key].nodes for key in ways)


def output_cost(price: Constants, whole: float, counts: Mapping[str, PatternCount], keys: Collection[str]) -> float:
    """The cost of constructing the parts of one output, for a document with `whole` elements."""
    if not keys:
        return 0.0
    needed = min(whole, needed_elements(counts, keys))
    parts = sum(price.constructing(counts[key].steps, counts[key].nodes, counts[key].times) for key in keys)
    return price.opening(whole - needed, needed) + parts


@dataclass(frozen=True)
class StreamCosts:
    """For a stream: elements per document, the share of them that no path enters, and its patterns."""

    elements: float
    skipped: float
    patterns: Mapping[str, PatternCount]
    parts: Parts
    constants: Constants
    passing: float = 1.0
    """The share of the elements iterated over by queries for which conditions hold."""

    def nodes(self, path: AbsolutePath) -> float:
        """The number of nodes per document at a path of a query."""
        return self._count(dotted(path)).nodes

    def saved(self, part: Part) -> Saved:
        lost = {place for place, _ in part.losers}
        shapes = {self.parts.groups[place].shape for place in lost if self.parts.groups[place].taken}
        if part.is_relaxed:
            more = sum(self._cost_of(shape) for shape in shapes) * (1 / self.passing - 1)
            return _share(self._located([part.key]), self._matching), -more / self._outputs if more else 0.0
        outputs = sum(self._saved_output(shape, part) for shape in shapes)
        located = self._located(self.parts.only(lost)) if part.is_condition else 0.0
        return _share(located, self._matching), _share(outputs, self._outputs)

    def _saved_output(self, shape: Any, part: Part) -> float:
        """The savings in a shape's output without a part: the whole output if the query is not evaluated."""
        returned = self._returned(shape)
        gone = returned if part.is_condition else returned.intersection(self._below(part.key))
        if len(self._shapes) == 1:
            whole = output_cost(self.constants, self.elements, self.patterns, returned)
            return whole - output_cost(self.constants, self.elements, self.patterns, returned - gone)
        return self._parts(gone)

    def _cost_of(self, shape: Any) -> float:
        """The cost of a shape's outputs."""
        returned = self._returned(shape)
        if len(self._shapes) == 1:
            return output_cost(self.constants, self.elements, self.patterns, returned)
        return self._parts(returned)

    @cached_property
    def _matching(self) -> float:
        skipped = self.skipped * self.elements
        nodes = sum(self._count(key).nodes for key in self.parts.needed)
        return self.constants.reading(self.elements - skipped, skipped, nodes)

    def _located(self, keys: Sequence[str]) -> float:
        """The savings if some paths are suspended: their nodes, and walking the elements below the topmost ones."""
        nodes = sum(self._count(key).nodes for key in keys)
        topmost = (key for key in keys if not any(key.startswith(f"{other}.") for other in keys))
        below = sum(self._count(key).elements for key in topmost)
        return nodes * self.constants.node + below * max(0.0, self.constants.element - self.constants.skipped)

    @cached_property
    def _shapes(self) -> list[Any]:
        return list(dict.fromkeys(group.shape for group in self.parts.groups if group.taken))

    @cached_property
    def _outputs(self) -> float:
        """The cost of outputs. For one shape, only the needed elements are read; with several, a document is read again
        once for all.
        """
        if len(self._shapes) == 1:
            return output_cost(self.constants, self.elements, self.patterns, self._returned(self._shapes[0]))
        parts = sum(self._parts(self._returned(shape)) for shape in self._shapes)
        return self.constants.opening(0.0, self.elements) + parts

    def _parts(self, keys: Collection[str]) -> float:
        found = [self.patterns[key] for key in keys]
        return sum(self.constants.constructing(one.steps, one.nodes, one.times) for one in found)

    def _returned(self, shape: Any) -> frozenset[str]:
        if not is_alone(shape):
            return frozenset()
        return frozenset(one.key for one in to_tree(shape).patterns if one.returned and one.key in self.patterns)

    def _below(self, key: str) -> list[str]:
        """A pattern and those below it."""
        return [key, *(one for one, count in self.patterns.items() if key in count.above)]

    def _count(self, key: str) -> PatternCount:
        return self.patterns.get(key, PatternCount(0.0, 0.0))


def counted(
    log: StreamLog, stream: int, parts: Parts, skipped: float, constants: Constants, results: float = 0.0
) -> StreamCosts:
    """Counts in the last documents of a log; a share `skipped` of their elements is in subtrees that no path enters,
    and `results` is the number of results per document.
    """
    roots = list(_sample(log, stream, log.head()))
    found: dict[str, PatternCount] = {}
    for group in sorted(parts.groups, key=lambda one: -one.weight)[:COUNTED]:
        if is_alone(group.shape):
            found |= counts_of(group.shape, roots, found)
    tried = sum(group.weight * _iterated(group, found) for group in parts.groups)
    passing = min(1.0, max(0.01, results / tried)) if tried else 1.0
    return StreamCosts(sum(map(size, roots)) / max(1, len(roots)), skipped, found, parts, constants, passing)


def _iterated(group: PreferenceGroup, found: Mapping[str, PatternCount]) -> float:
    """The elements of a document that a query iterates over."""
    path = to_tree(group.shape).root if is_alone(group.shape) else ()
    root = found.get(dotted(path)) if path else None
    return root.nodes if root else 1.0


def counts_of(
    shape: Any, roots: Sequence[Element], known: Mapping[str, PatternCount] = MappingProxyType({})
) -> dict[str, PatternCount]:
    """The counts of the patterns of a shape in some documents, of those on the paths to them, and of the paths that the
    shape needs.
    """
    tree, item = to_tree(shape), (Step("*"),) if isinstance(shape, Selection) else ()
    own = {one.key: one.path for one in tree.patterns} | dict(needed_paths(shape))
    own |= {dotted(path[:k]): path[:k] for path in own.values() for k in range(len(tree.root) + 1, len(path))}
    found = {
        key: count(roots, (*item, *path), len(item) or len(tree.root), len(item))
        for key, path in own.items()
        if key not in known
    }
    for path, over in loops_of(shape.output, places_of(shape)) if isinstance(shape, Shape) else ():
        if (key := dotted(path)) in found:
            times = 1 + count(roots, over).nodes  # once more, for the iterations of the loop
            found[key] = replace(found[key], steps=max(1, len(path) - len(over)), times=times)
    return found


def loops_of(
    parts: tuple[Output, ...], places: Mapping[str, AbsolutePath], over: AbsolutePath = ()
) -> Iterator[tuple[AbsolutePath, AbsolutePath]]:
    """The return patterns in nested `for` clauses, each with the path that the innermost clause iterates over."""
    for part in parts:
        match part:
            case PathOutput(variable, path) if over:
                yield (*places[variable], *path), over
            case ElementOutput(_, _, inner) | ReturnOutput(_, inner):
                yield from loops_of(inner, places, over)
            case ForOutput(variable, along, _, inner):
                here = (*places[along.variable], *along.path)
                yield from loops_of(inner, {**places, variable: here}, here)


def _sample(log: StreamLog, stream: int, upto: int) -> Iterator[Element]:
    """The document elements, each below an artificial element: paths begin above them."""
    size = 0
    for document in reversed(taken_of(log, stream, np.arange(max(1, upto - SAMPLE + 1), upto + 1))):
        with suppress(BadDocument):
            above = etree.Element("above")
            above.append(deepcopy(document.nodes[0]))
            yield above
        size += len(document.body or b"")
        if size > LONGEST:
            break


def count(roots: Sequence[Element], path: AbsolutePath, above: int = 0, item: int = 0) -> PatternCount:
    """The counts at a path below some elements, each above the root of a document. The first steps, down to the nodes
    of a variable, are not evaluated when an output is constructed.
    """
    found: list[Bound] = [node for root in roots for node in nodes_at((root, None), path)]
    elements = sum(1 if attribute is not None else size(element) + 1 for element, attribute in found)
    many = max(1, len(roots))
    ways = tuple(dotted(path[item:k]) for k in range(above + 1, len(path)))
    return PatternCount(len(found) / many, elements / many, max(1, len(path) - above), ways)


_BELOW = etree.XPath("count(descendant::*)")


def size(element: Element) -> int:
    """The number of elements below an element."""
    return int(_BELOW(element)) if len(element) else 0  # type: ignore[arg-type]


def _share(some: float, whole: float) -> float:
    return min(1.0, some / whole) if whole > 0 else 0.0

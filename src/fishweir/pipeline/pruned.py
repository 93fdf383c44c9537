"""Documents reduced to what an output needs.

In: a shape, the kept parts of its output, and a document. Out: the document with the nodes of its variables, read from
the rest of its body (evaluate/witnesses/pruned.py). Return patterns are evaluated below those nodes, with the same
result as in the whole document. The value of a variable with return patterns below it is its whole text, so the whole
document is read only if that value is requested.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any

from lxml import etree

from fishweir.algebra.alternatives import ABSENT
from fishweir.algebra.documents import ATTRIBUTE, Element, parse_document
from fishweir.algebra.nodes import ElementOutput, Output, Shape, TextOutput, VariableOutput, mentioned
from fishweir.algebra.returns import ForOutput, PathOutput, ReturnOutput
from fishweir.evaluate.witnesses.automaton.prune_kernels import KEPT, WHOLE
from fishweir.evaluate.witnesses.path_tables import Path
from fishweir.evaluate.witnesses.pruned import Pruning, can_be_pruned
from fishweir.pipeline.source_documents import SourceDocument
from fishweir.records import dataclass
from fishweir.shedding.patterns import is_alone, places_of

Places = Mapping[str, Path]
SHORTEST = 256
"""Bodies shorter than this are parsed as fast as they are pruned."""


@dataclass(frozen=True, eq=False, slots=True)
class PrunedDocument:
    """A reduced document; `nodes` contains those of its variables, by their numbers in the whole document."""

    whole: SourceDocument
    nodes: Mapping[int, Element]

    @property
    def id(self) -> str:
        return self.whole.id


class Prunings:
    """The parts of documents that outputs need, computed once for all results that are read together."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[object, Pruning | None]] = {}
        self._last: SourceDocument | None = None
        self._made: dict[int, PrunedDocument | None] = {}
        """The reductions of the last document, by output."""

    def document(
        self,
        shape: Shape,
        parts: tuple[Output, ...],
        document: SourceDocument,
        places: Mapping[str, int],
        several: Collection[int] = (),
    ) -> PrunedDocument | None:
        """The part of a document that an output needs; None if it needs the whole document. `several` contains the
        nodes of all results of the document, if there are several: the document is read once for all of them.
        """
        if document.body is None or len(document.body) < SHORTEST:
            return None
        if document is self._last and id(parts) in self._made:
            return self._made[id(parts)]
        known = self._known.get(id(parts))
        if known is None:
            known = self._known[id(parts)] = parts, pruning_of(shape, parts)
        wanted = {position % ATTRIBUTE for position in several or places.values() if position != ABSENT}
        left = None if known[1] is None else known[1].of(document.body, document.context, wanted)
        found = None if left is None else _read(document, *left)
        if several:
            if document is not self._last:
                self._last, self._made = document, {}
            self._made[id(parts)] = found
        return found


def _read(whole: SourceDocument, body: bytes, numbers: Mapping[int, int]) -> PrunedDocument:
    root = parse_document(body, comments=True)
    last = max(numbers.values(), default=0)
    here = list(islice(root.iter(etree.Element), last + 1)) if last else [root]
    return PrunedDocument(whole, {number: here[place] for number, place in numbers.items()})


@lru_cache(maxsize=10_000)
def pruning_of(shape: Shape, parts: tuple[Output, ...]) -> Pruning | None:
    """The pruning for an output with return patterns over single documents; None for any other output."""
    if not is_alone(shape) or shape.alternatives or shape.formula is not None or not any(_paths_of(parts)):
        return None
    places = places_of(shape)
    if any(name not in places for name in mentioned(parts)):
        return None
    later = {part.variable for part in _paths_of(parts)}
    needed = [(places[name], KEPT if name in later else WHOLE) for name in shape.output_variables if name in places]
    needed += _needed(parts, places)
    paths: dict[Path, int] = {}
    for path, flag in needed:  # the text of a variable with return patterns below it is not needed
        if not can_be_pruned(path):
            return None
        paths[path] = paths.get(path, 0) | flag
    found = Pruning(paths)
    return found if found.is_possible else None


def _needed(parts: tuple[Output, ...], places: Places) -> Iterator[tuple[Path, int]]:
    for part in parts:
        match part:
            case VariableOutput(name):
                yield places[name], WHOLE
            case PathOutput(variable, path):
                yield (*places[variable], *path), WHOLE
            case ElementOutput(_, attributes, children):
                shown: tuple[Any, ...] = tuple(value for _, value in attributes if not isinstance(value, TextOutput))
                yield from _needed((*shown, *children), places)
            case ReturnOutput(_, inner):
                yield from _needed(inner, places)
            case ForOutput(variable, over, conditions, inner):
                here = (*places[over.variable], *over.path)
                below = {**places, variable: here}
                yield here, KEPT
                yield from _needed((*(one.at for one in conditions), *inner), below)


def _paths_of(parts: tuple[Output, ...]) -> Iterator[PathOutput]:
    """The return patterns of an output. Those in nested clauses are below the pattern of the clause."""
    for part in parts:
        match part:
            case PathOutput():
                yield part
            case ElementOutput(_, attributes, children):
                yield from (value for _, value in attributes if isinstance(value, PathOutput))
                yield from _paths_of(children)
            case ReturnOutput(_, inner):
                yield from _paths_of(inner)
            case ForOutput(_, over, _, _):
                yield over

"""Documents as an output needs them: without what it does not show.

In: a shape, the parts of its output that are kept, and a document. Out: the document with the nodes of its variables,
read from what is left of its body (evaluate/witnesses/pruned.py). Return patterns are looked for below those nodes, and
find the same as in the whole document. The value of a variable that return patterns are below is all of its text, so
the whole document is read when somebody asks for it, and only then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
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
from fishweir.pipeline.taken import TakenDocument
from fishweir.shedding.patterns import is_alone, places_of

Places = Mapping[str, Path]
SHORTEST = 256
"""Bodies that are shorter are parsed in the time that it takes to look at them."""


@dataclass(frozen=True, eq=False)
class PrunedDocument:
    """What is left of a document; `nodes` are those of its variables, by their numbers in the whole one."""

    whole: TakenDocument
    body: bytes
    numbers: Mapping[int, int]

    @property
    def id(self) -> str:
        return self.whole.id

    @cached_property
    def nodes(self) -> Mapping[int, Element]:
        root = parse_document(self.body, comments=True)
        last = max(self.numbers.values(), default=0)
        here = list(islice(root.iter(etree.Element), last + 1)) if last else [root]
        return {number: here[place] for number, place in self.numbers.items()}


class Prunings:
    """What outputs need, found once for all results that are read together."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[object, Pruning | None]] = {}

    def document(
        self, shape: Shape, parts: tuple[Output, ...], document: TakenDocument, places: Mapping[str, int]
    ) -> PrunedDocument | None:
        """What an output needs of a document; None where that has to be the whole one."""
        if document.body is None or len(document.body) < SHORTEST:
            return None
        known = self._known.get(id(parts))
        if known is None:
            known = self._known[id(parts)] = parts, pruning_of(shape, parts)
        pruning = known[1]
        if pruning is None:
            return None
        wanted = {position % ATTRIBUTE for position in places.values() if position != ABSENT}
        left = pruning.of(document.body, document.context, wanted)
        return None if left is None else PrunedDocument(document, *left)


@lru_cache(maxsize=10_000)
def pruning_of(shape: Shape, parts: tuple[Output, ...]) -> Pruning | None:
    """Of an output with return patterns over single documents; None for any other."""
    if not is_alone(shape) or shape.alternatives or shape.formula is not None or not any(_paths_of(parts)):
        return None
    places = places_of(shape)
    if any(name not in places for name in mentioned(parts)):
        return None
    later = {part.variable for part in _paths_of(parts)}
    needed = [(places[name], KEPT if name in later else WHOLE) for name in shape.output_variables if name in places]
    needed += _needed(parts, places)
    paths: dict[Path, int] = {}
    for path, flag in needed:  # of a variable with return patterns below it the text is not needed
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
    """The return patterns of an output; those inside of nested clauses are below that clause's."""
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

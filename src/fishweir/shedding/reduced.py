"""The output of a shed query: what is left of a query's output when some of its patterns are left out.

In: the shape of a query and the patterns that are kept. Out: the outputs without the parts whose patterns are not. An
element constructor stays, with what is left of its content.
"""

from __future__ import annotations

from collections.abc import Iterator

from fishweir.algebra.nodes import ElementOutput, Output, Shape, Step, TextOutput, VariableOutput
from fishweir.algebra.returns import ForOutput, PathOutput, ReturnOutput
from fishweir.shedding.patterns import AbsolutePath, places_of, to_tree


def reduced_output(shape: Shape, kept: frozenset[int]) -> tuple[Output, ...]:
    tree = to_tree(shape)
    stay = frozenset(tree.patterns[i].path for i in kept)
    return tuple(_parts(shape.output, places_of(shape), stay))


def _parts(
    parts: tuple[Output, ...], places: dict[str, AbsolutePath], stay: frozenset[AbsolutePath]
) -> Iterator[Output]:
    for part in parts:
        match part:
            case TextOutput():
                yield part
            case VariableOutput(name):
                if places.get(name, ()) in stay:
                    yield part
            case PathOutput(variable, path):
                if _at(places, variable, path) in stay:
                    yield part
            case ElementOutput(tag, attributes, children):
                given = tuple((name, one) for name, one in attributes if any(_parts((one,), places, stay)))
                yield ElementOutput(tag, given, tuple(_parts(children, places, stay)))
            case ReturnOutput(variables, inner):
                yield ReturnOutput(variables, tuple(_parts(inner, places, stay)))
            case ForOutput(variable, over, conditions, inner):
                below = {**places, variable: _at(places, over.variable, over.path)}
                left = tuple(_parts(inner, below, stay))
                if left:
                    yield ForOutput(variable, over, conditions, left)


def _at(places: dict[str, AbsolutePath], variable: str, path: tuple[Step, ...]) -> AbsolutePath:
    return (*places.get(variable, ()), *path)

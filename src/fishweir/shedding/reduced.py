"""The output of a shed query: a query's output without some of its patterns.

In: the shape of a query and the kept patterns. Out: the outputs without the parts of the other patterns. An element
constructor stays, with the rest of its content.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from fishweir.algebra.feeds import Selection
from fishweir.algebra.nodes import ElementOutput, Output, Shape, Step, TextOutput, VariableOutput
from fishweir.algebra.returns import ForOutput, PathOutput, ReturnOutput
from fishweir.records import dataclass
from fishweir.shedding.patterns import AbsolutePath, is_alone, places_of, returned_paths, to_tree


@dataclass(frozen=True, slots=True)
class Cut:
    """A query's output without some patterns: the columns of an SQL selection, or the parts of another query."""

    parts: tuple[Output, ...]
    columns: frozenset[str]
    left_out: tuple[str, ...]
    """The omitted patterns, as results name them."""


@lru_cache(maxsize=10_000)
def cut_of(shape: Shape | Selection, returns: frozenset[str], relaxed: frozenset[str] = frozenset()) -> Cut | None:
    """The output without some return patterns, given by their keys, and those below them; None if it does not change.
    It also names the conditions that were not checked.
    """
    if not is_alone(shape):
        return None
    tree = to_tree(shape)
    gone = [i for i, pattern in enumerate(tree.patterns) if pattern.returned and pattern.key in returns]
    lost = [i for i in range(len(tree.patterns)) if any(tree.is_below(i, above) for above in gone)]
    names = tuple(str(tree.patterns[i]) for i in lost if tree.patterns[i].returned)
    names += tuple(str(one) for one in tree.patterns if one.selected and one.key in relaxed)
    if not names:
        return None
    without = frozenset(tree.patterns[i].path for i in lost)
    if isinstance(shape, Selection):
        columns = shape.output.columns if shape.output else ()
        return Cut((), frozenset(name for name, path in columns if tuple(path) not in without), names)
    return Cut(tuple(_parts(shape.output, places_of(shape), without)), frozenset(), names)


def reduced_output(shape: Shape, kept: frozenset[int]) -> tuple[Output, ...]:
    tree = to_tree(shape)
    without = frozenset(tree.patterns[i].path for i in tree.full - kept)
    return tuple(_parts(shape.output, places_of(shape), without))


def _parts(
    parts: tuple[Output, ...], places: dict[str, AbsolutePath], without: frozenset[AbsolutePath]
) -> Iterator[Output]:
    for part in parts:
        match part:
            case TextOutput():
                yield part
            case VariableOutput(name):
                if places.get(name, ()) not in without:
                    yield part
            case PathOutput(variable, path):
                if _at(places, variable, path) not in without:
                    yield part
            case ElementOutput(tag, attributes, children):
                given = tuple((name, one) for name, one in attributes if any(_parts((one,), places, without)))
                yield ElementOutput(tag, given, tuple(_parts(children, places, without)))
            case ReturnOutput(variables, inner):
                yield ReturnOutput(variables, tuple(_parts(inner, places, without)))
            case ForOutput(variable, over, conditions, inner):
                below = {**places, variable: _at(places, over.variable, over.path)}
                paths = list(returned_paths(inner, below))
                if not paths or any(path not in without for path in paths):
                    yield ForOutput(variable, over, conditions, tuple(_parts(inner, below, without)))


def _at(places: dict[str, AbsolutePath], variable: str, path: tuple[Step, ...]) -> AbsolutePath:
    return (*places.get(variable, ()), *path)

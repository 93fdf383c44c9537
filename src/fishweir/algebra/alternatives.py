"""Alternatives: a query that matches if any of several shapes matches, as created by `or` and `|`.

A shape with alternatives stands for itself and for each of them: the disjunctive normal form of the query. All have the
same sources, output, slots and window. A result is one binding of the output variables, however many alternatives
produce it. In the shared plan, each alternative is an ordinary template, and readers of results remove duplicates.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, wraps
from typing import TypeVar

from fishweir.algebra.joins import JoinNormal, JoinTemplate, to_join
from fishweir.algebra.nodes import Shape, Step
from fishweir.algebra.normal import Normal, Template, to_normal

ABSENT = -1
"""The output of a variable that an alternative does not bind."""
T = TypeVar("T")


def _by_identity(function: Callable[[Shape], T]) -> Callable[[Shape], T]:
    """Caches a function of a shape by object identity: hashing a shape for each result would take too long."""
    cache: dict[int, tuple[Shape, T]] = {}

    def look_up(shape: Shape) -> T:
        found = cache.get(id(shape))
        if found is None:
            if len(cache) == CACHE_SIZE:
                cache.clear()
            found = cache[id(shape)] = shape, function(shape)
        return found[1]

    return wraps(function)(look_up)


CACHE_SIZE = 10_000


def parts(shape: Shape) -> tuple[Shape, ...]:
    """The alternatives of a query as separate shapes, or the query itself if it has none."""
    return (replace(shape, alternatives=()), *shape.alternatives) if shape.alternatives else (shape,)


def one_of(shapes: Sequence[Shape]) -> Shape:
    """The query that matches if any of these shapes matches."""
    first, *others = dict.fromkeys(shapes) if len(shapes) > 1 else shapes
    return replace(first, alternatives=tuple(others)) if others else first


def to_alternatives(shape: Shape) -> Iterator[Normal]:
    """The normal forms of a selection's alternatives. All have the output variables as outputs, in the same order, so
    results do not depend on which alternative matched."""
    for part in parts(shape):
        normal = to_normal(part)
        assert isinstance(normal.template, Template)
        nodes = dict(normal.variables)
        outputs = tuple(nodes.get(name, ABSENT) for name in shape.output_variables)
        yield replace(normal, template=replace(normal.template, outputs=outputs))


def to_join_alternatives(shape: Shape) -> Iterator[JoinNormal]:
    """The normal forms of a join's alternatives. Those with the same template are numbered (`turn`): the queries of a
    join are found by lists of queries per side, and a query must occur only once in such a list."""
    turns: Counter[JoinTemplate] = Counter()
    for part in parts(shape):
        normal = to_join(part)
        turn = turns[normal.template]
        turns[normal.template] += 1
        yield replace(normal, template=replace(normal.template, turn=turn))


@_by_identity
@lru_cache(maxsize=100_000)
def steps_of(shape: Shape) -> Mapping[str, tuple[int, Step]]:
    """The block of each variable, and its step in the first alternative that binds it."""
    blocks = ((side, block) for part in parts(shape) for side, block in enumerate(part.blocks))
    nodes = ((side, node) for side, block in blocks for node in block.pattern.walk())
    found: dict[str, tuple[int, Step]] = {}
    for side, node in nodes:
        for name in node.variables:
            found.setdefault(name, (side, node.step))
    return found


@_by_identity
@lru_cache(maxsize=100_000)
def output_places(shape: Shape) -> Mapping[str, int]:
    """The position of each output variable of a selection among the nodes of a result."""
    if shape.alternatives:
        return {name: place for place, name in enumerate(shape.output_variables)}
    normal = to_normal(shape)
    assert isinstance(normal.template, Template), "a tree pattern has a template"
    nodes = dict(normal.variables)
    return {name: normal.template.outputs.index(nodes[name]) for name in shape.output_variables}

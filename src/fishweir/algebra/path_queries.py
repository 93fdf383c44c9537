"""Queries that consist of one path, with the path as a constant.

Most queries over documents are a path with a few predicates, and all paths differ. A shape for each would be built,
stored and planned separately. Instead, all such queries over one source have the shape `Paths`. The first constant of a
query is its path, with `0` or `''` in place of each constant; the constants follow. `own_shape` returns the shape that
a path stands for; code that reads a single query uses that.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from fishweir.algebra.nodes import (
    Axis,
    Block,
    Comparison,
    Constant,
    CreateQuery,
    Operator,
    PatternNode,
    Shape,
    Slot,
    Source,
    Step,
    VariableOutput,
)
from fishweir.records import dataclass

AXES: dict[tuple[bool, bool], Axis] = {
    (False, False): "child", (True, False): "descendant",
    (False, True): "attribute", (True, True): "descendant-attribute",
}  # fmt: skip
_TEST = r"@?(?:[^\W\d](?:[\w.]|-(?![->]))*+|\*)"
_STEPS = re.compile(rf"//?{_TEST}")
_MARKED = re.compile(rf"(//?{_TEST})((?:\[[^]]*+\])*+)")
_PREDICATES = re.compile(r"\[ *+([^]=<>! ]++) *+(?:([=<>!]++)(0|'') *+)?\]")


@dataclass(frozen=True, slots=True)
class Paths:
    """The shape of all queries over a source that have their path as their first constant."""

    source: Source

    @property
    def sources(self) -> list[Source]:
        return [self.source]


@lru_cache(maxsize=1_000)
def paths_over(source: str) -> Paths:
    """The shape of a source, always the same object: queries of one shape are recognized by identity."""
    return Paths(Source(source))


def own_shape(shape: Any, constants: Sequence[Constant]) -> tuple[Any, tuple[Constant, ...]]:
    """The shape of a single query, and its constants for that shape."""
    if not isinstance(shape, Paths):
        return shape, tuple(constants)
    path, *others = constants
    return path_shape(shape.source, str(path)), tuple(others)


def own_query(statement: CreateQuery) -> CreateQuery:
    """The statement with the shape of its path."""
    if not isinstance(statement.shape, Paths):
        return statement
    shape, constants = own_shape(statement.shape, statement.constants)
    return replace(statement, shape=shape, constants=constants)


@lru_cache(maxsize=10_000)
def path_shape(source: Source, path: str) -> Shape:
    """The shape that a path stands for."""
    return _Builder().shape(source, path)


class _Builder:
    """Builds shapes from paths. Slots and variables are numbered in text order, as in the grammar's binder."""

    def __init__(self) -> None:
        self.conditions: list[Comparison] = []
        self.slots: list[Slot] = []
        self.variables = 0

    def shape(self, source: Source, path: str) -> Shape:
        steps: list[Step] = []
        marks: list[tuple[str, list[PatternNode]]] = []
        for part in _MARKED.finditer(path):
            steps.append(_step(part[1]))
            marks.append(self._marks(part[2]) if part[2] else ("", []))
        output, below = marks[-1][0] or self._variable(), marks[-1][1]
        pattern = PatternNode(steps[-1], (output,), tuple(below))
        for step, (name, children) in zip(steps[-2::-1], marks[-2::-1], strict=True):
            pattern = PatternNode(step, (name,) if name else (), (*children, pattern))
        block = Block(source, pattern)
        return Shape((block,), tuple(self.conditions), (VariableOutput(output),), tuple(self.slots))

    def _marks(self, predicates: str) -> tuple[str, list[PatternNode]]:
        """The variable of a step if its predicates compare it, and the pattern nodes that they require below it."""
        own, children = "", list[PatternNode]()
        for inner, op, literal in _PREDICATES.findall(predicates):
            if inner == ".":
                compared = own = own or self._variable()
            else:
                steps = [_step(one) for one in _STEPS.findall(f"/{inner}")]
                compared = self._variable() if op else ""
                below = PatternNode(steps[-1], (compared,) if op else ())
                for one in reversed(steps[:-1]):
                    below = PatternNode(one, (), (below,))
                children.append(below)
            if op:
                slot = Slot(len(self.slots), "string" if literal == "''" else "number")
                self.slots.append(slot)
                self.conditions.append(Comparison(compared, _operator(op), slot))
        return own, children

    def _variable(self) -> str:
        self.variables += 1
        return f"_{self.variables}"


def _operator(text: str) -> Operator:
    return text  # type: ignore[return-value]


@lru_cache(maxsize=100_000)
def _step(text: str) -> Step:
    name = text.lstrip("/")
    return Step(name.removeprefix("@"), AXES[text.startswith("//"), name[0] == "@"])

"""What patterns show, in columns: bindings and outputs of many results, each part made once for all results it is in.

In: a shape, the documents and the nodes of each side of some results. Out: a column of bindings and one of outputs. A
variable is bound on one side, and so is most of an output: both are made once for each document and its nodes, and put
together by Arrow. A pair of documents costs no Python of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fishweir.algebra.alternatives import ABSENT, output_places, steps_of
from fishweir.algebra.construct import attribute_text, construct, value_of
from fishweir.algebra.joins import to_join
from fishweir.algebra.nodes import ElementOutput, Output, Shape, Step, VariableOutput
from fishweir.algebra.return_paths import Bound
from fishweir.algebra.returns import ForOutput, PathOutput, ReturnOutput
from fishweir.evaluate.arrays import Ints
from fishweir.pipeline.outputs import bind, is_bound_when_read
from fishweir.pipeline.rebinding import nodes_of_all
from fishweir.pipeline.taken import TakenDocument

BOUND = pa.struct([("document", pa.string()), ("node", pa.string()), ("value", pa.string())])
BINDINGS = pa.map_(pa.string(), BOUND)


@dataclass(frozen=True)
class Side:
    """The documents of one side: the distinct ones, and which of them each result has."""

    documents: Sequence[TakenDocument]
    of: Ints


@dataclass(frozen=True)
class _Variable:
    name: str
    side: int
    step: Step
    place: int
    """Where its node is among those of a result."""


class _BoundSide:
    """The distinct bindings of one side: a document with its nodes, and what each variable is bound to there."""

    def __init__(self, side: Side, variables: Sequence[_Variable], nodes: Ints) -> None:
        keys = np.column_stack([side.of, nodes[:, [variable.place for variable in variables]]])
        distinct, of = np.unique(keys, axis=0, return_inverse=True)
        self.of, self.variables = of.reshape(-1), variables
        self.documents = [side.documents[place] for place in distinct[:, 0].tolist()]
        self.bound: list[dict[str, Bound]] = []
        self.shown: list[dict[str, str]] = []
        for document, places in zip(self.documents, distinct[:, 1:].tolist(), strict=True):
            found = {
                variable.name: bind(document, variable.step, node)
                for variable, node in zip(variables, places, strict=True)
                if node != ABSENT
            }
            self.bound.append({name: one for name, (one, _) in found.items()})
            self.shown.append({name: str(shown) for name, (_, shown) in found.items()})

    def structs(self, name: str) -> pa.StructArray:
        """What a variable is bound to; null where it is not bound."""
        found = [
            {"document": document.id, "node": shown[name], "value": value_of(bound[name])} if name in bound else None
            for document, bound, shown in zip(self.documents, self.bound, self.shown, strict=True)
        ]
        return pa.array(found, BOUND)


class BoundColumns:
    """Some results of one shape."""

    def __init__(self, shape: Shape, sides: Sequence[Side], nodes: Ints) -> None:
        self.shape, self.size = shape, len(nodes)
        self.variables = _variables(shape)
        self.side_of = {variable.name: variable.side for variable in self.variables}
        self.sides = [
            _BoundSide(side, [v for v in self.variables if v.side == number], nodes)
            for number, side in enumerate(sides)
        ]

    def bindings(self) -> pa.MapArray:
        """Of each result, its variables in order with what they are bound to."""
        named = [variable for variable in self.variables if variable.name[0] != "_"]
        if not named:
            return no_bindings(self.size)
        parts = [self.sides[variable.side].structs(variable.name) for variable in named]
        bases = np.cumsum([0, *map(len, parts[:-1])])
        places = np.column_stack([self.sides[v.side].of + base for v, base in zip(named, bases.tolist(), strict=True)])
        values = pa.concat_arrays(parts)
        there = values.is_valid().to_numpy(zero_copy_only=False)[places]
        offsets = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
        keys = pa.array([variable.name for variable in named], pa.string())
        which = np.broadcast_to(np.arange(len(named)), places.shape)[there]
        return pa.MapArray.from_arrays(
            pa.array(offsets, pa.int32()), keys.take(pa.array(which)), values.take(pa.array(places[there]))
        )

    def outputs(self) -> pa.StringArray | None:
        """The text of each result; None where a part goes over several sides at once."""
        return self._joined(self.shape.output)

    def _joined(self, parts: Sequence[Output]) -> pa.StringArray | None:
        texts = [self._text(part) for part in parts]
        if any(text is None for text in texts):
            return None
        return pc.binary_join_element_wise(*texts, "") if texts else self._repeated("")

    def _text(self, part: Output) -> pa.StringArray | None:
        sides = {self.side_of[name] for name in used((part,)) if name in self.side_of}
        if len(sides) <= 1:
            return self._of_side(next(iter(sides), None), lambda bound: construct((part,), bound))
        match part:
            case ElementOutput(tag, attributes, children):
                shown = [self._attribute(key, value) for key, value in attributes]
                inner = self._joined(children)
                if inner is None:
                    return None
                begin = pc.binary_join_element_wise(f"<{tag}", *shown, self._repeated(""), "")
                whole = pc.binary_join_element_wise(begin, ">", inner, f"</{tag}>", "")
                return pc.if_else(pc.equal(inner, ""), pc.binary_join_element_wise(begin, "/>", ""), whole)
            case ReturnOutput(_, parts):
                return self._joined(parts)
            case _:
                return None

    def _attribute(self, key: str, value: Any) -> pa.StringArray:
        side = next((self.side_of[name] for name in used((value,)) if name in self.side_of), None)
        return self._of_side(side, lambda bound: attribute_text(key, value, bound))

    def _of_side(self, side: int | None, text: Any) -> pa.StringArray:
        """A text that depends on what is bound on one side, or on nothing."""
        if side is None:
            return self._repeated(text({}))
        one = self.sides[side]
        return pa.array([text(bound) for bound in one.bound], pa.string()).take(pa.array(one.of))

    def _repeated(self, text: str) -> pa.StringArray:
        return pa.repeat(pa.scalar(text, pa.string()), self.size)


def has_columns(shape: Any) -> bool:
    """Whether results of a shape are nodes of patterns that rows name, or that documents bind just once."""
    return isinstance(shape, Shape) and shape.formula is None and not is_bound_when_read(shape)


def widths(shape: Shape) -> list[int]:
    """How many nodes a result has of each side."""
    if shape.windows:
        return [len(template.outputs) for template in to_join(shape).template.sides]
    return [max(output_places(shape).values(), default=-1) + 1]


def bound_once(shape: Shape, sides: Sequence[Side]) -> Ints:
    """The nodes of results of a join whose documents bind each of them just once."""
    templates = to_join(shape).template.sides
    found = [nodes_of_all(template, side.documents)[side.of] for template, side in zip(templates, sides, strict=True)]
    return np.concatenate(found, axis=1)


def _variables(shape: Shape) -> list[_Variable]:
    steps = steps_of(shape)
    if not shape.windows:
        return [_Variable(name, *steps[name], place) for name, place in output_places(shape).items()]
    normal = to_join(shape)
    over = [(side, node) for side, template in enumerate(normal.template.sides) for node in template.outputs]
    places = {key: place for place, key in enumerate(over)}
    return [
        _Variable(name, *steps[name], places[side, node])
        for name, side, node in normal.variables
        if (side, node) in places and name in steps
    ]


def used(parts: Sequence[Output]) -> Iterator[str]:
    """The variables that outputs look at."""
    for part in parts:
        match part:
            case VariableOutput(name) | PathOutput(name):
                yield name
            case ElementOutput(_, attributes, children):
                yield from used([value for _, value in attributes])
                yield from used(children)
            case ForOutput(variable, over, conditions, inner):
                yield over.variable
                looked_at = [*used(inner), *(condition.at.variable for condition in conditions)]
                yield from (name for name in looked_at if name != variable)
            case ReturnOutput(_, inner):
                yield from used(inner)


def no_bindings(size: int) -> pa.MapArray:
    return pa.MapArray.from_arrays(
        pa.array(np.zeros(size + 1), pa.int32()), pa.array([], pa.string()), pa.array([], BOUND)
    )


def bindings_of(made: Sequence[Mapping[str, Mapping[str, Any]]]) -> pa.MapArray:
    """Bindings that were made one by one."""
    return pa.array(
        [[(n, {**bound, "node": str(bound["node"])}) for n, bound in one.items()] for one in made], BINDINGS
    )

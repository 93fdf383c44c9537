"""Bindings and outputs of patterns in columns, for many results. Each part is constructed once for all its results.

In: a shape, the documents and the nodes of each side of some results. Out: a column of bindings and a column of
outputs. A variable is bound on one side, and most of an output depends on one side. Both are constructed once per
document and nodes, and joined by one kernel (text_pieces.py). A pair of documents takes no Python code of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import numpy as np
import pyarrow as pa

from fishweir.algebra.alternatives import ABSENT, output_places, steps_of
from fishweir.algebra.construct import NOT_AS_IT_IS, attribute_text, construct
from fishweir.algebra.documents import ATTRIBUTE
from fishweir.algebra.joins import to_join
from fishweir.algebra.nodes import ElementOutput, Output, Shape, Step, TextOutput, VariableOutput
from fishweir.algebra.return_paths import Bound
from fishweir.algebra.returns import ForOutput, PathOutput, ReturnOutput
from fishweir.evaluate.arrays import Ints, codes_of, distinct, firsts_of
from fishweir.evaluate.witnesses.automaton import subtree_kernels as kernels
from fishweir.pipeline.document_columns import DocumentColumns, NodeTexts
from fishweir.pipeline.outputs import is_bound_when_read
from fishweir.pipeline.rebinding import nodes_of_all
from fishweir.pipeline.source_documents import bind
from fishweir.pipeline.text_pieces import Piece, Texts, are_empty, either, has_any, interleaved, joined, of_rows
from fishweir.pipeline.written_rows import Shown, written_rows
from fishweir.records import dataclass

BOUND = pa.struct([("document", pa.string()), ("node", pa.string()), ("value", pa.string())])
MARKS = np.arange(256) < 32
MARKS[[ord(mark) for mark in '&<>"']] = True
"""The bytes that markup writes differently."""
Text = tuple[str, int]
"""A text that is read of the nodes of a variable: the variable and what to show (subtree_kernels.py)."""
BINDINGS = pa.map_(pa.string(), BOUND)


@dataclass(frozen=True)
class _Variable:
    name: str
    side: int
    step: Step
    place: int
    """The position of the variable's node among the nodes of a result."""


class _BoundSide:
    """The distinct bindings of one side: documents with their nodes."""

    def __init__(self, documents: DocumentColumns, of: Ints, variables: Sequence[_Variable], nodes: Ints) -> None:
        keys = np.column_stack([of, nodes[:, [variable.place for variable in variables]]])
        once, self.of = distinct_rows(keys)
        self.columns, self.documents = documents, once[:, 0]
        self.variables = {variable.name: variable for variable in variables}
        self.nodes = {variable.name: once[:, 1 + place] for place, variable in enumerate(variables)}

    def __len__(self) -> int:
        return len(self.documents)

    def places(self, name: str) -> Ints:
        """For each result, the position of its binding among those where a variable is bound, or -1."""
        there = self.nodes[name] != ABSENT
        return self.of if there.all() else np.where(there, np.cumsum(there) - 1, -1)[self.of]

    def written(self, output: tuple[Output, ...]) -> Shown | None:
        """The texts of all results, if each has a binding of its own where all variables are bound."""
        if not (self.of == np.arange(len(self))).all() or any((nodes == ABSENT).any() for nodes in self.nodes.values()):
            return None
        variables = {name: (self.variables[name].step, nodes) for name, nodes in self.nodes.items()}
        return written_rows(self.columns, self.documents, variables, output)

    def origins(self, name: str) -> list[Texts]:
        """The document and the node of a variable's binding, for each result."""
        there = self.nodes[name] != ABSENT
        documents, places = self.documents[there], self.places(name)
        ids = Texts(self.columns.ids, documents).at(places)
        return [ids, self._node_ids(name, documents, self.nodes[name][there]).at(places)]

    def values(self, name: str) -> Texts:
        """The value of a variable's binding, for each result."""
        return Texts(self._texts[self.value(name)], self.places(name))

    def _node_ids(self, name: str, documents: Ints, nodes: Ints) -> Texts:
        step = self.variables[name].step
        if not step.is_attribute or (nodes < ATTRIBUTE).all():
            numbers, of = distinct(nodes % ATTRIBUTE)
            shown = (f"{n}@{step.name}" if step.is_attribute else str(n) for n in numbers.tolist())
            return Texts(pa.array(shown, pa.string()), of)
        pairs = zip(self.columns.taken(documents.tolist()), nodes.tolist(), strict=True)
        return of_rows(pa.array([str(bind(one, step, n)[1]) for one, n in pairs], pa.string()))

    def value(self, name: str) -> Text:
        return name, kernels.ATTRIBUTE if self.variables[name].step.is_attribute else kernels.VALUE

    def copy(self, name: str, content: bool) -> Text:
        if self.variables[name].step.is_attribute:
            return self.value(name)
        return name, kernels.CONTENT if content else kernels.MARKUP

    def read(self, texts: Iterable[Text]) -> None:
        """Reads all texts that bindings and outputs show of the nodes, where variables are bound."""
        wanted, asked = list(dict.fromkeys(texts)), []
        for name, what in wanted:
            there = self.nodes[name] != ABSENT
            asked.append(NodeTexts(self.documents[there], self.nodes[name][there], what, self.variables[name].step))
        self._texts = dict(zip(wanted, self.columns.texts(asked), strict=True))

    def pieces(self, part: Output) -> list[Piece]:
        """The text of a part of the output, which depends on no other side."""
        return [Texts(pa.array([construct((part,), bound) for bound in self._bound], pa.string()), self.of)]

    def copied(self, name: str, content: bool) -> list[Piece]:
        """Copies of a variable's node; empty where it is unbound."""
        if name not in self.nodes:
            return []
        texts = self._texts[self.copy(name, content)]
        if self.variables[name].step.is_attribute and has_any(texts, MARKS):
            texts = pa.array([escape(text, NOT_AS_IT_IS) for text in texts.to_pylist()], pa.string())
        return [Texts(texts, self.places(name))]

    def attribute(self, key: str, value: Any) -> list[Piece]:
        """An attribute of a literal tag; empty where its variable is unbound."""
        if not isinstance(value, VariableOutput):
            return [Texts(pa.array([attribute_text(key, value, bound) for bound in self._bound], pa.string()), self.of)]
        if value.name not in self.nodes:
            return []
        texts, places = self._texts[self.value(value.name)], self.places(value.name)
        if has_any(texts, MARKS):
            return [Texts(pa.array([f" {key}={quoteattr(text)}" for text in texts.to_pylist()], pa.string()), places)]
        return [either(f' {key}="', "", places < 0), Texts(texts, places), either('"', "", places < 0)]

    @cached_property
    def _bound(self) -> list[dict[str, Bound]]:
        """The nodes themselves, for outputs that look below them."""
        bound: list[dict[str, Bound]] = [{} for _ in range(len(self))]
        documents = self.columns.taken(self.documents.tolist()) if self.variables else []
        for name, variable in self.variables.items():
            for one, document, node in zip(bound, documents, self.nodes[name].tolist(), strict=True):
                if node != ABSENT:
                    one[name], _ = bind(document, variable.step, node)
        return bound


class BoundColumns:
    """Some results of one shape: the document of each side, and the nodes of all sides."""

    def __init__(self, shape: Shape, documents: DocumentColumns, sides: Sequence[Ints], nodes: Ints) -> None:
        self.shape, self.size = shape, len(nodes)
        self.variables = _variables(shape)
        self.side_of = {variable.name: variable.side for variable in self.variables}
        self.sides = [
            _BoundSide(documents, of, [v for v in self.variables if v.side == number], nodes)
            for number, of in enumerate(sides)
        ]
        self._written = self.sides[0].written(shape.output) if len(self.sides) == 1 else None
        for side in self.sides if self._written is None else ():
            named = (side.value(name) for name in side.variables if name[0] != "_")
            side.read([*named, *_shown_texts(side, shape.output)])

    def bindings(self) -> pa.MapArray:
        """For each result, its variables in order with their bindings."""
        named = [variable for variable in self.variables if variable.name[0] != "_"]
        if not named:
            return no_bindings(self.size)
        parts = [self.sides[variable.side].origins(variable.name) for variable in named]
        there = np.column_stack([ids.places >= 0 for ids, _ in parts])
        fields = [interleaved(field, there) for field in zip(*parts, strict=True)]
        if self._written is not None:
            fields.append(self._written[1])
        else:
            fields.append(interleaved([self.sides[one.side].values(one.name) for one in named], there))
        keys = pa.array([variable.name for variable in named], pa.string())
        offsets = np.append(0, np.cumsum(there.sum(axis=1)))
        which = np.broadcast_to(np.arange(len(named)), there.shape)[there]
        return pa.MapArray.from_arrays(
            pa.array(offsets, pa.int32()),
            keys.take(pa.array(which)),
            pa.StructArray.from_arrays(fields, fields=[*BOUND]),
        )

    def outputs(self) -> pa.StringArray | None:
        """The text of each result; None if a part depends on several sides at once."""
        if self._written is not None:
            return self._written[0]
        pieces = self._all_pieces(self.shape.output)
        return None if pieces is None else joined(pieces, self.size)

    def _all_pieces(self, parts: Sequence[Output]) -> list[Piece] | None:
        found = [self._pieces(part) for part in parts]
        return [piece for some in found for piece in some or ()] if None not in found else None

    def _pieces(self, part: Output) -> list[Piece] | None:
        match part:
            case TextOutput():
                return [construct((part,), {})]
            case VariableOutput(name, content):
                return self._side(part).copied(name, content)
            case ElementOutput(tag, attributes, children):
                shown = [self._side(value).attribute(key, value) for key, value in attributes]
                inner = self._all_pieces(children)
                return None if inner is None else element_pieces(tag, shown, inner, self.size)
            case ReturnOutput(_, parts):
                return self._all_pieces(parts)
            case _:
                return self._side(part).pieces(part) if len(self._looked_at(part)) <= 1 else None

    def _side(self, part: Any) -> _BoundSide:
        """The side that a part of the output depends on, or any if there is none."""
        return self.sides[next(iter(self._looked_at(part)), 0)]

    def _looked_at(self, part: Output) -> set[int]:
        """The sides that a part of the output depends on."""
        return {self.side_of[name] for name in used((part,)) if name in self.side_of}


def _shown_texts(side: _BoundSide, parts: Sequence[Output]) -> Iterator[Text]:
    """The texts of a side's nodes that outputs copy."""
    for part in parts:
        match part:
            case VariableOutput(name, content) if name in side.variables:
                yield side.copy(name, content)
            case ElementOutput(_, attributes, children):
                values = (value.name for _, value in attributes if isinstance(value, VariableOutput))
                yield from (side.value(name) for name in values if name in side.variables)
                yield from _shown_texts(side, children)
            case ReturnOutput(_, inner):
                yield from _shown_texts(side, inner)


def element_pieces(tag: str, attributes: Sequence[list[Piece]], inner: list[Piece], size: int) -> list[Piece]:
    """Literal tags around their content."""
    empty = are_empty(inner, size)
    begin, end = either(">", "/>", empty), either(f"</{tag}>", "", empty)
    return [f"<{tag}", *(piece for attribute in attributes for piece in attribute), begin, *inner, end]


def distinct_rows(rows: Ints) -> tuple[Ints, Ints]:
    """The distinct rows in ascending order, and the index of each row among them."""
    codes, of = distinct(codes_of(*rows.T))
    if len(codes) == len(rows) and (of == np.arange(len(of))).all():
        return rows, of
    return rows[firsts_of(of, len(codes))], of


def has_columns(shape: Any) -> bool:
    """Whether results of a shape consist of pattern nodes that rows name, or that documents bind exactly once."""
    return isinstance(shape, Shape) and shape.formula is None and not is_bound_when_read(shape)


def widths(shape: Shape) -> list[int]:
    """The number of nodes per side of a result."""
    if shape.windows:
        return [len(template.outputs) for template in to_join(shape).template.sides]
    return [max(output_places(shape).values(), default=-1) + 1]


def bound_once(shape: Shape, documents: DocumentColumns, sides: Sequence[Ints]) -> Ints:
    """The nodes of results of a join whose documents bind each node exactly once."""
    found = []
    for template, side in zip(to_join(shape).template.sides, sides, strict=True):
        once, of = distinct(side)
        found.append(nodes_of_all(template, documents, once)[of])
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
    """The variables that outputs use."""
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
    """A column of bindings that were constructed one by one."""
    return pa.array(
        [[(n, {**bound, "node": str(bound["node"])}) for n, bound in one.items()] for one in made], BINDINGS
    )

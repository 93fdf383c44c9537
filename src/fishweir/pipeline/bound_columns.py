"""Bindings and outputs of patterns in columns, for many results. Each part is constructed once for all its results.

In: a shape, the documents and the nodes of each side of some results. Out: a column of bindings and a column of
outputs. A variable is bound on one side, and most of an output depends on one side. Both are constructed once per
document and nodes, and combined by Arrow. A pair of documents takes no Python code of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fishweir.algebra.alternatives import ABSENT, output_places, steps_of
from fishweir.algebra.construct import NOT_AS_IT_IS, attribute_text, construct
from fishweir.algebra.documents import ATTRIBUTE
from fishweir.algebra.joins import to_join
from fishweir.algebra.nodes import ElementOutput, Output, Shape, Step, TextOutput, VariableOutput
from fishweir.algebra.return_paths import Bound
from fishweir.algebra.returns import ForOutput, PathOutput, ReturnOutput
from fishweir.evaluate.arrays import Ints, codes_of, distinct
from fishweir.evaluate.witnesses.automaton import subtree_kernels as kernels
from fishweir.pipeline.document_columns import DocumentColumns, NodeTexts, taken_at
from fishweir.pipeline.outputs import is_bound_when_read
from fishweir.pipeline.rebinding import nodes_of_all
from fishweir.pipeline.source_documents import bind
from fishweir.records import dataclass

BOUND = pa.struct([("document", pa.string()), ("node", pa.string()), ("value", pa.string())])
_MARKS = '[&<>"\\x00-\\x1f]'
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

    def structs(self, name: str) -> pa.StructArray:
        """The bindings of a variable; null where it is unbound."""
        there = np.flatnonzero(self.nodes[name] != ABSENT)
        ids = taken_at(self.columns.ids, self.documents[there])
        found = pa.StructArray.from_arrays(
            [ids, self._shown(name, there), self._texts[self.value(name)]], fields=[*BOUND]
        )
        return found if len(there) == len(self) else self._spread(found, there)

    def _shown(self, name: str, there: Ints) -> pa.StringArray:
        """The ids of nodes."""
        step, nodes = self.variables[name].step, self.nodes[name][there]
        numbers = pc.cast(pa.array(nodes % ATTRIBUTE), pa.string())
        if not step.is_attribute:
            return numbers
        if (nodes < ATTRIBUTE).all():
            return pc.binary_join_element_wise(numbers, f"@{step.name}", "")
        documents = self.columns.taken(self.documents[there].tolist())
        return pa.array([str(bind(one, step, n)[1]) for one, n in zip(documents, nodes.tolist(), strict=True)])

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

    def _spread(self, found: pa.Array, there: Ints) -> pa.Array:
        """Spreads values of some bindings over all bindings, with null for the others."""
        at = np.zeros(len(self), np.int64)
        at[there] = np.arange(len(there))
        missing = np.ones(len(self), np.bool_)
        missing[there] = False
        return found.take(pa.array(at, mask=missing))

    def texts(self, part: Output) -> pa.StringArray:
        """The text of a part of the output for each binding."""
        match part:
            case TextOutput():
                return pa.repeat(pa.scalar(construct((part,), {}), pa.string()), len(self))
            case VariableOutput(name, content):
                return self._of_variable(name, lambda: self._copied(name, content))
            case ElementOutput(tag, attributes, children):
                shown = [self.attribute(key, value) for key, value in attributes]
                return element_texts(tag, shown, self.joined(children))
            case ReturnOutput(_, parts):
                return self.joined(parts)
            case _:
                return pa.array([construct((part,), bound) for bound in self._bound], pa.string())

    def joined(self, parts: Sequence[Output]) -> pa.StringArray:
        return joined_texts([self.texts(part) for part in parts], len(self))

    def attribute(self, key: str, value: Any) -> pa.StringArray:
        """An attribute of a literal tag; empty where its variable is unbound."""
        if not isinstance(value, VariableOutput):
            return pa.array([attribute_text(key, value, bound) for bound in self._bound], pa.string())

        def quoted() -> pa.StringArray:
            values = self._texts[self.value(value.name)]
            if _has_marks(values):
                return pa.array([f" {key}={quoteattr(text)}" for text in values.to_pylist()], pa.string())
            return pc.binary_join_element_wise(f' {key}="', values, '"', "")

        return self._of_variable(value.name, quoted)

    def _of_variable(self, name: str, made: Callable[[], pa.StringArray]) -> pa.StringArray:
        """The texts where a variable is bound, empty texts elsewhere."""
        there = np.flatnonzero(self.nodes[name] != ABSENT) if name in self.nodes else np.empty(0, np.int64)
        found = made() if len(there) else pa.array([], pa.string())
        return found if len(there) == len(self) else self._spread(found, there).fill_null("")

    def _copied(self, name: str, content: bool) -> pa.StringArray:
        texts = self._texts[self.copy(name, content)]
        if not self.variables[name].step.is_attribute or not _has_marks(texts):
            return texts
        return pa.array([escape(text, NOT_AS_IT_IS) for text in texts.to_pylist()], pa.string())

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

        for side in self.sides:
            named = (side.value(name) for name in side.variables if name[0] != "_")
            side.read([*named, *_shown_texts(side, shape.output)])

    def bindings(self) -> pa.MapArray:
        """For each result, its variables in order with their bindings."""
        named = [variable for variable in self.variables if variable.name[0] != "_"]
        if not named:
            return no_bindings(self.size)
        parts = [self.sides[variable.side].structs(variable.name) for variable in named]
        bases = np.cumsum([0, *map(len, parts[:-1])])
        places = np.column_stack([self.sides[v.side].of + base for v, base in zip(named, bases.tolist(), strict=True)])
        values = parts[0] if len(parts) == 1 else pa.concat_arrays(parts)
        there = values.is_valid().to_numpy(zero_copy_only=False)[places]
        offsets = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
        keys = pa.array([variable.name for variable in named], pa.string())
        which = np.broadcast_to(np.arange(len(named)), places.shape)[there]
        return pa.MapArray.from_arrays(
            pa.array(offsets, pa.int32()), keys.take(pa.array(which)), taken_at(values, places[there])
        )

    def outputs(self) -> pa.StringArray | None:
        """The text of each result; None if a part depends on several sides at once."""
        return self._joined(self.shape.output)

    def _joined(self, parts: Sequence[Output]) -> pa.StringArray | None:
        texts = [self._text(part) for part in parts]
        return None if any(text is None for text in texts) else joined_texts(texts, self.size)

    def _text(self, part: Output) -> pa.StringArray | None:
        sides = self._looked_at(part)
        if len(sides) <= 1:
            side = self.sides[next(iter(sides), 0)]
            return taken_at(side.texts(part), side.of)
        match part:
            case ElementOutput(tag, attributes, children):
                shown = [self._attribute(key, value) for key, value in attributes]
                inner = self._joined(children)
                return None if inner is None else element_texts(tag, shown, inner)
            case ReturnOutput(_, parts):
                return self._joined(parts)
            case _:
                return None

    def _attribute(self, key: str, value: Any) -> pa.StringArray:
        side = self.sides[next(iter(self._looked_at(value)), 0)]
        return taken_at(side.attribute(key, value), side.of)

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


def _has_marks(texts: pa.StringArray) -> bool:
    """Whether texts contain characters that markup writes differently."""
    return bool(pc.any(pc.match_substring_regex(texts, _MARKS)).as_py())


def joined_texts(texts: Sequence[pa.StringArray], size: int) -> pa.StringArray:
    if len(texts) == 1:
        return texts[0]
    return pc.binary_join_element_wise(*texts, "") if texts else pa.repeat(pa.scalar("", pa.string()), size)


def element_texts(tag: str, attributes: Sequence[pa.StringArray], inner: pa.StringArray) -> pa.StringArray:
    """Literal tags around their content."""
    begin: Any = pc.binary_join_element_wise(f"<{tag}", *attributes, "") if attributes else f"<{tag}"
    whole = pc.binary_join_element_wise(begin, ">", inner, f"</{tag}>", "")
    is_empty = pc.equal(inner, "")
    if not pc.any(is_empty).as_py():
        return whole
    alone = pc.binary_join_element_wise(begin, "/>", "") if attributes else f"<{tag}/>"
    return pc.if_else(is_empty, alone, whole)


def distinct_rows(rows: Ints) -> tuple[Ints, Ints]:
    """The distinct rows in ascending order, and the index of each row among them."""
    codes, of = distinct(codes_of(*rows.T))
    if len(codes) == len(rows) and (of == np.arange(len(of))).all():
        return rows, of
    firsts = np.empty(len(codes), np.int64)
    firsts[of[::-1]] = np.arange(len(of))[::-1]
    return rows[firsts], of


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

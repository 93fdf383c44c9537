"""Bindings and outputs of results, constructed from the documents on demand.

In: a query's shape, a result and its documents. Out: bindings by variable, and the output. A kind of query with its own
shape registers a function that constructs its results (`constructed.register`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from functools import partial, singledispatch
from typing import Any

from lxml import etree

from fishweir.algebra.alternatives import ABSENT, output_places, steps_of
from fishweir.algebra.clauses import to_normals
from fishweir.algebra.construct import construct, element_text, joined_columns, select_columns, value_of
from fishweir.algebra.feeds import WHOLE, Selection
from fishweir.algebra.joins import to_join
from fishweir.algebra.nodes import Constant, Output, Shape, Step
from fishweir.algebra.return_paths import Bound
from fishweir.pipeline.pruned import Prunings
from fishweir.pipeline.rebinding import join_bindings, nodes_of
from fishweir.pipeline.source_documents import SourceDocument, bind
from fishweir.records import dataclass
from fishweir.shedding.reduced import Cut

Bindings = dict[str, Mapping[str, Any]]
Constructed = tuple[Bindings, str | dict[str, Any]]


@dataclass(frozen=True)
class ResultDocuments:
    """One result of a row: a document for each side, the output nodes if known, and the collected documents as pairs of
    join and document.
    """

    documents: Sequence[SourceDocument]
    nodes: Sequence[int] | None
    collected: Sequence[tuple[int, SourceDocument]] = ()
    cut: Cut | None = None
    """What is left of the output if patterns were omitted under overload."""
    prunings: Prunings | None = None
    """Set if nothing else of the documents is shown: they are read only as far as the output needs."""
    several: Sequence[int] = ()
    """The nodes of all results of the document, if there are several."""


@singledispatch
def constructed(shape: Any, constants: Sequence[Constant], found: ResultDocuments) -> list[Constructed]:
    """The bindings and the output of each result of some documents."""
    raise TypeError(f"no output is registered for {type(shape).__name__}")


@constructed.register
def _of_shape(shape: Shape, constants: Sequence[Constant], found: ResultDocuments) -> list[Constructed]:
    if shape.formula is not None:
        return [({}, joined_columns(shape.columns, [(one.nodes[0], one.values) for one in found.documents]))]
    output = shape.output if found.cut is None else found.cut.parts
    return [_bound(shape, output, found, places) for places in _places(shape, constants, found)]


def _bound(shape: Shape, output: tuple[Output, ...], found: ResultDocuments, places: Mapping[str, int]) -> Constructed:
    """The output for the nodes that variables are bound to."""
    bound: dict[str, Bound] = {}
    bindings: Bindings = {}
    steps, documents = steps_of(shape), found.documents
    pruned = None
    if found.prunings is not None:
        pruned = found.prunings.document(shape, output, documents[0], places, found.several)
    for name, position in places.items():
        side, step = steps[name]
        bound[name], shown = bind(pruned or documents[side], step, position)
        if name[0] != "_":
            value = partial(_whole_value, documents[side], step, position) if pruned else value_of(bound[name])
            bindings[name] = Binding(documents[side].id, shown, value)
    return bindings, construct(output, bound)


class Binding(Mapping[str, Any]):
    """The binding of a variable: document, node and value. The value may be computed on demand."""

    __slots__ = ("_document", "_node", "_value")

    def __init__(self, document: str, node: int | str, value: str | Callable[[], str]) -> None:
        self._document, self._node, self._value = document, node, value

    def __getitem__(self, key: str) -> Any:
        match key:
            case "document":
                return self._document
            case "node":
                return self._node
            case "value":
                if callable(self._value):
                    self._value = self._value()
                return self._value
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        return iter(("document", "node", "value"))

    def __len__(self) -> int:
        return 3

    def __repr__(self) -> str:
        return repr(dict(self))

    def __reduce__(self) -> tuple[type[Binding], tuple[str, int | str, str]]:
        return Binding, (self._document, self._node, self["value"])


def _whole_value(document: SourceDocument, step: Step, position: int) -> str:
    return value_of(bind(document, step, position)[0])


def _places(shape: Shape, constants: Sequence[Constant], found: ResultDocuments) -> list[Mapping[str, int]]:
    """For each result, the node of each variable that it shows."""
    if not shape.windows:
        assert found.nodes is not None, "a selection names its nodes"
        nodes = ((name, found.nodes[place]) for name, place in output_places(shape).items())
        return [{name: position for name, position in nodes if position != ABSENT}]
    if shape.alternatives:
        return join_bindings(shape, constants, found.documents)
    normal = to_join(shape)
    over = [(side, node) for side, template in enumerate(normal.template.sides) for node in template.outputs]
    positions = found.nodes if found.nodes is not None else nodes_of(normal.template.sides, found.documents)
    of = dict(zip(over, positions, strict=True))
    own = steps_of(shape)  # nodes without a variable have one only in the normal form
    shown = ((name, of[side, node]) for name, side, node in normal.variables if (side, node) in of and name in own)
    return [{name: position for name, position in shown if position != ABSENT}]


@constructed.register
def _of_selection(shape: Selection, constants: Sequence[Constant], found: ResultDocuments) -> list[Constructed]:
    (item,) = found.documents
    if shape.joins:
        return [_annotated(shape, item, found.collected)]
    if shape.output:
        columns = select_columns(shape.output, item.nodes[0], item.values)
        if found.cut is not None:
            columns = {name: value for name, value in columns.items() if name in found.cut.columns}
        return [({}, columns)]
    return [({}, element_text(item.nodes[0]))]


def _annotated(
    shape: Selection, item: SourceDocument, collected: Sequence[tuple[int, SourceDocument]]
) -> tuple[Bindings, str]:
    """A copy of the item with an `annotation` element for each join. The items of the annotation are bound as `window`,
    `window.2` and so on, those of the query's second join as `join2.window`.
    """
    root = deepcopy(item.nodes[0])
    bindings: Bindings = {}
    entries: dict[int, etree._Element] = {}
    counted: dict[int, int] = {}
    for join, other in collected:
        if join not in entries:
            entries[join] = etree.SubElement(root, "annotation")
            if shape.joins[join].variable != WHOLE:
                entries[join].set("join", f"${shape.joins[join].variable}")
        copied = deepcopy(other.nodes[0])
        copied.tail = None
        entries[join].append(copied)
        counted[join] = counted.get(join, 0) + 1
        name = ("window" if not join else f"join{join + 1}.window") + (f".{counted[join]}" if counted[join] > 1 else "")
        bindings[name] = {"document": other.id, "node": 0, "value": value_of((other.nodes[0], None))}
    return bindings, element_text(root)


def several(shape: Any) -> bool:
    """Whether several alternatives of a query may yield the same result."""
    return len(to_normals(shape)) > 1


def is_bound_when_read(shape: Any) -> bool:
    """Whether rows do not record the alternative of a join, so that the documents are bound when a row is read."""
    return isinstance(shape, Shape) and bool(shape.windows) and bool(shape.alternatives)

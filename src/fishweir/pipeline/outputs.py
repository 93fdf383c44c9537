"""What a result shows: bindings and output, made from the documents when somebody takes it.

In: a query's shape, a result and its documents. Out: bindings by variable, and the output. A kind of query with a shape
of its own registers how its results are made (`constructed.register`).
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache, singledispatch
from typing import Any

from lxml import etree

from fishweir.algebra.clauses import to_normals
from fishweir.algebra.construct import Bound, construct, element_text, joined_columns, select_columns, value_of
from fishweir.algebra.feeds import WHOLE, Selection
from fishweir.algebra.nodes import Shape
from fishweir.algebra.normal import Template
from fishweir.evaluate.witnesses.shared_paths import SharedPaths
from fishweir.pipeline.taken import TakenDocument

Bindings = dict[str, dict[str, Any]]
Constructed = tuple[Bindings, str | dict[str, Any]]


@dataclass(frozen=True)
class Found:
    """One result of a row: a document for each side, the output nodes if they are known, and what was collected, as
    join and document."""

    documents: Sequence[TakenDocument]
    nodes: Sequence[int] | None
    collected: Sequence[tuple[int, TakenDocument]] = ()


@singledispatch
def constructed(shape: Any, found: Found) -> Constructed:
    """The bindings and the output of one result."""
    raise TypeError(f"no output is registered for {type(shape).__name__}")


@constructed.register
def _of_shape(shape: Shape, found: Found) -> Constructed:
    if shape.formula is not None:
        return {}, joined_columns(shape.columns, [(one.nodes[0], one.values) for one in found.documents])
    normal: Any = to_normals(shape)[0]
    sides: tuple[Template, ...] = normal.template.sides
    over = [(side, node) for side, template in enumerate(sides) for node in template.outputs]
    nodes = found.nodes if found.nodes is not None else _nodes_of(sides, found.documents)
    positions = dict(zip(over, nodes, strict=True))
    bound: dict[str, Bound] = {}
    bindings: Bindings = {}
    for name, side, node in normal.places:
        if (side, node) not in positions or (len(sides) == 1 and name not in shape.output_variables):
            continue
        step, position = sides[side].nodes[node].step, positions[side, node]
        attribute = f"{{{step.namespace}}}{step.name}" if step.namespace else step.name
        bound[name] = (found.documents[side].nodes[position], attribute if step.is_attribute else None)
        if name[0] != "_":
            shown = f"{position}@{step.name}" if step.is_attribute else position
            bindings[name] = {"document": found.documents[side].id, "node": shown, "value": value_of(bound[name])}
    return bindings, construct(shape.output, bound)


@constructed.register
def _of_selection(shape: Selection, found: Found) -> Constructed:
    (item,) = found.documents
    if shape.joins:
        return _annotated(shape, item, found.collected)
    if shape.output:
        return {}, select_columns(shape.output, item.nodes[0], item.values)
    return {}, element_text(item.nodes[0])


def _annotated(
    shape: Selection, item: TakenDocument, collected: Sequence[tuple[int, TakenDocument]]
) -> tuple[Bindings, str]:
    """A copy of the item with an `annotation` element for each join. The items of the annotation are bound as
    `window`, `window.2` and so on, those of the query's second join as `join2.window`."""
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


def _nodes_of(sides: Sequence[Template], documents: Sequence[TakenDocument]) -> list[int]:
    """The output nodes of documents that bind each of them just once: whatever is at its path."""
    found: list[int] = []
    for template, document in zip(sides, documents, strict=True):
        walk = _paths_of(template).start()
        walk.add(0, document.nodes[0], document.context)
        tables = walk.tables()
        found += [max(int(tables[template.path(node)].nodes[0, -1]), 0) for node in template.outputs]
    return found


@lru_cache(maxsize=1024)
def _paths_of(template: Template) -> SharedPaths:
    shared = SharedPaths()
    shared.hold({"outputs": {template.path(node): False for node in template.outputs}})
    return shared


def several(shape: Any) -> bool:
    """Whether several alternatives of a query may give the same result."""
    return len(to_normals(shape)) > 1

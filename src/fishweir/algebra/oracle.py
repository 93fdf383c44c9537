"""The naive evaluator: tries every embedding of one query in one document. Obviously correct, never fast.

In: a shape, its constants, a document. Out: one binding of the output variables per result, in
document order. Every language, strategy and the Spark job is compared with this.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import product

from lxml import etree

from fishweir.algebra.alternatives import parts
from fishweir.algebra.documents import (
    ATTRIBUTE,
    Document,
    Element,
    attribute_id,
    attributes_named,
    elements,
    local_name,
    string_value,
    values_at,
)
from fishweir.algebra.feeds import Selection
from fishweir.algebra.formula import And, Atom, Formula, Not, Or, Part
from fishweir.algebra.nodes import LAST, Comparison, Constant, PatternNode, Shape, Slot, Source, Step
from fishweir.algebra.operators import constant_place, find_condition
from fishweir.algebra.predicates import constant_at, place_of
from fishweir.algebra.texts import date_part
from fishweir.algebra.values import COMPARE, satisfies, to_number
from fishweir.records import dataclass

Order = tuple[int, int, str]
"""The number of an element; for an attribute, also its position among those with its local name, and that name."""


@dataclass(frozen=True, slots=True)
class Node:
    """An element or attribute of a document; `order` sorts in document order."""

    id: str
    order: Order
    value: str
    element: Element

    @property
    def number(self) -> int:
        """The node number that the evaluator uses."""
        return self.order[0] + self.order[1] * ATTRIBUTE


Binding = Mapping[str, Node]
NOWHERE = (-1, 0, "")
"""The sort position of a variable that is not bound to a node."""


def evaluate(shape: Shape, constants: Sequence[Constant], document: Document) -> list[Binding]:
    """The distinct bindings of the output variables for which all conditions of any alternative hold."""
    variables = shape.output_variables
    found: dict[tuple[Order, ...], Binding] = {}
    for part in parts(shape):
        (block,) = part.blocks
        for binding in embeddings(block.pattern, document, constants):
            if all(holds(condition, binding, constants) for condition in part.conditions):
                result = {name: binding[name] for name in variables if name in binding}
                key = tuple(result[name].order if name in result else NOWHERE for name in variables)
                found.setdefault(key, result)
    return [found[key] for key in sorted(found)]


def selects(selection: Selection, constants: Sequence[Constant], source: Source, document: Document) -> bool:
    """Whether an item of a source is a result: some filter of that source holds for it."""
    filters = (f for f in selection.filters if f.source == source)
    return any(item_holds(f.formula, constants, document.root, selection.columns) for f in filters)


def item_holds(formula: Formula, constants: Sequence[Constant], root: Element, columns: bool = False) -> bool:
    """Whether an item satisfies a formula. Any value at a path may satisfy an atom; a column has only its first
    value."""
    match formula:
        case And(parts):
            return all(item_holds(part, constants, root, columns) for part in parts)
        case Or(parts):
            return any(item_holds(part, constants, root, columns) for part in parts)
        case Not(part):
            return not item_holds(part, constants, root, columns)
    most = 1 if columns else None
    values = values_at(root, formula.path)[:most]
    if formula.right is None:
        return bool(values)
    if not isinstance(formula.right, Slot):
        others = values_at(root, formula.right)[:most]
        return any(values_compare(a, formula.op, b, formula.part) for a in values for b in others)
    constant = constants[formula.right.index]
    return any(atom_holds(value, formula, constant, constants) for value in values)


def atom_holds(value: str, atom: Atom, constant: Constant, constants: Sequence[Constant]) -> bool:
    condition = find_condition(atom.op)
    if condition is not None:
        return condition.meaning(value, str(constant_at(place_of(atom), tuple(constants))))
    if atom.part == "value":
        return satisfies(value, atom.op, constant)  # type: ignore[arg-type]
    part = date_part(value, atom.part)
    return part is not None and COMPARE[atom.op](part, constant)  # type: ignore[index]


def values_compare(left: str, op: str, right: str, part: Part = "value") -> bool:
    """Compares two values: equality as texts, order as numbers unless `part` is text."""
    if op in ("=", "!=") or part == "text":
        return COMPARE[op](left, right)  # type: ignore[index]
    numbers = to_number(left), to_number(right)
    return None not in numbers and COMPARE[op](*numbers)  # type: ignore[index]


def holds(condition: Comparison, binding: Binding, constants: Sequence[Constant]) -> bool:
    left = binding[condition.left].value
    if isinstance(condition.right, Slot):
        constant = constant_at(constant_place(condition.op, condition.right.index), tuple(constants))
        on_texts = find_condition(condition.op)
        return on_texts.meaning(left, str(constant)) if on_texts else satisfies(left, condition.comparison, constant)
    return values_compare(left, condition.op, binding[condition.right].value)


@dataclass(frozen=True, slots=True)
class TreePlace:
    """An element that a pattern node may bind. For one above a split, the document element is bound instead."""

    name: str
    namespace: str
    node: Node
    children: tuple[TreePlace, ...]
    attributes: tuple[tuple[str, str, Node], ...] = ()

    def walk(self) -> Iterator[TreePlace]:
        yield self
        for child in self.children:
            yield from child.walk()


def embeddings(pattern: PatternNode, document: Document, constants: Sequence[Constant] = ()) -> Iterator[Binding]:
    """All embeddings of the pattern in the document, from its element or one above it; `constants` are for absences."""
    places = [_tree(document.root)]
    for name in reversed(document.context):
        places.append(TreePlace(name, "", places[0].node, (places[-1],)))
    match pattern.step.axis:
        case "item":
            starts = places[:1]
        case "child":
            starts = places[::-1]
        case _:
            yield from _below(pattern, TreePlace("", "", places[0].node, (places[-1],)), constants)
            return
    for start in starts:
        for place in _passing(pattern.step, [start]):
            yield from _bound(pattern, place, constants)


def _below(pattern: PatternNode, place: TreePlace, constants: Sequence[Constant]) -> Iterator[Binding]:
    if pattern.step.is_attribute:
        for owner in place.walk() if pattern.step.is_deep else (place,):
            for name, namespace, node in owner.attributes:
                if pattern.step.accepts(name, namespace):
                    yield from _bound(pattern, TreePlace(name, namespace, node, ()), constants)
        return
    for parent in place.walk() if pattern.step.is_deep else (place,):
        for child in _passing(pattern.step, parent.children):
            yield from _bound(pattern, child, constants)


def _passing(step: Step, siblings: Sequence[TreePlace]) -> Sequence[TreePlace]:
    """The siblings that pass a step; with a position, at most one."""
    passing = [place for place in siblings if step.accepts(place.name, place.namespace)]
    if step.position == LAST:
        return passing[-1:]
    return passing[step.position - 1 : step.position] if step.position else passing


def _bound(pattern: PatternNode, place: TreePlace, constants: Sequence[Constant]) -> Iterator[Binding]:
    """The embeddings of a pattern whose root is bound to a node; none if something is present that must be absent."""
    own = dict.fromkeys(pattern.variables, place.node)
    for absence in pattern.absent:
        if absence.test is not None and not absence.test.accepts(place.name, place.namespace):
            continue
        for inner in _choices(absence.children, place, own, constants):
            if all(holds(condition, inner, constants) for condition in absence.conditions):
                return
    yield from _choices(pattern.children, place, own, constants)


def _choices(
    children: Sequence[PatternNode], place: TreePlace, own: Binding, constants: Sequence[Constant]
) -> Iterator[Binding]:
    for choice in product(*[list(_below(child, place, constants)) for child in children]):
        yield {name: bound for part in (own, *choice) for name, bound in part.items()}


@lru_cache(maxsize=64)
def _tree(root: Element) -> TreePlace:
    """The tree of a document, cached because several patterns use it in turn."""
    return _place(root, {element: i for i, element in enumerate(elements(root))})


def _place(element: Element, ids: dict[Element, int]) -> TreePlace:
    id = ids[element]
    attributes = [(str(key), *_split(str(key)), str(value)) for key, value in element.attrib.items()]
    places = [attributes_named(element, name).index(key) for key, name, _, _ in attributes]
    return TreePlace(
        *_split(element.tag),
        Node(str(id), (id, 0, ""), string_value(element), element),
        tuple(_place(child, ids) for child in element.iterchildren(etree.Element)),
        tuple(
            (n, ns, Node(attribute_id(id, key, place), (id, place, n), value, element))
            for (key, n, ns, value), place in zip(attributes, places, strict=True)
        ),
    )


def _split(tag: str) -> tuple[str, str]:
    return local_name(tag), tag[1:].rpartition("}")[0]

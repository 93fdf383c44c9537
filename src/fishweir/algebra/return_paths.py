"""Evaluates return clauses: the nodes at a path below an element, and nested `for` clauses over them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

from lxml import etree

from fishweir.algebra.documents import Element, local_name, string_value
from fishweir.algebra.nodes import Step
from fishweir.algebra.operators import find_condition
from fishweir.algebra.returns import ForOutput, PathCondition, PathOutput
from fishweir.algebra.values import satisfies

Bound = tuple[Element, str | None]
"""An element, with the name of the attribute where one is bound, `{namespace}name` if it is in one."""


def nodes_at(node: Bound, path: tuple[Step, ...]) -> list[Bound]:
    """The nodes at a path below a node, each once, in document order."""
    found = [node]
    for step in path:
        below = (one for element, key in found if key is None for one in _below(element, step))
        found = list(dict.fromkeys(below)) if step.is_deep and len(found) > 1 else list(below)
    return _in_order(found) if any(step.is_deep for step in path[:-1]) else found


def _in_order(found: list[Bound]) -> list[Bound]:
    """Below two descendant steps nodes come in the order of the first; their document order is that of the tree."""
    if len(found) < 2:
        return found
    top = found[0][0].getroottree().getroot()
    places = {element: i for i, element in enumerate(top.iter(etree.Element))}
    return sorted(found, key=lambda bound: places[bound[0]])


def _below(element: Element, step: Step) -> Iterator[Bound]:
    if step.is_attribute:
        for owner in element.iter(etree.Element) if step.is_deep else (element,):
            for key in map(str, owner.attrib):
                if step.accepts(local_name(key), key[1:].rpartition("}")[0]):
                    yield owner, key
        return
    tag = _tag(step.name, step.namespace)
    for child in element.iterdescendants(tag) if step.is_deep else element.iterchildren(tag):
        yield child, None


@lru_cache(maxsize=10_000)
def _tag(name: str, namespace: str | None) -> str:
    """The tag in lxml's search syntax, so that elements with other names never become Python objects."""
    return f"{{{'*' if namespace is None else namespace}}}{name}"


def value_at(node: Bound) -> str:
    element, attribute = node
    return string_value(element) if attribute is None else str(element.attrib[attribute])


def at_path(output: PathOutput, bound: Mapping[str, Bound]) -> list[Bound]:
    """The nodes of a return pattern; none if its variable is not bound."""
    return nodes_at(bound[output.variable], output.path) if output.variable in bound else []


def iterations(part: ForOutput, bound: Mapping[str, Bound]) -> Iterator[Mapping[str, Bound]]:
    """What is bound in each turn of a nested `for`."""
    for node in at_path(part.over, bound):
        inner = {**bound, part.variable: node}
        if all(_holds(condition, inner) for condition in part.conditions):
            yield inner


def _holds(condition: PathCondition, bound: Mapping[str, Bound]) -> bool:
    values = [value_at(node) for node in at_path(condition.at, bound)]
    if condition.constant is None:
        return bool(values)
    on_texts = find_condition(condition.op)
    if on_texts is not None:
        return any(on_texts.meaning(value, str(condition.constant)) for value in values)
    return any(satisfies(value, condition.op, condition.constant) for value in values)  # type: ignore[arg-type]

"""Evaluates return clauses: the nodes at a path below an element, and nested `for` clauses over them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lxml import etree

from fishweir.algebra.documents import Element, local_name, string_value
from fishweir.algebra.nodes import Step
from fishweir.algebra.operators import find_condition
from fishweir.algebra.returns import ForOutput, PathCondition, PathOutput
from fishweir.algebra.values import satisfies

Bound = tuple[Element, str | None]
"""An element, and the name of the attribute if one is bound: `{namespace}name` if it has a namespace."""
_Compiled = tuple[list[tuple[str, bool]], Step | None, bool]
"""The element names of a path in lxml's search syntax, each with whether it is a descendant; the step to an attribute
at the end; and whether nodes may be found out of document order."""


def nodes_at(node: Bound, path: tuple[Step, ...]) -> list[Bound]:
    """The distinct nodes at a path below a node, in document order."""
    element, attribute = node
    if attribute is not None:
        return [] if path else [node]
    elements, (tags, last, is_mixed) = [element], _compiled(path)
    for tag, is_deep in tags:
        if is_deep:
            below = [one for above in elements for one in above.iterdescendants(tag)]
            elements = list(dict.fromkeys(below)) if len(elements) > 1 else below
        else:
            elements = [one for above in elements for one in above.iterchildren(tag)]
    if last is None:
        found: list[Bound] = [(one, None) for one in elements]
    else:
        keys = [one for above in elements for one in _attributes(above, last)]
        found = list(dict.fromkeys(keys)) if last.is_deep and len(elements) > 1 else keys
    return _in_order(found) if is_mixed else found


_COMPILED: dict[int, tuple[tuple[Step, ...], _Compiled]] = {}
_MOST = 10_000


def _compiled(path: tuple[Step, ...]) -> _Compiled:
    """The compiled path, cached by object identity: outputs use the same paths for every document."""
    compiled = _COMPILED.get(id(path))
    if compiled is None or compiled[0] is not path:
        if len(_COMPILED) >= _MOST:
            _COMPILED.clear()
        compiled = _COMPILED[id(path)] = path, _to_tags(path)
    return compiled[1]


def _to_tags(path: tuple[Step, ...]) -> _Compiled:
    """Compiles a path. Nothing is below an attribute, so steps after one search for a name that no element has."""
    ends = next((i for i, step in enumerate(path) if step.is_attribute), len(path))
    last = path[ends] if ends < len(path) else None
    tags = [(_tag(step.name, step.namespace), step.is_deep) for step in path[:ends]]
    if ends < len(path) - 1:
        tags, last = [("{}", False)], None
    return tags, last, any(step.is_deep for step in path[:-1])


def _in_order(found: list[Bound]) -> list[Bound]:
    """Sorts nodes into document order. After two descendant steps, they are in the order of the first step."""
    if len(found) < 2:
        return found
    top = found[0][0].getroottree().getroot()
    places = {element: i for i, element in enumerate(top.iter(etree.Element))}
    return sorted(found, key=lambda bound: places[bound[0]])


def _attributes(element: Element, step: Step) -> Iterator[Bound]:
    for owner in element.iter(etree.Element) if step.is_deep else (element,):
        for key in map(str, owner.attrib):
            if step.accepts(local_name(key), key[1:].rpartition("}")[0]):
                yield owner, key


def _tag(name: str, namespace: str | None) -> str:
    """The tag in lxml's search syntax, so that elements with other names never become Python objects."""
    return f"{{{'*' if namespace is None else namespace}}}{name}"


def value_at(node: Bound) -> str:
    element, attribute = node
    return string_value(element) if attribute is None else str(element.attrib[attribute])


def at_path(output: PathOutput, bound: Mapping[str, Bound]) -> list[Bound]:
    """The nodes of a return pattern; none if its variable is unbound."""
    return nodes_at(bound[output.variable], output.path) if output.variable in bound else []


def iterations(part: ForOutput, bound: Mapping[str, Bound]) -> Iterator[Mapping[str, Bound]]:
    """The bindings in each iteration of a nested `for`."""
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

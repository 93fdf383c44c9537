"""Frozen nodes to JSON and back, for the catalog and the segment files.

>>> to_json(nodes.Step("a"))
{'!': 'Step', 'name': 'a', 'axis': 'child', 'namespace': None}
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

from fishweir.algebra import annotations as annotation
from fishweir.algebra import feeds, formula, joins, nodes, normal, predicates, preferences, returns

CLASSES: dict[str, type] = {
    name: cls
    for module in (nodes, formula, feeds, normal, predicates, joins, annotation, returns, preferences)
    for name, cls in vars(module).items()
    if isinstance(cls, type) and is_dataclass(cls)
}


def register_nodes(*classes: type) -> None:
    """Adds frozen nodes of a program's own: shapes and templates of a kind of query that is not built in."""
    CLASSES.update({cls.__name__: cls for cls in classes})


def to_json(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        kind = type(value).__name__
        return {"!": kind} | {f.name: to_json(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, tuple | list):
        return [to_json(item) for item in value]
    return value


def from_json(value: Any) -> Any:
    """Lists come back as tuples, as frozen nodes want them."""
    if isinstance(value, dict):
        return CLASSES[value["!"]](**{k: from_json(v) for k, v in value.items() if k != "!"})
    if isinstance(value, list):
        return tuple(from_json(item) for item in value)
    return value

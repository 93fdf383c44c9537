"""Frozen nodes to JSON and back, for the catalog and the segment files.

>>> to_json(nodes.Step("a"))
{'!': 'Step', 'name': 'a', 'axis': 'child', 'namespace': None}
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import cache
from operator import attrgetter
from typing import Any

from fishweir.algebra import annotations as annotation
from fishweir.algebra import (
    distinct,
    feeds,
    formula,
    joins,
    nodes,
    normal,
    path_queries,
    predicates,
    preferences,
    returns,
)
from fishweir.errors import HomeError

CLASSES: dict[str, type] = {
    name: cls
    for module in (
        nodes,
        formula,
        feeds,
        normal,
        predicates,
        joins,
        annotation,
        returns,
        preferences,
        distinct,
        path_queries,
    )
    for name, cls in vars(module).items()
    if isinstance(cls, type) and is_dataclass(cls)
}


_PLAIN = {str, int, float, bool, type(None)}


def register_nodes(*classes: type) -> None:
    """Registers a program's own frozen nodes: shapes and templates of a kind of query that is not built in."""
    CLASSES.update({cls.__name__: cls for cls in classes})


def to_json(value: Any) -> Any:
    kind: Any = type(value)
    if kind in _PLAIN:
        return value
    if kind is tuple or kind is list:
        return [to_json(item) for item in value]
    names = _names(kind)
    if not names:
        return value
    found = {"!": kind.__name__}
    for name in names:
        part = getattr(value, name)
        found[name] = part if type(part) in _PLAIN else to_json(part)
    return found


def to_text(value: Any) -> str:
    """`json.dumps(to_json(value))`; the encoder converts each node when it reaches it."""
    return _ENCODER.encode(value)


def _encode_node(node: Any) -> dict[str, Any]:
    kind: Any = type(node)
    names, values_of = _parts_of(kind)
    return dict(zip(names, values_of(node), strict=True))


@cache
def _parts_of(kind: Any) -> tuple[tuple[str, ...], Callable[[Any], tuple[Any, ...]]]:
    """The names of the stored fields of a node, and a function that returns their values."""
    names = _names(kind)
    if not names:
        raise TypeError(f"{kind.__name__} is not a node")
    return ("!", *names), attrgetter("__class__.__name__", *names)


_ENCODER = json.JSONEncoder(default=_encode_node, check_circular=False)


@cache
def _names(kind: Any) -> tuple[str, ...]:
    """The fields of a node in order; none if it is not a node."""
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else ()


def from_json(value: Any) -> Any:
    """Decodes nodes. Lists become tuples, as frozen nodes require."""
    if isinstance(value, dict):
        if value["!"] == "Unless":
            raise HomeError(
                "the home has queries with NOT FOLLOWED BY that an earlier version of Fishweir registered: "
                "drop them with that version, and register them again with this one"
            )
        return CLASSES[value["!"]](**{k: from_json(v) for k, v in value.items() if k != "!"})
    if isinstance(value, list):
        return tuple(from_json(item) for item in value)
    return value

"""Queries as rows, from which kinds build their groups."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from fishweir.algebra.nodes import Constant, Source

QueryRow = tuple[int, Any, Sequence[Constant]]
"""A query as the plan sees it: its number, its template, and its constants in the template's order. A query can have
several rows, one for each alternative. A side is numbered by its member."""

PathRow = tuple[int, Source, Sequence[Constant]]
"""A query that consists of a single path: its number, its source and its constants. The first constant is the path."""

Columns = tuple[list[int], list[Sequence[Constant]]]
"""Queries with one template: their numbers and their constants."""


def by_template(rows: Iterable[QueryRow]) -> dict[Any, Columns]:
    """Queries by template. Most rows share the template object, so templates are first compared by identity: hashing a
    deep template once per row would dominate the cost."""
    same: dict[int, tuple[Any, Columns]] = {}
    for number, template, constants in rows:
        known = same.get(id(template))
        if known is None:
            known = same[id(template)] = template, ([], [])
        known[1][0].append(number)
        known[1][1].append(constants)
    found: dict[Any, Columns] = {}
    for template, (numbers, values) in same.values():
        own = found.setdefault(template, ([], []))
        own[0].extend(numbers)
        own[1].extend(values)
    return found

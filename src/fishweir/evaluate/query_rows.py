"""Queries as rows, in which a kind builds its groups from them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from fishweir.algebra.nodes import Constant, Source

QueryRow = tuple[int, Any, Sequence[Constant]]
"""A query as the plan sees it: its number, its template, its constants in the template's order. A query may be several
rows: one for each of its alternatives. The number of a side is that of its member."""

PathRow = tuple[int, Source, Sequence[Constant]]
"""A query that is a single path: its number, its source and its constants, of which the first is the path."""

Columns = tuple[list[int], list[Sequence[Constant]]]
"""Queries of one template: their numbers, and the constants of each."""


def by_template(rows: Iterable[QueryRow]) -> dict[Any, Columns]:
    """Queries by their templates. Most rows share the template object: hashing a deep template once per row would take
    longer than everything else done with it."""
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

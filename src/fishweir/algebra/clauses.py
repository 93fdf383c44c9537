"""Selections in normal form: the part of each filter that the shared plan evaluates.

In: a Selection. Out: its normals; the query fires if any of them matches. A filter on feed items becomes a predicate
(predicates.py). Each conjunction of the disjunctive normal form of an SQL condition becomes a template (columns.py), or
a join (column_joins.py) if the query joins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import singledispatch
from operator import itemgetter
from typing import Any

from fishweir.algebra.alternatives import to_alternatives, to_join_alternatives
from fishweir.algebra.annotations import to_annotation
from fishweir.algebra.column_joins import to_column_joins
from fishweir.algebra.columns import column_template
from fishweir.algebra.distinct import DistinctTemplate
from fishweir.algebra.feeds import Filter, Selection
from fishweir.algebra.formula import Clause, to_dnf
from fishweir.algebra.joins import JoinNormal, to_join
from fishweir.algebra.nodes import Constant, Shape
from fishweir.algebra.normal import Normal, normal_form
from fishweir.algebra.predicates import constant_at, to_predicates

AnyNormal = Normal | JoinNormal


MOST = 100_000
_RECENT: dict[int, tuple[Any, tuple[AnyNormal, ...]]] = {}
"""A cache of recent shapes by object identity: callers pass the same object again, and hashing a shape takes as long as
normalizing it."""


def to_normals(shape: Any) -> tuple[AnyNormal, ...]:
    """The normal forms of a query. It fires if any of them holds."""
    recent = _RECENT.get(id(shape))
    if recent is None or recent[0] is not shape:
        if len(_RECENT) >= MOST:
            _RECENT.clear()
        recent = _RECENT[id(shape)] = shape, _normals(shape)
    return recent[1]


def _normals(shape: Any) -> tuple[AnyNormal, ...]:
    normals = tuple(normals_of(shape))
    normals = tuple(dict.fromkeys(normals)) if len(normals) > 1 else normals
    distinct = getattr(shape, "distinct", None)
    if distinct is None:
        return normals
    sources = tuple(dict.fromkeys(shape.sources))
    return tuple(
        replace(one, template=DistinctTemplate(one.template, distinct, sources))  # type: ignore[arg-type]
        for one in normals
    )


@singledispatch
def normals_of(shape: Any) -> Iterable[AnyNormal]:
    """Normalizes a shape. A kind of query with its own shape registers its function here."""
    raise TypeError(f"no normal form is registered for {type(shape).__name__}")


@normals_of.register
def _of_shape(shape: Shape) -> Iterable[AnyNormal]:
    """A tree pattern or a join of patterns has one normal form per alternative, an SQL join one per conjunction. Those
    of `NOT FOLLOWED BY` find the documents that wait for the end of their window, and the matches."""
    if shape.unless is not None:
        return *normals_of(replace(shape, unless=None)), *normals_of(shape.unless)
    if shape.formula is not None:
        return to_column_joins(shape)
    if shape.alternatives:
        return to_join_alternatives(shape) if shape.windows else to_alternatives(shape)
    return (to_join(shape) if shape.windows else normal_form(shape),)


@normals_of.register
def _of_selection(shape: Selection) -> Iterable[AnyNormal]:
    if shape.joins:
        return (to_annotation(shape),)
    if shape.columns:
        return [_normal(f, clause) for f in shape.filters for clause in to_dnf(f.formula)]
    return [
        Normal(predicate, (), places) for f in shape.filters for predicate, places in to_predicates(f.source, f.formula)
    ]


def has_several(shape: Shape) -> bool:
    """Whether several of a join's conjunctions or alternatives may hold for the same documents."""
    return (shape.formula is not None or bool(shape.alternatives)) and len(to_normals(shape)) > 1


def constants_of(normal: AnyNormal, constants: tuple[Constant, ...]) -> list[Constant]:
    """A query's constants in the order of a template. A share and its text become one constant."""
    return [constant_at(place, constants) for place in normal.slots]


def constants_in_order(normal: AnyNormal) -> Callable[[tuple[Constant, ...]], Sequence[Constant]]:
    """`constants_of` for many queries of a shape: most already have their constants in the order of the template."""
    slots = normal.slots
    if slots == tuple(range(len(slots))):
        size = len(slots)
        return lambda constants: constants[:size]
    if len(slots) > 1 and all(isinstance(place, int) and place >= 0 for place in slots):
        return itemgetter(*slots)
    return lambda constants: constants_of(normal, constants)


def _normal(part: Filter, clause: Clause) -> Normal:
    template, slots, _ = column_template(part.source, clause)
    return Normal(template, (), slots)

"""Several joins in one XSCL query, with or without parentheses: each but the outermost is a query of its own.

In: a query of two or more blocks. Out: the outermost join, and before it those that it reads, from the inside out, each
published under a name of its own (`chains.py`). `A JOIN{..} B JOIN{..} C` is `(A JOIN{..} B) JOIN{..} C`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from lark import Token

from fishweir.algebra.alternatives import one_of
from fishweir.algebra.nodes import Shape
from fishweir.languages.connectives import few
from fishweir.languages.parsed import ParsedQuery
from fishweir.languages.pieces import Rejected
from fishweir.languages.schedule import Clauses
from fishweir.languages.xscl.binding import at, check_alike
from fishweir.languages.xscl.chains import Derived, mentioned_by, selected_by
from fishweir.languages.xscl.expanding import expand_block, expand_predicate
from fishweir.languages.xscl.joins import JoinBinder
from fishweir.languages.xscl.slots import Slots
from fishweir.languages.xscl.syntax import BlockSyntax, ChainSyntax, JoinSyntax, QuerySyntax

Wanted = dict[str, Token]
"""Variables that are read further out, each with its first mention."""


def bind_joins(query: QuerySyntax, text: str) -> ParsedQuery:
    """The shape and constants of the outermost join, with the joins inside it; Rejected for what does not bind."""
    tree = _Tree(query, text)
    binders, slots = tree.bound(query.block, query.joins, selected_by(query), "_")
    shape = tree.one_of([binder.to_shape(query) for binder in binders], slots)
    constants, places = tuple(slots.constants), tuple(slots.places)
    return ParsedQuery(shape, constants, places, query.clauses, before=tuple(tree.before))


@dataclass(frozen=True, slots=True)
class _Tree:
    """The joins of one query; `before` has those that are queries of their own."""

    query: QuerySyntax
    text: str
    before: list[ParsedQuery] = field(default_factory=list)

    def bound(
        self, first: BlockSyntax, joins: Sequence[JoinSyntax], wanted: Wanted, base: str
    ) -> tuple[list[JoinBinder], Slots]:
        """The last join of a chain: a binder for each alternative of its sides and its predicate. The variables that a
        chain makes begin with `base`, those of a chain on the right of a join with a base of their own."""
        *inner, join = joins
        read = wanted | mentioned_by(join.conditions)
        left = self.derived(first, inner, read, base) if inner else first
        right = join.block
        if isinstance(right, ChainSyntax):
            side: BlockSyntax | Derived = self.derived(right.block, right.joins, read, f"{base}r{len(inner)}_")
        else:
            side = right
        slots, prefix = Slots(), f"{base}{len(inner)}_" if inner else base
        choices = few(
            [
                (one, two, replace(join, conditions=conditions))
                for one in _alternatives(left)
                for conditions in expand_predicate(join)
                for two in _alternatives(side)
            ]
        )
        binders = [JoinBinder(prefix, slots, len(choices) > 1, self.query.optional) for _ in choices]
        for binder, choice in zip(binders, choices, strict=True):
            binder.bind_sides(*choice)
        return binders, slots

    def derived(self, first: BlockSyntax, joins: Sequence[JoinSyntax], wanted: Wanted, base: str) -> Derived:
        """A chain as a query of its own, and what it publishes."""
        binders, slots = self.bound(first, joins, wanted, base)
        text = str(self.query.namespaces) + self.text[at(first.source) : joins[-1].end].rstrip()
        made = [binder.to_derived(wanted, self.query.select is None, text) for binder in binders]
        derived = made[0][1]
        if any(other != derived for _, other in made):
            raise Rejected("what later joins read is bound in every part of an 'or'", at(joins[-1].word))
        shape, constants, places = self.one_of([shape for shape, _ in made], slots), slots.constants, slots.places
        clauses = Clauses(publish=derived.source)
        own = ParsedQuery(shape, tuple(constants), tuple(places), clauses, text=derived.text)
        self.before.append(own)
        return derived

    def one_of(self, shapes: list[Shape], slots: Slots) -> Shape:
        shape = one_of([replace(shape, slots=tuple(slots.slots)) for shape in shapes])
        check_alike(shape, self.query)
        return shape


def _alternatives(side: BlockSyntax | Derived) -> Sequence[BlockSyntax | Derived]:
    return [side] if isinstance(side, Derived) else expand_block(side)

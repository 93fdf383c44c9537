"""Several joins in one XSCL query, with or without parentheses: each but the outermost becomes a separate query.

In: a query with two or more blocks. Out: the outermost join, preceded by those that it reads, from the inside out, each
published under a derived name (`chains.py`). `A JOIN{..} B JOIN{..} C` is `(A JOIN{..} B) JOIN{..} C`. `A NOT FOLLOWED
BY{p, T} B` is A unless a document of A has a match, a result of `A FOLLOWED BY{p, T} B`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import field, replace

from lark import Token

from fishweir.algebra.alternatives import one_of
from fishweir.algebra.nodes import Shape
from fishweir.languages.connectives import limited
from fishweir.languages.lexical import quote
from fishweir.languages.parsed import ParsedQuery, derived_name
from fishweir.languages.schedule import Clauses
from fishweir.languages.statement_text import Rejected
from fishweir.languages.xscl.binding import at, bind_selection, check_output_types
from fishweir.languages.xscl.chains import DerivedJoin, mentioned_by, selected_by
from fishweir.languages.xscl.expanding import expand_block, expand_predicate
from fishweir.languages.xscl.joins import JoinBinder
from fishweir.languages.xscl.slots import Slots
from fishweir.languages.xscl.syntax import BlockSyntax, ChainSyntax, JoinSyntax, QuerySyntax, last_token
from fishweir.records import dataclass

CLAUSES = re.compile(r"(?<![\w.-])(?:publish|do|start|every|expires?|pref)(?![\w.-])", re.IGNORECASE)
"""The clauses that may follow a query; see schedule.lark."""
Mentions = dict[str, Token]
"""Variables that outer joins read, each with its first mention."""


def bind_joins(query: QuerySyntax, text: str) -> ParsedQuery:
    """The shape and constants of the outermost join, with the joins inside it. Raises Rejected on binding errors."""
    tree = _Tree(query, text)
    if query.joins[-1].is_absence:
        return replace(tree.without_match(), before=tuple(tree.before))
    binders, slots = tree.bound(query.block, query.joins, selected_by(query), "_")
    shape = tree.one_of([binder.to_shape(query) for binder in binders], slots)
    return _parsed(shape, slots, query, tuple(tree.before))


def _parsed(shape: Shape, slots: Slots, query: QuerySyntax, before: tuple[ParsedQuery, ...] = ()) -> ParsedQuery:
    return ParsedQuery(shape, tuple(slots.constants), tuple(slots.places), query.clauses, before)


@dataclass(frozen=True, slots=True)
class _Tree:
    """The joins of one query; `before` contains those that are separate queries."""

    query: QuerySyntax
    text: str
    before: list[ParsedQuery] = field(default_factory=list)

    def bound(
        self, first: BlockSyntax, joins: Sequence[JoinSyntax], needed: Mentions, base: str
    ) -> tuple[list[JoinBinder], Slots]:
        """The last join of a chain: a binder for each alternative of its sides and its predicate. Generated variables
        of a chain begin with `base`; a chain on the right of a join has another base.
        """
        *inner, join = joins
        read = needed | mentioned_by(join.conditions)
        left = self.left(first, inner, read, base)
        return self.sides(left, join, read, f"{base}{len(inner)}_" if inner else base)

    def left(
        self, first: BlockSyntax, joins: Sequence[JoinSyntax], needed: Mentions, base: str
    ) -> BlockSyntax | DerivedJoin:
        """The left input of a join: a block, or the output of the preceding joins."""
        if not joins:
            return first
        return (self.absent if joins[-1].is_absence else self.derived)(first, joins, needed, base)

    def sides(
        self, left: BlockSyntax | DerivedJoin, join: JoinSyntax, read: Mentions, prefix: str
    ) -> tuple[list[JoinBinder], Slots]:
        right = join.block
        if isinstance(right, ChainSyntax):
            side = self.left(right.block, right.joins, read, f"{prefix}r_")
        else:
            side = right
        slots = Slots()
        choices = limited(
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

    def derived(self, first: BlockSyntax, joins: Sequence[JoinSyntax], needed: Mentions, base: str) -> DerivedJoin:
        """A chain as a separate query, and its output."""
        binders, slots = self.bound(first, joins, needed, base)
        text = self.text_of(first, joins[-1])
        choices = [binder.to_derived(needed, self.query.select is None, text) for binder in binders]
        derived = choices[0][1]
        if any(other != derived for _, other in choices):
            raise Rejected("a variable read by later joins must be bound in every part of an 'or'", at(joins[-1].word))
        self.publish(self.one_of([shape for shape, _ in choices], slots), slots, derived.source, derived.text)
        return derived

    def without_match(self) -> ParsedQuery:
        """The whole query, if its last join is an absence."""
        query = self.query
        first, joins, needed = query.block, query.joins, selected_by(query)
        if query.clauses.distinct is not None:  # it selects among the documents without a match, so these are published
            left, matches, slots = self.absent(first, joins, needed, "_"), None, Slots()
        else:
            left, matches, slots = self.matches(first, joins, needed, "_")
        if isinstance(left, BlockSyntax):
            found = bind_selection(replace(query, block=left, joins=()), slots)
        else:
            binder = JoinBinder("_", slots, False, query.optional)
            binder.bind_side(left)
            found = _parsed(self.one_of([binder.to_shape(query)], slots), slots, query)
        return replace(found, shape=replace(found.shape, unless=matches))

    def matches(
        self, first: BlockSyntax, joins: Sequence[JoinSyntax], needed: Mentions, base: str
    ) -> tuple[BlockSyntax | DerivedJoin, Shape, Slots]:
        """The left side of the last join, and the join that finds its matches."""
        *inner, join = joins
        if join.window.seconds == math.inf:
            raise Rejected("NOT FOLLOWED BY needs a window that ends", join.window.place.start)
        read = needed | mentioned_by(join.conditions)
        left = self.left(first, inner, read, base)
        binders, slots = self.sides(left, join, read, f"{base}m_")
        return left, self.one_of([one.to_documents() for one in binders], slots), slots

    def absent(
        self, first: BlockSyntax, joins: Sequence[JoinSyntax], needed: Mentions, base: str
    ) -> BlockSyntax | DerivedJoin:
        """The left side of the last join over the stream of its documents without a match."""
        text = self.text_of(first, joins[-1])
        left, matches, slots = self.matches(first, joins, needed, base)
        shapes = list[Shape]()
        for side in _alternatives(left):
            binder = JoinBinder(f"{base}a_", slots, True, self.query.optional)
            binder.bind_side(side)
            shapes.append(binder.to_documents())
        name = derived_name(f"{text} -- documents without a match")
        self.publish(replace(self.one_of(shapes, slots), unless=matches), slots, name, text)
        if isinstance(left, DerivedJoin):
            return replace(left, source=name)
        source = Token("STRING", quote(name), left.source.start_pos, end_pos=left.source.end_pos)
        return replace(left, source=source, others=tuple(replace(one, source=source) for one in left.others))

    def publish(self, shape: Shape, slots: Slots, name: str, text: str) -> None:
        """Adds a query that this one reads."""
        constants, places = tuple(slots.constants), tuple(slots.places)
        clauses = Clauses(publish=name, start=self.query.clauses.start)
        self.before.append(ParsedQuery(shape, constants, places, clauses, text=text))

    def text_of(self, first: BlockSyntax, join: JoinSyntax) -> str:
        """The text of some joins up to this one; that of the outermost ends where the clauses of the query begin.
        Queries with their own start time are not shared with others.
        """
        end = join.end
        if not end:
            clause = CLAUSES.search(self.text, last_token(join.block))
            end = clause.start() if clause else len(self.text)
        start = self.query.clauses.start
        own = "" if start is None else f" start {start.seconds}{' from now' if start.from_now else ''}"
        return str(self.query.namespaces) + self.text[at(first.source) : end].rstrip() + own

    def one_of(self, shapes: list[Shape], slots: Slots) -> Shape:
        shape = one_of([replace(shape, slots=tuple(slots.slots)) for shape in shapes])
        check_output_types(shape, self.query)
        return shape


def _alternatives(side: BlockSyntax | DerivedJoin) -> Sequence[BlockSyntax | DerivedJoin]:
    return [side] if isinstance(side, DerivedJoin) else expand_block(side)

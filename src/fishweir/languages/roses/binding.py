"""Binding of RoSeS: syntax nodes to the algebra's feeds, with a slot for every constant of a condition.

A condition without a variable applies to the whole from clause, one without an attribute to the whole item. A condition
on texts with several constants in parentheses is an `or` of conditions with one constant each, so that equal ones are
one atom. A quoted ISO date under < <= > >=, and a bare one under any comparison, is compared as a time, in seconds.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import cast

from lark import Token

from fishweir.algebra.column_joins import in_block, is_between
from fishweir.algebra.feeds import (
    WHOLE,
    FeedJoin,
    FeedName,
    FeedQuery,
    FeedUnion,
    VariableCondition,
)
from fishweir.algebra.formula import And, Atom, Formula, Not, Or, Part, RelativePath, atoms_of, with_atoms
from fishweir.algebra.nodes import MIRRORED, Operator, SideWindow, Slot, Step
from fishweir.algebra.operators import Condition, condition_written
from fishweir.languages.lexical import plain, to_operator
from fishweir.languages.roses.literals import KINDS, Constants, Kind, LiteralPlace, Parsed, to_seconds
from fishweir.languages.roses.syntax import (
    AtomSyntax,
    BooleanSyntax,
    ConditionSyntax,
    FeedSyntax,
    JoinSyntax,
    LeafSyntax,
    OperandSyntax,
    PairSyntax,
    PublicationSyntax,
    UnionSyntax,
    WhereSyntax,
    WindowSyntax,
    start_of,
)
from fishweir.languages.schedule import Clauses
from fishweir.languages.statement_text import Rejected
from fishweir.languages.times import UNITS, BadTime, parse_interval

_PARTS = ("year", "month", "day", "hour")
_ORDER = ("<", "<=", ">", ">=")
_COMPARES = "a join compares an attribute of the item with one of the window, such as title = window.title"


def bind(publication: PublicationSyntax, clauses: Clauses) -> Parsed[FeedQuery]:
    """The query's shape and constants. Raises Rejected for binding errors such as unknown variables."""
    return _Binder(publication).bind(clauses)


def named(token: Token, what: str) -> str:
    """The text of a name, quoted or bare. Raises Rejected if it is empty."""
    name = plain(token).strip()
    if not name:
        raise Rejected(f"{what} has no name", start_of(token))
    return name


class _Binder:
    """Walks one publication in text order, so that slots are numbered in reading order."""

    def __init__(self, publication: PublicationSyntax) -> None:
        self._publication = publication
        self._constants = Constants()
        self._variables: dict[str, Token] = {}

    def bind(self, clauses: Clauses) -> Parsed[FeedQuery]:
        publication = self._publication
        main = self._union(publication.main)
        primary = set(self._variables)
        whole = main.variable or WHOLE
        if _has_global_condition(publication) and main.variable is None:
            main = replace(main, variable=whole)
        joins = tuple(self._join(join, primary, whole) for join in publication.joins)
        where = tuple(self._where(condition, whole) for condition in publication.where)
        return self._constants.parsed(lambda slots: FeedQuery(main, joins, where, slots), clauses)

    def _union(self, union: UnionSyntax) -> FeedUnion | FeedName:
        """The feeds of a union; if it has one member, that feed."""
        members = tuple(self._feed(member) for member in union.members)
        return members[0] if len(members) == 1 else FeedUnion(members)

    def _feed(self, feed: FeedSyntax) -> FeedUnion | FeedName:
        if isinstance(feed.content, Token):
            return FeedName(named(feed.content, "the feed"), self._declare(feed.variable))
        inner = self._union(feed.content)
        variable = self._declare(feed.variable)
        if variable is None:
            return inner
        return replace(inner, variable=variable) if inner.variable is None else FeedUnion((inner,), variable)

    def _declare(self, token: Token | None) -> str | None:
        if token is None:
            return None
        name = str(token[1:])
        if name in self._variables:
            raise Rejected(f"the variable ${name} names two feeds", start_of(token))
        self._variables[name] = token
        return name

    def _check_variable(self, token: Token, among: set[str]) -> str:
        if token[1:] not in among:
            names = ", ".join(f"${name}" for name in self._variables if name in among) or "none"
            raise Rejected(f"no feed is named {token}; named feeds: {names}", start_of(token))
        return str(token[1:])

    def _join(self, join: JoinSyntax, primary: set[str], whole: str) -> FeedJoin:
        window = self._window(join.window)
        secondary = self._union(join.secondary)
        variable = whole if join.variable is None else self._check_variable(join.variable, primary)
        condition = _formula(join.condition, lambda leaf: self._link(leaf, window))
        if not any(is_between(atom) for atom in atoms_of(condition)):
            raise Rejected(_COMPARES, start_of(join.keyword))
        return FeedJoin(window, secondary, variable, condition)

    def _window(self, window: WindowSyntax) -> SideWindow:
        """The window: a number of items, or a time. Its length is a constant unless it is implicit (`last item`)."""
        amount, unit, start = window.amount, window.unit, start_of(window.first)
        end = start + len(window.first)
        if unit is not None and unit.lower() in ("item", "items"):
            items = 1.0 if amount is None else float(amount)
            if items < 1 or not items.is_integer():
                raise Rejected(f"a window must contain at least one whole item, not {amount}", start)
            place = LiteralPlace(start, end, "keyword" if amount is None else "items")
            return SideWindow(self._constants.placed(items, place), rows=True)
        try:
            seconds = parse_interval(" ".join(str(word) for word in (amount, unit) if word is not None))
        except BadTime as error:
            reason = str(error) + (", or items" if "unit of time" in str(error) else "")
            raise Rejected(reason, start_of(unit or window.first)) from None
        if seconds == 0:
            raise Rejected("the window is empty", start)
        one = UNITS["s" if unit is None else unit.lower()]
        place = LiteralPlace(start, end, "keyword") if amount is None else LiteralPlace(start, end, "span", one)
        return SideWindow(self._constants.placed(seconds, place))

    def _link(self, leaf: LeafSyntax, window: SideWindow) -> Formula:
        """A condition of a join, between an item and an item of the window, or on only one of them."""
        return self._pair(leaf) if isinstance(leaf, PairSyntax) else self._on_one(leaf, window)

    def _on_one(self, atom: AtomSyntax, window: SideWindow) -> Formula:
        """`title contains 'rock'` applies to the item, `window.title contains 'rock'` to an item of the window."""
        operand, block = atom.operand, 0
        if operand is not None and _is_window(operand.attribute):
            if window.rows:
                reason = "a window that counts items cannot have conditions on its items alone: they would change it"
                raise Rejected(f"{reason}; put them on the feed, in the where clause", start_of(operand.attribute))
            name = operand.attribute.partition(".")[2]
            atom, block = replace(atom, operand=replace(operand, attribute=operand.attribute.update(value=name))), 1
        return with_atoms(self._atom(atom), lambda one: replace(one, path=in_block(block, one.path)))

    def _pair(self, pair: PairSyntax) -> Atom:
        if pair.left.part is not None:
            raise Rejected("a join compares whole values, not parts of dates", start_of(pair.left.part))
        left, right, op = pair.left.attribute, pair.right, _operator(pair.op)
        condition = None if pair.op.type == "OP" else _condition(pair.op, pair.threshold)
        if condition is not None and not condition.joins:
            raise Rejected(f"'{pair.op}' compares with quoted text, not with a window's items", start_of(pair.op))
        if not _is_window(right) and _is_window(left) and (condition is None or condition.share is not None):
            left, right, op = right, left, MIRRORED.get(cast(Operator, op), op)
        if _is_window(left) or not _is_window(right):
            raise Rejected(_COMPARES, start_of(pair.left.attribute))
        threshold = None if pair.threshold is None else self._slot(pair.threshold, "share")
        other = in_block(1, _path(right, right.partition(".")[2]))
        return Atom(in_block(0, _attribute(left)), op, other, threshold=threshold)

    def _where(self, where: WhereSyntax, whole: str) -> VariableCondition:
        variable = whole if where.variable is None else self._check_variable(where.variable, set(self._variables))
        return VariableCondition(variable, _formula(where.condition, self._atom))

    def _atom(self, atom: LeafSyntax) -> Formula:
        assert isinstance(atom, AtomSyntax), "only the condition of a join compares two items"
        match atom.op.type:
            case "OP":
                return self._comparison(atom)
            case "EXISTS" | "HAS":
                assert atom.operand is not None
                return Atom(_some_attribute(atom.operand.attribute, atom.op), "exists")
        path: RelativePath = ()
        if atom.operand is not None:
            if atom.operand.part is not None:
                raise Rejected(f"'{atom.op}' compares text, not a part of a date", start_of(atom.op))
            path = _attribute(atom.operand.attribute)
        condition = _condition(atom.op, atom.threshold)
        threshold = None if atom.threshold is None else self._slot(atom.threshold, "share")
        slots = [self._slot(word, KINDS[condition.constant]) for word in atom.constants]
        atoms = tuple(Atom(path, condition.name, slot, threshold=threshold) for slot in slots)
        return atoms[0] if len(atoms) == 1 else Or(atoms)

    def _comparison(self, atom: AtomSyntax) -> Atom:
        assert atom.operand is not None
        op, (constant,) = cast(Operator, _operator(atom.op)), atom.constants
        path, part = _part(atom.operand, atom.op)
        if part != "value":
            if constant.type != "NUMBER":
                raise Rejected(f"expected a number to compare the {part} with, found {constant}", start_of(constant))
            return Atom(path, op, self._slot(constant, "number"), part)
        if constant.type == "NUMBER":
            return Atom(path, op, self._slot(constant, "number"))
        if constant.type == "ISO_TIME" or (op in _ORDER and to_seconds(plain(constant)) is not None):
            return Atom(path, op, self._slot(constant, "time"), "time")
        return Atom(path, op, self._slot(constant, "untimed" if op in _ORDER else "quoted"))

    def _slot(self, token: Token, kind: Kind) -> Slot:
        return self._constants.slot(str(token), start_of(token), kind)


def _formula(condition: ConditionSyntax, leaf: Callable[[LeafSyntax], Formula]) -> Formula:
    match condition:
        case BooleanSyntax("not", (part,)):
            return Not(_formula(part, leaf))
        case BooleanSyntax(connective, parts):
            bound = tuple(_formula(part, leaf) for part in parts)
            return And(bound) if connective == "and" else Or(bound)
        case _:
            return leaf(condition)


def _has_global_condition(publication: PublicationSyntax) -> bool:
    joins, where = publication.joins, publication.where
    return any(join.variable is None for join in joins) or any(part.variable is None for part in where)


def _operator(token: Token) -> str:
    if token.type == "OP":
        return to_operator(token)
    return _condition(token, None).name


def _condition(token: Token, share: Token | None) -> Condition:
    """The condition on texts for a keyword. Raises Rejected if it does not accept a share."""
    condition = condition_written(token)
    assert condition is not None, "the grammar accepts only registered keywords"
    if share is not None and condition.share is None:
        raise Rejected(f"'{token}' does not take a share of words: expected quoted text", start_of(share))
    return condition


def _is_window(attribute: Token) -> bool:
    return re.match(r"window\.", attribute, re.IGNORECASE) is not None


def _part(operand: OperandSyntax, op: Token) -> tuple[RelativePath, Part]:
    """The attribute and the part of its date; `year(pubdate)` and `pubdate.year` are the same."""
    attribute = operand.attribute
    if operand.part is not None:
        return _some_attribute(attribute, op), cast(Part, operand.part.lower())
    name, _, last = attribute.rpartition(".")
    if name and last.lower() in _PARTS:
        return _some_attribute(attribute.update(value=name), op), cast(Part, last.lower())
    return _some_attribute(attribute, op), "value"


def _some_attribute(attribute: Token, op: Token) -> RelativePath:
    path = _attribute(attribute)
    if not path:
        raise Rejected(f"'{op}' needs an attribute; the whole item has only words and links", start_of(attribute))
    return path


def _attribute(attribute: Token) -> RelativePath:
    """The path of `title`, `dc:creator` or `enclosure/@url`; empty for `item` and `*`, the whole item."""
    return () if attribute == "*" or attribute.lower() == "item" else _path(attribute, str(attribute))


def _path(token: Token, text: str) -> RelativePath:
    names = text.split("/")
    if not all(names) or any(name.startswith("@") for name in names[:-1]):
        raise Rejected(f"'{text}' is not an attribute: write title, author/name or enclosure/@url", start_of(token))
    return tuple(
        Step(name.lstrip("@").rpartition(":")[2], "attribute" if name.startswith("@") else "child") for name in names
    )

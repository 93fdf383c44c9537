"""Parse once per shape, for subscriptions: those that differ only in targets and intervals share one parse.

A statement is split into its skeleton and its literals (skeleton.py). The role of each literal in the first statement
of a skeleton is found by trial: the statement is parsed again with another literal in its place. If the change affects
an argument of the output or the interval, the literal is one; otherwise, it becomes part of the key. A later statement
uses its own literals. Ambiguous cases are parsed in full, with good error messages.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import field, replace

from fishweir.algebra.feeds import Subscribe
from fishweir.algebra.nodes import Action, Schedule, Statement
from fishweir.errors import QueryError
from fishweir.languages.arguments import MARK
from fishweir.languages.lexical import OPENING_QUOTES, to_constant, unquote
from fishweir.languages.skeleton import Key, join_literals, split_literals
from fishweir.languages.statement_text import Rejected
from fishweir.records import dataclass

LIMIT = 10_000
"""The maximum number of cached statements."""
_BEGINS = re.compile(r"subscribe(?![\w.-])", re.IGNORECASE)

Parse = Callable[[str, float], Statement]
"""Parses a text in full, at a given time."""


@dataclass(frozen=True, slots=True)
class _Family:
    """The statements of one skeleton: the literals that are arguments, the literal of the interval, with its unit, and
    a statement for each combination of the other literals.
    """

    arguments: tuple[tuple[int, int], ...]
    every: tuple[int, float] | None
    structural: tuple[int, ...]
    statements: dict[tuple[str, ...], Subscribe] = field(default_factory=dict)


class SubscriptionCache:
    def __init__(self) -> None:
        self._families: dict[Key, _Family] = {}
        self._size = 0

    def find(self, text: str, line: int) -> Subscribe | None:
        """The statement as a full parse would return it, or None if a full parse is needed."""
        if not is_subscription(text):
            return None
        skeleton, literals = split_literals(text)
        family = self._families.get(skeleton)
        if family is None:
            return None
        like = family.statements.get(tuple([literals[at] for at in family.structural]))
        if like is None:
            return None
        action, schedule = like.action, like.schedule
        if family.arguments:
            arguments = list(action.arguments)
            for at, argument in family.arguments:
                arguments[argument] = _plain(literals[at])
            action = Action(action.name, tuple(arguments))
        if family.every is not None:
            at, unit = family.every
            amount = to_constant(literals[at])
            if not isinstance(amount, float) or not 0 <= amount * unit < math.inf:
                return None
            schedule = Schedule(schedule.start, amount * unit, schedule.expire)
        return Subscribe(like.feed, action, like.stylesheet, schedule, text, line)

    def keep(self, statement: Subscribe, now: float, parse: Parse) -> None:
        """Caches a statement that was parsed in full."""
        skeleton, literals = split_literals(statement.text)
        if _try_parse(parse, statement.text, now + 1.0) != replace(statement, line=1):
            return  # its times are relative to now
        family = self._families.get(skeleton) or _family(statement, skeleton, literals, now, parse)
        if self._size >= LIMIT:
            self._families.clear()
            self._size = 0
        self._families[skeleton] = family
        family.statements[tuple([literals[at] for at in family.structural])] = statement
        self._size += 1


def is_subscription(text: str) -> bool:
    return _BEGINS.match(text) is not None


SHARED = SubscriptionCache()
"""The cache of everything that this process has parsed."""


def _family(statement: Subscribe, skeleton: Key, literals: list[str], now: float, parse: Parse) -> _Family:
    arguments: list[tuple[int, int]] = []
    every, structural = None, []
    for at, literal in enumerate(literals):
        other = (
            f"'{MARK}'" if literal[0] in OPENING_QUOTES else "1" if float(to_constant(literal) or 0.0) != 1.0 else "2"
        )
        text = join_literals(skeleton, [*literals[:at], other, *literals[at + 1 :]])
        tried = _try_parse(parse, text, now)
        argument = None if tried is None else _argument(statement, tried, _plain(other))
        if argument is not None:
            arguments.append((at, argument))
        elif tried is not None and (unit := _unit(statement, tried, literal, other)) is not None:
            every = at, unit
        else:
            structural.append(at)
    return _Family(tuple(arguments), every, tuple(structural))


def _try_parse(parse: Parse, text: str, now: float) -> Subscribe | None:
    try:
        found = parse(text, now)
    except (Rejected, QueryError):
        return None
    return found if isinstance(found, Subscribe) else None


def _argument(statement: Subscribe, tried: Subscribe, text: str) -> int | None:
    """The argument that has become a text, if nothing else has changed."""
    own, other = statement.action.arguments, tried.action.arguments
    places = [i for i, (a, b) in enumerate(zip(own, other, strict=False)) if a != b]
    if len(own) != len(other) or len(places) != 1 or other[places[0]] != text:
        return None
    same = replace(tried, action=statement.action, text=statement.text, line=statement.line) == statement
    return places[0] if same and tried.action.name == statement.action.name else None


def _unit(statement: Subscribe, tried: Subscribe, literal: str, other: str) -> float | None:
    """The seconds of one unit, if only the interval has changed with a number."""
    before, after = statement.schedule.every, tried.schedule.every
    amount = to_constant(literal)
    if before is None or after is None or literal[0] in OPENING_QUOTES or not isinstance(amount, float):
        return None
    unit = after / float(other)
    changed = replace(tried, schedule=statement.schedule, text=statement.text, line=statement.line)
    is_same = changed == statement and tried.schedule == replace(statement.schedule, every=after)
    return unit if is_same and amount * unit == before else None


def _plain(literal: str) -> str:
    return unquote(literal) if literal[0] in OPENING_QUOTES else literal

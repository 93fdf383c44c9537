"""Parse once per shape, for subscriptions: those that differ only in targets and intervals share one parse.

A statement is split into its skeleton and its literals (skeleton.py). The role of each literal in the first statement
of a skeleton is found by trial: the statement is parsed again with another literal in its place. If the change affects
an argument of the output or the interval, the literal is one; otherwise, it becomes part of the key. A later statement
uses its own literals. Ambiguous cases are parsed in full, with good error messages. The same applies to statements that
end subscriptions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import field, replace

from fishweir.algebra.action_columns import ActionColumns, Subscriptions, repeated
from fishweir.algebra.feeds import Subscribe, Unsubscribe
from fishweir.algebra.nodes import Action, Constant, Schedule, Statement
from fishweir.errors import QueryError
from fishweir.languages.arguments import MARK
from fishweir.languages.lexical import OPENING_QUOTES, plain, to_constant
from fishweir.languages.skeleton import Interval, Key, Slots, SplitStatement, join_literals, split_literals
from fishweir.languages.statement_text import Rejected
from fishweir.records import dataclass

LIMIT = 10_000
"""The maximum number of cached statements."""
_BEGINS = re.compile(r"subscribe(?![\w.-])", re.IGNORECASE)
_BEGINS_OR_ENDS = re.compile(r"(?:un)?subscribe(?![\w.-])", re.IGNORECASE)

AnySubscription = Subscribe | Unsubscribe
Parse = Callable[[str, float], Statement]
"""Parses a text in full, at a given time."""


@dataclass(frozen=True, slots=True)
class _Family:
    """The statements of one skeleton: the literals that are arguments, the literal of the interval, and a statement for
    each combination of the other literals, with the time at which it was parsed if its own times depend on that.
    """

    arguments: tuple[tuple[int, int], ...]
    every: tuple[int, Interval] | None
    structural: tuple[int, ...]
    statements: dict[tuple[str, ...], tuple[AnySubscription, float | None]] = field(default_factory=dict)


class SubscriptionCache:
    def __init__(self) -> None:
        self._families: dict[Key, _Family] = {}
        self._size = 0

    def find(self, text: str, line: int, now: float | None = None) -> AnySubscription | None:
        """The statement as a full parse would return it at this time, or None if a full parse is needed."""
        if not _BEGINS_OR_ENDS.match(text):
            return None
        skeleton, literals = split_literals(text)
        family = self._families.get(skeleton)
        if family is None:
            return None
        like, at_time = family.statements.get(tuple([literals[at] for at in family.structural]), (None, None))
        if like is None or (at_time is not None and at_time != now):
            return None
        action = like.action
        if family.arguments and action is not None:
            arguments = list(action.arguments)
            for at, argument in family.arguments:
                arguments[argument] = plain(literals[at])
            action = Action(action.name, tuple(arguments))
        if isinstance(like, Unsubscribe) or action is None:
            return Unsubscribe(like.feed, action, text, line)
        schedule = like.schedule
        if family.every is not None:
            at, read = family.every
            every = read(literals[at])
            if not isinstance(every, float):
                return None
            schedule = Schedule(schedule.start, every, schedule.expire)
        return Subscribe(like.feed, action, like.stylesheet, schedule, text, line)

    def slots(self, text: str) -> Slots | None:
        """The split text of a cached statement, and the roles of its literals; its interval is a constant."""
        skeleton, literals = split_literals(text)
        family = self._families.get(skeleton)
        if family is None:
            return None
        constants = () if family.every is None else (family.every,)
        arguments = tuple((at, 0, argument) for at, argument in family.arguments)
        return Slots(SplitStatement(None, 0, ("", *skeleton), literals), constants, family.structural, arguments)

    def keep(self, statement: AnySubscription, now: float, parse: Parse) -> None:
        """Caches a statement that was parsed in full."""
        skeleton, literals = split_literals(statement.text)
        is_relative = _try_parse(parse, statement.text, now + 1.0) != replace(statement, line=1)
        family = self._families.get(skeleton) or _family(statement, skeleton, literals, now, parse)
        if self._size >= LIMIT:
            self._families.clear()
            self._size = 0
        self._families[skeleton] = family
        family.statements[tuple([literals[at] for at in family.structural])] = statement, now if is_relative else None
        self._size += 1


def is_subscription(text: str) -> bool:
    return _BEGINS.match(text) is not None


def all_like(
    first: Subscribe,
    texts: Sequence[str],
    lines: Sequence[int],
    constants: Sequence[tuple[Constant, ...]],
    actions: Sequence[ActionColumns],
) -> Subscriptions:
    """The subscriptions of texts that differ from the first in their constants and actions (see `slots`)."""
    count, schedule = len(texts), first.schedule
    known = {
        one: Schedule(schedule.start, float(one[0]), schedule.expire) if one else schedule for one in set(constants)
    }
    (action,) = actions or (repeated(first.action, count),)
    return Subscriptions(
        [first.feed] * count, action, [first.stylesheet] * count, [known[one] for one in constants], texts, lines
    )


SHARED = SubscriptionCache()
"""The cache of everything that this process has parsed."""


def _family(statement: AnySubscription, skeleton: Key, literals: list[str], now: float, parse: Parse) -> _Family:
    arguments: list[tuple[int, int]] = []
    every, structural = None, []
    for at, literal in enumerate(literals):
        other = (
            f"'{MARK}'" if literal[0] in OPENING_QUOTES else "1" if float(to_constant(literal) or 0.0) != 1.0 else "2"
        )
        text = join_literals(skeleton, [*literals[:at], other, *literals[at + 1 :]])
        tried = _try_parse(parse, text, now)
        argument = None if tried is None else _argument(statement, tried, plain(other))
        if argument is not None:
            arguments.append((at, argument))
        elif tried is not None and (unit := _unit(statement, tried, literal, other)) is not None:
            every = at, Interval(unit)
        else:
            structural.append(at)
    return _Family(tuple(arguments), every, tuple(structural))


def _try_parse(parse: Parse, text: str, now: float) -> AnySubscription | None:
    try:
        found = parse(text, now)
    except (Rejected, QueryError):
        return None
    return found if isinstance(found, AnySubscription) else None


def _argument(statement: AnySubscription, tried: AnySubscription, text: str) -> int | None:
    """The argument that has become a text, if nothing else has changed."""
    if statement.action is None or tried.action is None:
        return None
    own, other = statement.action.arguments, tried.action.arguments
    places = [i for i, (a, b) in enumerate(zip(own, other, strict=False)) if a != b]
    if len(own) != len(other) or len(places) != 1 or other[places[0]] != text:
        return None
    same = replace(tried, action=statement.action, text=statement.text, line=statement.line) == statement
    return places[0] if same and tried.action.name == statement.action.name else None


def _unit(statement: AnySubscription, tried: AnySubscription, literal: str, other: str) -> float | None:
    """The seconds of one unit, if only the interval has changed with a number."""
    if not isinstance(statement, Subscribe) or not isinstance(tried, Subscribe):
        return None
    before, after = statement.schedule.every, tried.schedule.every
    amount = to_constant(literal)
    if before is None or after is None or literal[0] in OPENING_QUOTES or not isinstance(amount, float):
        return None
    unit = after / float(other)
    changed = replace(tried, schedule=statement.schedule, text=statement.text, line=statement.line)
    is_same = changed == statement and tried.schedule == replace(statement.schedule, every=after)
    return unit if is_same and amount * unit == before else None

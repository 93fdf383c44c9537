"""The clauses `distinct on`, `publish`, `pref`, `do`, `start`, `every`, `expire` of queries in all languages.

A grammar imports the rules of `schedule.lark`, and its transformer inherits ScheduleTransformer, which produces
Clauses. Times relative to now are not resolved before `Clauses.schedule(now)`, so that a parsed query can be cached and
registered again later.
"""

from __future__ import annotations

import re
from typing import Any

from lark import Token, Transformer, v_args

from fishweir.algebra.distinct import Distinct
from fishweir.algebra.nodes import Action, Constant, Schedule, Step
from fishweir.algebra.preferences import Preference, Score, ValueCondition
from fishweir.languages.lexical import OPENING_QUOTES, plain, to_constant, to_operator, unquote
from fishweir.languages.statement_text import Rejected
from fishweir.languages.times import BadTime, Moment, parse_interval, parse_time
from fishweir.records import dataclass


@dataclass(frozen=True, slots=True)
class Clauses:
    """The clauses after a query; `publish` is the name of its output stream, `expire_at` and `distinct_at` are the
    positions of these clauses, for errors."""

    actions: tuple[Action, ...] = ()
    start: Moment | None = None
    every: float | None = None
    expire: Moment | None = None
    expire_at: int = 0
    publish: str | None = None
    preference: Preference | None = None
    preference_at: int = 0
    distinct: Distinct | None = None
    distinct_at: int = 0

    @property
    def is_relative(self) -> bool:
        return any(moment is not None and moment.from_now for moment in (self.start, self.expire))

    def schedule(self, now: float) -> Schedule:
        """The schedule if registered now. Raises Rejected if the query would end before it starts."""
        start = None if self.start is None else self.start.at(now)
        expire = None if self.expire is None else self.expire.at(now)
        if start is not None and expire is not None and expire < start:
            raise Rejected("the query expires before it starts", self.expire_at)
        return Schedule(start, self.every, expire)


@v_args(inline=True)
class ScheduleTransformer(Transformer[Token, Any]):
    """Converts trees of schedule.lark to Clauses."""

    def clauses(self, *clauses: tuple[str, Any, int]) -> Clauses:
        found: dict[str, Any] = {}
        for name, value, at in clauses:
            if name == "actions":
                value = (*found.get(name, ()), value)
            elif name in found:
                raise Rejected(f"'{_KEYWORDS.get(name, name)}' is given twice", at, syntax=True)
            found[name] = value
            if name in ("expire", "preference", "distinct"):
                found[f"{name}_at"] = at
        return Clauses(**found)

    schedule = clauses

    def distinct(self, keyword: Token, *parts: Any) -> tuple[str, Any, int]:
        *keys, within, seconds = parts
        if seconds <= 0:
            raise Rejected("the interval of 'distinct on' must be longer than 0", _start(within))
        paths = tuple(_path(key) for key in keys)
        twice = next((key for i, key in enumerate(keys) if paths[i] in paths[:i]), None)
        if twice is not None:
            raise Rejected(f"'{twice}' is given twice", _start(twice))
        return "distinct", Distinct(paths, seconds), _start(keyword)

    def publish(self, _publish: Token, name: Token) -> tuple[str, Any, int]:
        given = plain(name).strip()
        if not given:
            raise Rejected("expected a name after 'publish', found an empty text", _start(name), syntax=True)
        return "publish", given, _start(name)

    def preference(self, keyword: Token, *parts: Any) -> tuple[str, Any, int]:
        scores = tuple(part for part in parts if isinstance(part, Score))
        ranking = next((part for part in parts if isinstance(part, tuple)), ())
        twice = _repeated([score.pattern for score in scores if score.condition is None] + list(ranking))
        if twice:
            raise Rejected(f"the preference of {'/'.join(twice)} is given twice", _start(keyword))
        return "preference", Preference(scores, ranking), _start(keyword)

    def score(self, pattern: Token, *rest: Token) -> Score:
        *condition, equals, number = rest
        if equals != "=":
            raise Rejected(f"expected '=' and a number from 0 to 1, found '{equals}'", _start(equals), syntax=True)
        utility = float(number)
        if not 0 <= utility <= 1:
            raise Rejected(f"a utility is a number from 0 to 1, found {number}", _start(number))
        names = _names(pattern)
        return Score(names, utility, _value_condition((), *condition) if condition else None)

    def ranking(self, first: Token, *rest: Token) -> tuple[tuple[str, ...], ...]:
        for op in rest[::2]:
            if op not in (">", "≻"):
                raise Rejected(f"expected '>' between the patterns of a ranking, found '{op}'", _start(op), syntax=True)
        return tuple(_names(pattern) for pattern in (first, *rest[1::2]))

    def preferred(self, path: Token, op: Token, literal: Token) -> Score:
        """A preference for documents that satisfy a condition."""
        return Score((), 1.0, _value_condition((), path, op, literal))

    def do_clause(self, keyword: Token, action: Action) -> tuple[str, Any, int]:
        return "actions", action, _start(keyword)

    def start_clause(self, keyword: Token, time: Moment) -> tuple[str, Any, int]:
        return "start", time, _start(keyword)

    def every_clause(self, keyword: Token, interval: float) -> tuple[str, Any, int]:
        return "every", interval, _start(keyword)

    def expire_clause(self, keyword: Token, time: Moment) -> tuple[str, Any, int]:
        return "expire", time, _start(keyword)

    def action(self, name: Token, *arguments: Token) -> Action:
        first_is_to = len(arguments) > 1 and arguments[0].lower() == "to"
        return Action(name.lower(), tuple(plain(word) for word in arguments[first_is_to:]))

    def argument(self, word: Token) -> Token:
        return word

    def time(self, *words: Token) -> Moment:
        try:
            return parse_time(_joined(words))
        except BadTime as error:
            raise Rejected(str(error), _start(words[0])) from None

    def interval(self, *words: Token) -> float:
        try:
            return parse_interval(_joined(words))
        except BadTime as error:
            raise Rejected(str(error), _start(words[0])) from None


_KEYWORDS = {"preference": "pref"}


def _value_condition(below: tuple[str, ...], path: Token, op: Token, literal: Token) -> ValueCondition:
    if op == "≻":
        raise Rejected("expected a comparison (= != < <= > >=)", _start(op), syntax=True)
    constant: Constant | None = unquote(literal) if literal[0] in OPENING_QUOTES else to_constant(literal)
    if constant is None:
        raise Rejected(f"the number {literal} is too large", _start(literal))
    return ValueCondition((*below, *_names(path)), to_operator(op), constant)


def _names(path: Token) -> tuple[str, ...]:
    """The names of a path, without its start, since a pattern is identified by the end of its path."""
    steps = [step for step in path.split("/") if step]
    return tuple(step.rpartition(":")[2] for step in steps if not step.startswith("$"))


def _repeated(patterns: list[tuple[str, ...]]) -> tuple[str, ...]:
    return next((one for i, one in enumerate(patterns) if one in patterns[:i]), ())


def _path(key: Token) -> tuple[Step, ...]:
    """`link`, `author/name`, `author.name` or `enclosure/@url`."""
    *inner, last = re.split(r"[/.]", key)
    if any(name.startswith("@") for name in inner):
        raise Rejected(f"'{key}' continues after an attribute: write title, author/name or enclosure/@url", _start(key))
    steps = [Step(name.rpartition(":")[2]) for name in inner]
    is_attribute = last.startswith("@")
    return (*steps, Step(last.lstrip("@").rpartition(":")[2], "attribute" if is_attribute else "child"))


def _joined(words: tuple[Token, ...]) -> str:
    return " ".join(plain(word) for word in words)


def _start(token: Token) -> int:
    return token.start_pos or 0

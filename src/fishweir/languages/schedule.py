"""The clauses `publish`, `do`, `start`, `every`, `expire` of a query of any language.

A grammar imports the rules of `schedule.lark` and its transformer inherits ScheduleTransformer; out
come Clauses. Times relative to now stay unresolved until `Clauses.schedule(now)`, so that a parsed
query may be kept and registered again later.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lark import Token, Transformer, v_args

from fishweir.algebra.nodes import Action, Schedule
from fishweir.languages.lexical import OPENING_QUOTES, unquote
from fishweir.languages.pieces import Rejected
from fishweir.languages.times import BadTime, Moment, parse_interval, parse_time


@dataclass(frozen=True, slots=True)
class Clauses:
    """What follows a query; `publish` is the name of its output stream, `expire_at` is where the expire clause stands,
    for errors."""

    actions: tuple[Action, ...] = ()
    start: Moment | None = None
    every: float | None = None
    expire: Moment | None = None
    expire_at: int = 0
    publish: str | None = None

    @property
    def is_relative(self) -> bool:
        return any(moment is not None and moment.from_now for moment in (self.start, self.expire))

    def schedule(self, now: float) -> Schedule:
        """The schedule when registered now; Rejected where the query would end before it starts."""
        start = None if self.start is None else self.start.at(now)
        expire = None if self.expire is None else self.expire.at(now)
        if start is not None and expire is not None and expire < start:
            raise Rejected("the query expires before it starts", self.expire_at)
        return Schedule(start, self.every, expire)


@v_args(inline=True)
class ScheduleTransformer(Transformer[Token, Any]):
    """Trees of schedule.lark to Clauses."""

    def clauses(self, *clauses: tuple[str, Any, int]) -> Clauses:
        found: dict[str, Any] = {}
        for name, value, at in clauses:
            if name == "actions":
                value = (*found.get(name, ()), value)
            elif name in found:
                raise Rejected(f"'{name}' is given twice", at, syntax=True)
            found[name] = value
            if name == "expire":
                found["expire_at"] = at
        return Clauses(**found)

    schedule = clauses

    def publish(self, _publish: Token, name: Token) -> tuple[str, Any, int]:
        given = plain(name).strip()
        if not given:
            raise Rejected("expected a name after 'publish', found an empty text", _start(name), syntax=True)
        return "publish", given, _start(name)

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


def plain(word: Token) -> str:
    """A quoted or bare word as plain text."""
    return unquote(word) if word[0] in OPENING_QUOTES else str(word)


def _joined(words: tuple[Token, ...]) -> str:
    return " ".join(plain(word) for word in words)


def _start(token: Token) -> int:
    return token.start_pos or 0

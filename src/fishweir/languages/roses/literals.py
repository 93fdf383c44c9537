"""Constants of conditions: how each is read from its literal, and which slot it fills. Used by RoSeS and SQL.

A literal's *kind* defines which texts can replace it without changing the query's shape. Its reader returns the
constant, or None for a text that needs a full parse. The binders use the same readers, so a statement found in the
SkeletonCache equals the result of a full parse.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import field, replace
from datetime import UTC, datetime
from typing import Generic, Literal, TypeVar

from fishweir.algebra.nodes import Constant, Slot
from fishweir.algebra.operators import ConstantKind
from fishweir.languages.lexical import NUMBER, OPENING_QUOTES, to_constant, unquote
from fishweir.languages.schedule import Clauses
from fishweir.languages.statement_text import Rejected
from fishweir.records import dataclass

Kind = Literal[
    "quoted", "number", "time", "untimed", "words", "link", "share", "string", "date", "keyword", "interval", "count",
    "items", "span", "string words", "string link",
]  # fmt: skip
ShapeType = TypeVar("ShapeType")

_DATE = re.compile(r"\s*\d{4}-\d{2}-\d{2}(?:[T ][\d:.]+)?\s*(?:Z|[+-]\d{2}(?::?\d{2})?)?\s*", re.ASCII | re.IGNORECASE)
_NUMBER = re.compile(NUMBER)
_AMOUNT = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
_WORD = re.compile(r"\w")


def _quoted(literal: str) -> str | None:
    return unquote(literal) if literal[:1] and literal[0] in OPENING_QUOTES else None


def _number(literal: str) -> float | None:
    return to_constant(literal) if _NUMBER.fullmatch(literal) else None


def _time(literal: str) -> float | None:
    """The seconds of an ISO date, quoted or bare."""
    text = _quoted(literal)
    return to_seconds(literal if text is None else text)


def _untimed(literal: str) -> str | None:
    """A text that is not a date: a date would be compared as a time."""
    text = _quoted(literal)
    return None if text is None or to_seconds(text) is not None else text


def _words(literal: str) -> str | None:
    text = _quoted(literal)
    return text if text and _WORD.search(text) else None


def _link(literal: str) -> str | None:
    text = _quoted(literal)
    return text if text and text.strip() else None


def _share(literal: str) -> float | None:
    number = _number(literal)
    return number if number is not None and 0 < number <= 1 else None


def _string(literal: str) -> str | None:
    """A text in SQL, where double quotes enclose a name."""
    return None if literal.startswith('"') else _quoted(literal)


def _string_words(literal: str) -> str | None:
    return None if literal.startswith('"') else _words(literal)


def _string_link(literal: str) -> str | None:
    return None if literal.startswith('"') else _link(literal)


def _date(literal: str) -> float | None:
    return None if literal.startswith('"') else _time(literal)


def _keyword(literal: str) -> str | None:
    """`true` and `false`, which are not literals but part of the skeleton."""
    return literal.lower() if literal.isalpha() else None


def _count(literal: str) -> float | None:
    """A number of rows: an integer above 0."""
    number = _number(literal)
    return number if number is not None and number >= 1 and number.is_integer() else None


def to_amount(literal: str) -> float | None:
    """The number of a window, which has no exponent in RoSeS."""
    return float(literal) if _AMOUNT.fullmatch(literal) else None


def _items(literal: str) -> float | None:
    number = to_amount(literal)
    return number if number is not None and number >= 1 and number.is_integer() else None


READERS: dict[Kind, Callable[[str], Constant | None]] = {
    "quoted": _quoted, "number": _number, "time": _time, "untimed": _untimed,
    "words": _words, "link": _link, "share": _share, "string": _string, "date": _date, "keyword": _keyword,
    "count": _count, "items": _items, "string words": _string_words, "string link": _string_link,
}  # fmt: skip
REFUSALS: dict[Kind, str] = {
    "quoted": "expected quoted text, found {}",
    "number": "{} is not a number, or it is too large",
    "time": "{} is not a date: write it as 2026-05-01 or 2026-05-01T12:00Z",
    "untimed": "expected quoted text, found {}",
    "words": "{} does not contain a word",
    "link": "{} is neither a URL nor a host",
    "share": "{} is not a share of words: expected a number above 0, at most 1",
    "string": "expected quoted text, found {}",
    "date": "{} is not a date: write it as '2026-05-01' or '2026-05-01T12:00Z'",
    "keyword": "expected true or false, found {}",
    "count": "'{}' is not a number of rows: expected a whole number above 0",
    "string words": "{} does not contain a word",
    "string link": "{} is neither a URL nor a host",
}
KINDS: dict[ConstantKind, Kind] = {"text": "quoted", "words": "words", "link": "link"}
"""How the constant of a condition on texts is read from its literal."""
SQL_KINDS: dict[ConstantKind, Kind] = {"text": "string", "words": "string words", "link": "string link"}
"""The same in SQL, where double quotes enclose a name."""
_NUMERIC = ("number", "time", "share", "date", "interval", "count")


def to_seconds(text: str) -> float | None:
    """The seconds since 1970 of an ISO date with or without a time of day; UTC if it has no zone."""
    if not _DATE.fullmatch(text):
        return None
    try:
        moment = datetime.fromisoformat(text.strip().upper())
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


@dataclass(frozen=True, slots=True)
class LiteralPlace:
    """The position of a slot's constant in the text, and its kind; for an interval, also the seconds of its unit."""

    start: int
    end: int
    kind: Kind
    unit: float = 1.0

    def moved(self, offset: int) -> LiteralPlace:
        return replace(self, start=self.start + offset, end=self.end + offset)


@dataclass(frozen=True, slots=True)
class Parsed(Generic[ShapeType]):
    """One query: its shape, its constants and their positions, and the clauses after it; see parsed.ParsedQuery."""

    shape: ShapeType
    constants: tuple[Constant, ...]
    places: tuple[LiteralPlace, ...]
    clauses: Clauses


@dataclass(slots=True)
class Constants:
    """The slots of one query in the order of its text; a literal that is used twice has one slot."""

    slots: dict[int, Slot] = field(default_factory=dict)
    values: list[Constant] = field(default_factory=list)
    places: list[LiteralPlace] = field(default_factory=list)

    def slot(self, literal: str, start: int, kind: Kind) -> Slot:
        """The slot of a literal. Raises Rejected if its text is not of its kind."""
        if start in self.slots:
            return self.slots[start]
        value = READERS[kind](literal)
        if value is None:
            raise Rejected(REFUSALS[kind].format(literal), start)
        slot = self.slots[start] = Slot(len(self.slots), "number" if kind in _NUMERIC else "string")
        self.values.append(value)
        self.places.append(LiteralPlace(start, start + len(literal), kind))
        return slot

    def placed(self, value: Constant, place: LiteralPlace) -> Slot:
        """The slot of a number that is read elsewhere, such as an interval."""
        slot = self.slots[place.start] = Slot(len(self.slots), "number")
        self.values.append(value)
        self.places.append(place)
        return slot

    def parsed(self, shape: Callable[[tuple[Slot, ...]], ShapeType], clauses: Clauses) -> Parsed[ShapeType]:
        return Parsed(shape(tuple(self.slots.values())), tuple(self.values), tuple(self.places), clauses)

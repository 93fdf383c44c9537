"""Times and intervals in statements: `3 months`, `daily`, `2026-05-01T12:00Z`, `now`.

Shared by all languages. Intervals become seconds; times become moments, which are seconds since 1970 or an offset from
now that is resolved at each registration.
"""

from __future__ import annotations

import math
import re

from fishweir.algebra.values import to_timestamp
from fishweir.records import dataclass

_DAY = 86400.0
_UNITS: tuple[tuple[float, str], ...] = (
    (0.001, "millisecond milliseconds ms"),
    (1.0, "second seconds sec secs s"),
    (60.0, "minute minutes min mins"),
    (3600.0, "hour hours h"),
    (_DAY, "day days d daily"),
    (7 * _DAY, "week weeks weekly"),
    (30 * _DAY, "month months monthly"),
    (365 * _DAY, "year years yearly"),
)
UNITS: dict[str, float] = {word: seconds for seconds, words in _UNITS for word in words.split()}
UNITS["hourly"] = 3600.0
ENDLESS = ("inf", "infinity", "∞")
_AMOUNT = re.compile(r"\s*([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)?\s*([^\W\d_]+)?\s*")


class BadTime(ValueError):
    """A text is not a time or not an interval. The message says why."""


@dataclass(frozen=True, slots=True)
class Moment:
    """Seconds since 1970, or seconds from now."""

    seconds: float
    from_now: bool = False

    def at(self, now: float) -> float:
        return now + self.seconds if self.from_now else self.seconds


def parse_interval(text: str) -> float:
    """The seconds of `5`, `5 minutes`, `minute` or `hourly`. Raises BadTime for anything else, and if negative."""
    match = _AMOUNT.fullmatch(text)
    if match is None or not (match[1] or match[2]):
        raise BadTime(f"'{text}' is not an interval: write a number and a unit, such as 10 minutes")
    number, unit = float(match[1] or 1), (match[2] or "s").lower()
    if unit not in UNITS:
        choices = "ms, seconds, minutes, hours, days, weeks, months or years"
        raise BadTime(f"'{match[2]}' is not a unit of time: write {choices}")
    if number < 0:
        raise BadTime(f"the interval '{text}' is negative")
    if not math.isfinite(number * UNITS[unit]):
        raise BadTime(f"the interval '{text}' is too long")
    return number * UNITS[unit]


def parse_window(text: str) -> float:
    """The seconds of an interval, or infinity for `INF`, `infinity` or `∞`."""
    return math.inf if text.strip().lower() in ENDLESS else parse_interval(text)


def parse_time(text: str) -> Moment:
    """The moment of `now`, `in 3 months`, `3 months`, a number of seconds since 1970, ISO 8601 or RFC 822."""
    words = text.strip().lower()
    if words == "now":
        return Moment(0.0, from_now=True)
    if words.startswith("in "):
        return Moment(parse_interval(text.strip()[3:]), from_now=True)
    seconds = to_timestamp(text)
    if seconds is not None and math.isfinite(seconds):
        return Moment(seconds)
    match = _AMOUNT.fullmatch(text)
    if match and match[1] and match[2]:
        return Moment(parse_interval(text), from_now=True)
    choices = "2026-05-01T12:00, seconds since 1970, 3 months (from now) or now"
    raise BadTime(f"'{text}' is not a time: write {choices}")

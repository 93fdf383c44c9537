"""Options after a target, available for every output: `secret NAME`, `at most N per hour`, `quiet 22:00-07:00`.

Secrets are referred to by name and looked up when something is sent: in the environment (FISHWEIR_SECRET_NAME) or in a
file (FISHWEIR_SECRET_NAME_FILE). `{secret NAME}` in an argument is replaced with the secret.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from datetime import datetime, timedelta, tzinfo
from pathlib import Path

from fishweir.records import dataclass

_SECRET = re.compile(r"\{secret\s+([\w.-]+)\}")
_HOURS = re.compile(r"(\d{1,2}):(\d{2})-(\d{1,2}):(\d{2})")


class BadArgument(ValueError):
    """An invalid argument: which word it is, and why."""

    def __init__(self, word: str, reason: str) -> None:
        super().__init__(reason)
        self.word, self.reason = word, reason


@dataclass(frozen=True, slots=True)
class Quiet:
    """Hours of the day, in minutes, in which nothing is sent; they may span midnight."""

    begin: int
    end: int
    zone: str = "UTC"

    def until(self, now: float) -> float | None:
        """The end of the current quiet hours, or None outside of them."""
        here = datetime.fromtimestamp(now, _zone(self.zone))
        minute = here.hour * 60 + here.minute
        inside = self.begin <= minute < self.end if self.begin < self.end else not self.end <= minute < self.begin
        if not inside:
            return None
        ends = here.replace(hour=self.end // 60, minute=self.end % 60, second=0, microsecond=0)
        return (ends if ends > here else ends + timedelta(days=1)).timestamp()


@dataclass(frozen=True, slots=True)
class Options:
    secret: str | None = None
    per_hour: int | None = None
    quiet: Quiet | None = None


NO_OPTIONS = Options()


def split_options(arguments: Sequence[str]) -> tuple[tuple[str, ...], Options]:
    """An output's own arguments, and the options after them."""
    if len(arguments) < 2:
        return tuple(arguments), NO_OPTIONS
    own, found = list(arguments), NO_OPTIONS
    at = next((i for i, _ in enumerate(own) if i and _begins_option(own, i)), len(own))
    rest, own = own[at:], own[:at]
    while rest:
        rest, found = _option(rest, found)
    return tuple(own), found


def _begins_option(words: Sequence[str], at: int) -> bool:
    word = words[at].lower()
    return word in ("secret", "quiet") or (word == "at" and words[at + 1 : at + 2] == ["most"])


def _option(words: list[str], found: Options) -> tuple[list[str], Options]:
    match [word.lower() for word in words]:
        case ["secret", _, *_]:
            return words[2:], Options(words[1], found.per_hour, found.quiet)
        case ["at", "most", count, "per", "hour", *_]:
            if not count.isdecimal() or int(count) < 1:
                raise BadArgument(words[2], f"'{words[2]}' is not a number of deliveries per hour")
            return words[5:], Options(found.secret, int(count), found.quiet)
        case ["quiet", _, *_]:
            quiet, used = _quiet(words)
            return words[used:], Options(found.secret, found.per_hour, quiet)
    expected = "expected 'secret NAME', 'at most N per hour' or 'quiet 22:00-07:00 [Europe/Paris]'"
    raise BadArgument(words[0], f"'{words[0]}' is not allowed here: {expected}")


def _quiet(words: list[str]) -> tuple[Quiet, int]:
    hours = _HOURS.fullmatch(words[1])
    numbers = [int(part) for part in hours.groups()] if hours else []
    if not numbers or max(numbers[0], numbers[2]) > 23 or max(numbers[1], numbers[3]) > 59:
        raise BadArgument(words[1], f"'{words[1]}' is not a range of hours: write quiet 22:00-07:00")
    begin, end = numbers[0] * 60 + numbers[1], numbers[2] * 60 + numbers[3]
    if begin == end:
        raise BadArgument(words[1], "quiet hours that start and end at the same time would block every delivery")
    has_zone = len(words) > 2 and ("/" in words[2] or words[2].upper() == "UTC")
    zone = words[2] if has_zone else "UTC"
    try:
        _zone(zone)
    except (KeyError, ValueError, OSError):
        raise BadArgument(zone, f"'{zone}' is not a time zone") from None
    return Quiet(begin, end, zone), 3 if has_zone else 2


def secret(name: str) -> str:
    """A secret by its name. Raises LookupError if there is none."""
    variable = "FISHWEIR_SECRET_" + re.sub(r"\W", "_", name).upper()
    if variable in os.environ:
        return os.environ[variable]
    if f"{variable}_FILE" in os.environ:
        return Path(os.environ[f"{variable}_FILE"]).read_text(encoding="utf-8").strip()
    raise LookupError(
        f"there is no secret {name}: set {variable}, or set {variable}_FILE to the path of a file that contains it"
    )


def with_secrets(text: str) -> str:
    return _SECRET.sub(lambda found: secret(found[1]), text)


def without_secrets(text: str) -> str:
    """The text with placeholders for secrets, for checks at registration, when secrets need not be known."""
    return _SECRET.sub("secret", text)


def _zone(name: str) -> tzinfo:
    from zoneinfo import ZoneInfo  # imported late: few deliveries have quiet hours

    return ZoneInfo(name)

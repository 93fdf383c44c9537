"""How values compare: strings exactly, numbers as numbers; used by the oracle and by the kernels."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any

from fishweir.algebra.nodes import Constant, Operator

COMPARE: dict[Operator, Callable[[Any, Any], bool]] = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt,
    "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip

NUMBER = re.compile(r"\s*[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?\s*", re.ASCII)


def to_number(text: str) -> float | None:
    """The number that a text represents, or None. `nan`, `inf`, `1_000` and words are not numbers."""
    return float(text) if NUMBER.fullmatch(text) else None


def satisfies(value: str, op: Operator, constant: Constant) -> bool:
    """Whether a node's string value satisfies `value op constant`."""
    if isinstance(constant, str):
        return COMPARE[op](value, constant)
    number = to_number(value)
    return number is not None and COMPARE[op](number, constant)


def to_text(value: Any) -> str:
    """The text of a tuple's value in XPath's notation: 5.0 is `5`, true is `true`."""
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return str(int(value)) if value.is_integer() else repr(float(value))
        case datetime():
            return (value if value.tzinfo else value.replace(tzinfo=UTC)).isoformat()
        case date():
            return value.isoformat()
        case _:
            return str(value)


def to_timestamp(text: str) -> float | None:
    """Seconds since 1970 from a number of seconds, ISO 8601 or RFC 822; None if the text is not a timestamp."""
    number = to_number(text)
    if number is not None:
        return number if math.isfinite(number) else None
    for parse in (datetime.fromisoformat, _rfc822):
        try:
            moment = parse(text.strip())
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
    return None


def _rfc822(text: str) -> datetime:
    from email.utils import parsedate_to_datetime  # imported late: it loads the whole package, including sockets

    return parsedate_to_datetime(text)

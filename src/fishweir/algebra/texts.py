"""The semantics of the built-in conditions on texts, links and dates, for single values. `operators.py` registers them;
the oracle and the final check of the kernels use them."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache

from fishweir.algebra.values import to_timestamp

SIMILAR = 0.5
"""Least Jaccard similarity of two word sets, unless a query says otherwise."""

_WORD = re.compile(r"\w+")
_LINK = re.compile(r"\bhttps?://[^\s<>\"']+", re.IGNORECASE)


def words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower()))


def contains(text: str, wanted: str) -> bool:
    """All words of `wanted` are words of the text, whatever their case; a text without words is contained in none."""
    return bool(words(wanted)) and words(wanted) <= words(text)


def similar(text: str, other: str, least: float = SIMILAR) -> bool:
    """Jaccard similarity of the word sets; two texts without words are not similar."""
    mine, yours = words(text), words(other)
    union = mine | yours
    return bool(union) and len(mine & yours) / len(union) >= least


def similar_constant(text: str, constant: str) -> bool:
    """The constant is `share<tab>text`: both belong to one condition, so they travel as one."""
    share, _, other = constant.partition("\t")
    return similar(text, other, float(share))


@lru_cache(maxsize=10_000)
def like_pattern(pattern: str, flags: re.RegexFlag = re.DOTALL) -> re.Pattern[str]:
    """SQL's pattern: `%` is any text, `_` any character."""
    parts = (".*" if c == "%" else "." if c == "_" else re.escape(c) for c in pattern)
    return re.compile("".join(parts), flags)


def like(text: str, pattern: str) -> bool:
    """Letters match in their own case, as in the standard."""
    return like_pattern(pattern).fullmatch(text) is not None


def ilike(text: str, pattern: str) -> bool:
    """As `like`; letters match in any case."""
    return like_pattern(pattern, re.DOTALL | re.IGNORECASE).fullmatch(text) is not None


def substring(text: str, part: str) -> bool:
    """XPath's contains(): the characters as they are, anywhere."""
    return part in text


def starts_with(text: str, beginning: str) -> bool:
    """XPath's starts-with()."""
    return text.startswith(beginning)


def links(text: str) -> list[str]:
    """The links in a text, in one spelling."""
    return [same_link(link) for link in _LINK.findall(text)]


def same_link(link: str) -> str:
    """Scheme and host in lower case, no `www.`, no scheme, no punctuation or slash at the end."""
    rest = re.sub(r"^https?://", "", link.strip(), flags=re.IGNORECASE).rstrip("/.,;:!?)")
    host, slash, path = rest.partition("/")
    return host.lower().removeprefix("www.") + slash + path


def references(text: str, target: str) -> bool:
    """Some link is the URL, or leads to the host."""
    wanted = same_link(target)
    return any(link == wanted or ("/" not in wanted and link.partition("/")[0] == wanted) for link in links(text))


def extends(text: str, target: str) -> bool:
    """Some link lies below the URL, or on the host or one of its subdomains."""
    wanted = same_link(target)
    return any(_extends(link, wanted) for link in links(text))


def _extends(link: str, wanted: str) -> bool:
    if "/" not in wanted:
        host = link.partition("/")[0]
        return host == wanted or host.endswith(f".{wanted}")
    return link == wanted or link.startswith((f"{wanted}/", f"{wanted}?", f"{wanted}#"))


def shares_link(text: str, target: str) -> bool:
    """Some link is the URL."""
    return same_link(target) in links(text)


def date_part(text: str, part: str) -> float | None:
    """Year, month, day or hour of the date a text spells, in UTC, or its seconds (`time`)."""
    seconds = to_timestamp(text)
    if seconds is None or part == "time":
        return seconds
    try:
        return float(getattr(datetime.fromtimestamp(seconds, UTC), part))
    except (OverflowError, ValueError, OSError):
        return None

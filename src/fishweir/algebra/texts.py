"""The semantics of the built-in conditions on texts, links and dates, for single values. `operators.py` registers them;
the oracle and the final check of the kernels use them."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache

from fishweir.algebra.values import to_timestamp

SIMILAR = 0.5
"""The minimum Jaccard similarity of two word sets, unless a query specifies another."""

_WORD = re.compile(r"\w+")
_LINK = re.compile(r"\bhttps?://[^\s<>\"']+", re.IGNORECASE)


def words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower()))


def contains(text: str, phrase: str) -> bool:
    """All words of `phrase` are words of the text, ignoring case. A phrase without words is contained in no text."""
    return bool(words(phrase)) and words(phrase) <= words(text)


def similar(text: str, other: str, least: float = SIMILAR) -> bool:
    """Whether the Jaccard similarity of the word sets is at least `least`. Two texts without words are not similar."""
    mine, yours = words(text), words(other)
    union = mine | yours
    return bool(union) and len(mine & yours) / len(union) >= least


def similar_constant(text: str, constant: str) -> bool:
    """`similar` with a constant `share<tab>text`: both belong to one condition, so they are stored as one constant."""
    share, _, other = constant.partition("\t")
    return similar(text, other, float(share))


@lru_cache(maxsize=10_000)
def like_pattern(pattern: str, flags: re.RegexFlag = re.DOTALL) -> re.Pattern[str]:
    """The regular expression of an SQL pattern: `%` is any text, `_` any character."""
    parts = (".*" if c == "%" else "." if c == "_" else re.escape(c) for c in pattern)
    return re.compile("".join(parts), flags)


def like(text: str, pattern: str) -> bool:
    """SQL's `like`: case-sensitive, as in the standard."""
    return like_pattern(pattern).fullmatch(text) is not None


def ilike(text: str, pattern: str) -> bool:
    """The same as `like`, ignoring case."""
    return like_pattern(pattern, re.DOTALL | re.IGNORECASE).fullmatch(text) is not None


def substring(text: str, part: str) -> bool:
    """XPath's contains(): the exact characters, anywhere in the text."""
    return part in text


def starts_with(text: str, beginning: str) -> bool:
    """XPath's starts-with()."""
    return text.startswith(beginning)


def links(text: str) -> list[str]:
    """The links in a text, normalized by `same_link`."""
    return [same_link(link) for link in _LINK.findall(text)]


def same_link(link: str) -> str:
    """A normalized link: host in lower case, without scheme, `www.` and trailing punctuation or slash."""
    rest = re.sub(r"^https?://", "", link.strip(), flags=re.IGNORECASE).rstrip("/.,;:!?)")
    host, slash, path = rest.partition("/")
    return host.lower().removeprefix("www.") + slash + path


def references(text: str, target: str) -> bool:
    """Some link equals the URL or leads to the host."""
    target = same_link(target)
    return any(link == target or ("/" not in target and link.partition("/")[0] == target) for link in links(text))


def extends(text: str, target: str) -> bool:
    """Some link is below the URL, or on the host or one of its subdomains."""
    target = same_link(target)
    return any(_extends(link, target) for link in links(text))


def _extends(link: str, target: str) -> bool:
    if "/" not in target:
        host = link.partition("/")[0]
        return host == target or host.endswith(f".{target}")
    return link == target or link.startswith((f"{target}/", f"{target}?", f"{target}#"))


def shares_link(text: str, target: str) -> bool:
    """Some link equals the URL."""
    return same_link(target) in links(text)


def date_part(text: str, part: str) -> float | None:
    """Year, month, day or hour of the date in a text, in UTC, or its seconds since 1970 (`time`)."""
    seconds = to_timestamp(text)
    if seconds is None or part == "time":
        return seconds
    try:
        return float(getattr(datetime.fromtimestamp(seconds, UTC), part))
    except (OverflowError, ValueError, OSError):
        return None

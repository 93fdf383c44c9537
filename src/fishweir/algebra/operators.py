"""Conditions on texts: their semantics, the type of their constant, and their keyword.

The registry is open. A condition registered here, by the package or by a program, is available in every language that
has infix conditions, in the oracle and in the evaluator. Its index over many constants is registered separately
(`evaluate/index/registry.py`). Without an index, its meaning is evaluated for each distinct pair of a value and a
constant.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Literal

from fishweir.algebra import texts
from fishweir.algebra.values import COMPARE
from fishweir.errors import QueryError
from fishweir.records import dataclass

ConstantKind = Literal["text", "words", "link"]
"""What a constant must be: any text, a text that contains a word, a URL or a host."""

_KEYWORD = re.compile(r"[^\W\d_][^\W_]*(?:[-_][^\W_]+)*")
_RESERVED = frozenset((
    "and", "or", "not", "in", "is", "between", "exists", "has", "as", "do", "start", "every", "expire", "where",
    "select", "from", "join", "with", "on", "null", "true", "false",
))  # fmt: skip


def _spelled(word: str) -> str:
    return word.lower().replace("_", "-")


@dataclass(frozen=True, slots=True)
class Condition:
    """`value KEYWORD 'constant'`. The meaning is a pure function of the value and the constant, and never raises."""

    name: str
    meaning: Callable[[str, str], bool]
    constant: ConstantKind = "text"
    keyword: str = ""
    """The word in statements; if empty, the name. Case is ignored, and `-` and `_` are the same."""
    selectivity: float = 0.05
    """The estimated share of values that satisfy it, if there are no statistics."""
    share: float | None = None
    """The default share of a condition that takes one (`similar(0.8)`). Its constant is then `share<tab>text`."""
    joins: bool = False
    """Whether annotation joins can use this condition to compare an item with one in the window."""

    @property
    def written(self) -> str:
        return _spelled(self.keyword or self.name)

    @property
    def type(self) -> str:
        """The type of its constants in templates and signatures. With a share, they are not plain words."""
        return "words" if self.constant == "words" and self.share is None else "string"


BUILT_IN = (
    Condition("contains", texts.contains, "words", selectivity=0.02, joins=True),
    Condition("similar", texts.similar_constant, "words", selectivity=0.05, share=texts.SIMILAR, joins=True),
    Condition("like", texts.like, selectivity=0.06),
    Condition("ilike", texts.ilike, selectivity=0.06),
    Condition("substring", texts.substring, selectivity=0.06),
    Condition("starts-with", texts.starts_with, selectivity=0.05),
    Condition("references", texts.references, "link", selectivity=0.03, joins=True),
    Condition("extends", texts.extends, "link", selectivity=0.04, joins=True),
    Condition("shares-link", texts.shares_link, "link", selectivity=0.03, joins=True),
)

_CONDITIONS: dict[str, Condition] = {condition.name: condition for condition in BUILT_IN}
_KEYWORDS: dict[str, Condition] = {condition.written: condition for condition in BUILT_IN}


def add_condition(condition: Condition) -> None:
    """Registers a condition. A program may replace its own condition; raises QueryError if the name or keyword is
    taken."""
    word = condition.written
    if not _KEYWORD.fullmatch(word) or word in _RESERVED:
        raise QueryError(f"'{word}' cannot be the keyword of a condition: expected one word that is not in use yet")
    existing, owner = _CONDITIONS.get(condition.name), _KEYWORDS.get(word)
    if condition.name in COMPARE or condition.name == "exists" or existing in BUILT_IN:
        raise QueryError(f"the condition '{condition.name}' is built in and cannot be replaced")
    if owner is not None and owner.name != condition.name:
        raise QueryError(f"'{word}' is already the keyword of the condition '{owner.name}'")
    if existing is not None:
        del _KEYWORDS[existing.written]
    _CONDITIONS[condition.name] = _KEYWORDS[word] = condition
    keywords.cache_clear()


def remove_condition(name: str) -> None:
    """Removes a program's condition from the registry."""
    if _CONDITIONS[name] in BUILT_IN:
        raise QueryError(f"the condition '{name}' is built in and cannot be removed")
    del _KEYWORDS[_CONDITIONS.pop(name).written]
    keywords.cache_clear()


def find_condition(op: str) -> Condition | None:
    """The condition on texts that an operator names; None for a comparison and `exists`.

    Raises QueryError if it is not registered in this process.
    """
    found = _CONDITIONS.get(op)
    if found is None and op not in COMPARE and op != "exists":
        raise QueryError(f"the condition '{op}' is not registered: call fishweir.register_condition before using it")
    return found


def has_share(op: str) -> bool:
    """Whether the constant of a condition is `share<tab>text`."""
    condition = find_condition(op)
    return condition is not None and condition.share is not None


def constant_place(op: str, index: int, share: int = -1) -> int | tuple[int, int]:
    """The position of a condition's constant, or the positions of its share (-1 for the default) and its text."""
    return (share, index) if has_share(op) else index


def constant_type(op: str, given: str) -> str:
    """The type of a constant in a template; `given` is the type of its literal."""
    condition = find_condition(op)
    return given if condition is None else condition.type


def condition_written(word: str) -> Condition | None:
    """The condition with this keyword."""
    return _KEYWORDS.get(_spelled(word))


@lru_cache(maxsize=1)
def keywords() -> tuple[str, ...]:
    """All keywords, longest first, so that a regular expression of alternatives matches the whole word. Returns the
    same object until a condition is registered."""
    return tuple(sorted(_KEYWORDS, key=lambda word: (-len(word), word)))


def keyword_pattern(words: tuple[str, ...]) -> str:
    """A regular expression for the keywords in any of their spellings."""
    return "|".join(re.escape(word).replace(r"\-", "[-_]") for word in words)


def registered_conditions() -> tuple[Condition, ...]:
    """The conditions that programs have added to the built-in ones."""
    return tuple(condition for condition in _CONDITIONS.values() if condition not in BUILT_IN)

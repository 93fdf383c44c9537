"""Parse once per shape: statements that differ only in constants and name share one parse.

One pattern splits a statement into its skeleton and its literals. The first full parse of a skeleton shows which
literals fill the slots of the query's conditions. Which of the others are arguments of actions is found by trial
(arguments.py). The rest (sources, output texts, times) are *structural*: their values are part of the key. A later
statement with the same key uses the parsed shape, its own constants and its own arguments. This is correct because
literals are split exactly as in the grammar, and literals of one kind can replace each other. In all other cases the
cache returns None and the caller parses in full, with good error messages.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from functools import partial
from typing import NamedTuple

from fishweir.algebra.feeds import CreateFeed, FeedQuery
from fishweir.algebra.nodes import Constant, CreateQuery, Schedule
from fishweir.algebra.operators import keywords
from fishweir.languages.arguments import MARK, Arguments, argument_by_trial, with_arguments
from fishweir.languages.lexical import COMMENT, NAME, OPENING_QUOTES, QUOTED, TEXT, to_constant, unquote
from fishweir.languages.parsed import AnyParsed, AnyPlace
from fishweir.languages.roses.literals import READERS, to_amount
from fishweir.languages.schedule import Clauses
from fishweir.languages.statement_text import Rejected
from fishweir.languages.times import BadTime, parse_window
from fishweir.records import dataclass

# Each alternative starts with a distinct character, so that the search skips quickly to the next one. Numbers are those
# of lexical.NUMBER that stand alone: the look-behind spans the character before them.
_FREE = r"(?<![\w.$@:/-].)"
_NUMBER = (
    rf"(?:[0-9]{_FREE}[0-9]*+(?:\.[0-9]*+)?|[+-]{_FREE}(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)|\.{_FREE}[0-9]++)"
    r"(?:[eE][+-]?[0-9]+)?(?![\w.])"
)
_QUOTED = "|".join(
    rf"{opening}[^{closing}]*+(?:{closing * 2}[^{closing}]*+)*+{closing}"
    for opening, closing in (('"', '"'), (r"'(?<!\w')", "'"), ("“", "”"), ("”", "”"))
)
_TEXT = rf">\s*+{TEXT}(?=</)"
_LITERAL = re.compile(rf"({_QUOTED}|{_TEXT}|{COMMENT}|{_NUMBER})")
KINDS = {"quoted": _QUOTED, "number": _NUMBER, "text": _TEXT}
"""The patterns of the kinds of literals."""
NO_KEYWORD = r"(?!(?:query|stream|feed)(?![\w.-]))"
_HEAD = re.compile(rf"create\s++((?:query|feed)\s++)?{NO_KEYWORD}({NAME}|{QUOTED})(?=\s)", re.IGNORECASE)
_PUBLISHED = re.compile(rf"\bpublish\s++({NAME})$", re.IGNORECASE)
_MAX_TEMPLATES = 20_000
_NOTHING = ("",)
"""The input for fixed constants if a statement has no literal."""

Key = tuple[object, ...]
_FIRST = dict.fromkeys(OPENING_QUOTES, "quoted") | dict.fromkeys("0123456789+-.", "number") | {">": "text"}


def _quoted(literal: str) -> Constant | None:
    return unquote(literal) if literal[0] in OPENING_QUOTES else None


def _text(literal: str) -> Constant | None:
    return literal[1:].strip() if literal[0] == ">" else None


Reader = Callable[[str], Constant | None]
_OWN: dict[str, Reader] = {"quoted": _quoted, "number": to_constant, "text": _text}
_READERS: dict[str, Reader] = {str(kind): read for kind, read in READERS.items()} | _OWN


def read_all(read: Reader, literals: Sequence[str]) -> list[Constant | None]:
    """The constants of literals of one kind."""
    if read is to_constant:
        numbers: list[Constant | None] = list(map(float, literals))
        if all(map(math.isfinite, numbers)):  # type: ignore[arg-type]
            return numbers
    distinct = set(literals)
    if 2 * len(distinct) > len(literals):
        return list(map(read, literals))
    found = {literal: read(literal) for literal in distinct}
    return [found[literal] for literal in literals]


@dataclass(frozen=True, slots=True)
class _Fixed:
    """Reads `true` and `false`, which are part of the skeleton, whatever the literal."""

    constant: Constant

    def __call__(self, _literal: str) -> Constant:
        return self.constant


@dataclass(frozen=True, slots=True)
class Interval:
    """Reads the amount of an interval whose unit is part of the skeleton, or a quoted interval."""

    unit: float

    def __call__(self, literal: str) -> Constant | None:
        if literal[0] in OPENING_QUOTES:
            try:
                return parse_window(unquote(literal))
            except BadTime:
                return None
        amount = to_constant(literal)
        seconds = None if amount is None else amount * self.unit
        return seconds if seconds is not None and 0 <= seconds < math.inf else None


@dataclass(frozen=True, slots=True)
class _Span:
    """Reads the amount of an interval that is longer than 0, as RoSeS writes it."""

    unit: float

    def __call__(self, literal: str) -> Constant | None:
        amount = to_amount(literal)
        return amount * self.unit if amount is not None and 0 < amount * self.unit < math.inf else None


class SplitStatement(NamedTuple):
    """A split statement; the skeleton begins with the kinds of head and literals."""

    name: str | None
    start: int
    skeleton: Key
    literals: Sequence[str]
    named: int = -1
    """The start of the name, if it is written without quotes."""

    def spans(self) -> list[tuple[int, int]]:
        """The start and end of each literal."""
        found, position = [], self.start
        for between, literal in zip(self.skeleton[2:], self.literals, strict=False):
            position += len(str(between))
            found.append((position, position + len(literal)))
            position += len(literal)
        return found


@dataclass(frozen=True, slots=True)
class _Template:
    """A parsed query; `schedule` is set if it does not depend on the time of registration."""

    query: AnyParsed
    schedule: Schedule | None


@dataclass(slots=True)
class _Family:
    """All queries of one skeleton: the positions of the constants and of the arguments of actions, and a template per
    combination of structural literals."""

    slots: tuple[tuple[int, Reader], ...]
    structural: tuple[int, ...]
    arguments: Arguments = ()
    templates: dict[tuple[str, ...], _Template] = field(default_factory=dict)


class SkeletonCache:
    """Parsed queries by skeleton, at most `limit`. The cache is cleared when it is full, and when conditions are
    registered, since a text may then have another meaning.
    """

    def __init__(self, limit: int = _MAX_TEMPLATES) -> None:
        self._limit = limit
        self._families: dict[Key, _Family] = {}
        self._words = keywords()
        self.size = 0

    def find(self, text: str, line: int, now: float) -> CreateQuery | CreateFeed | None:
        """The statement as a full parse would return it, or None if a full parse is needed."""
        if self._words is not keywords():
            self._clear()
        split = _split(text)
        family = self._families.get(split.skeleton) if split else None
        if split is None or family is None:
            return None
        literals = split.literals or _NOTHING
        template = family.templates.get(tuple([literals[i] for i in family.structural]))
        if template is None:
            return None
        constants = tuple([read(literals[i]) for i, read in family.slots])
        if None in constants:
            return None
        if split.skeleton[0] == "feed":
            assert split.name is not None
            assert isinstance(template.query.shape, FeedQuery)
            worth = template.query.clauses.preference
            return CreateFeed(split.name.strip(), template.query.shape, constants, text, line, preference=worth)  # type: ignore[arg-type]
        schedule = template.schedule or _schedule(template.query, now)
        if schedule is None:
            return None
        query = template.query
        published = split.skeleton[0] == "publish"
        return CreateQuery(
            query.shape,
            constants,  # type: ignore[arg-type]
            split.name,
            with_arguments(query.clauses.actions, family.arguments, literals),
            schedule,
            text,
            line,
            query.clauses.preference,
            published=published,
        )

    def slots(self, text: str) -> Slots | None:
        """The split text of a cached statement, and the roles of its literals."""
        split = _split(text)
        family = self._families.get(split.skeleton) if split else None
        if split is None or family is None:
            return None
        return Slots(split, family.slots, family.structural, family.arguments)

    def clauses(self, text: str) -> Clauses | None:
        """The clauses of a statement as a full parse would return them, but for their positions; None if a full parse
        is needed."""
        found = self.slots(text)
        if found is None or self._words is not keywords():
            return None
        literals = found.split.literals
        template = self._families[found.split.skeleton].templates.get(tuple([literals[i] for i in found.structural]))
        if template is None:
            return None
        clauses, publish = template.query.clauses, found.split.name if found.split.skeleton[0] == "publish" else None
        return replace(clauses, publish=publish, actions=with_arguments(clauses.actions, found.arguments, literals))

    def keep(self, text: str, query: AnyParsed, parse: Callable[[str], AnyParsed] | None = None) -> None:
        """Caches a full parse; positions of the query's constants are relative to the start of the text. With `parse`,
        which parses another text of the same form, arguments of actions are found."""
        split = _split(text)
        family = _family(split, query) if split else None
        if split and family and parse and query.clauses.actions and split.skeleton not in self._families:
            family = _with_arguments_of(family, split, text, query, parse)
        published = split is not None and split.skeleton[0] == "publish"
        if split is None or family is None or query.clauses.publish != (split.name if published else None):
            return
        if self.size >= self._limit or self._words is not keywords():
            self._clear()
        cached = self._families.setdefault(split.skeleton, family)
        if cached.slots != family.slots:
            return
        schedule = None if query.clauses.is_relative else query.clauses.schedule(0.0)
        cached.templates[tuple(split.literals[i] for i in cached.structural)] = _Template(query, schedule)
        self.size += 1

    def _clear(self) -> None:
        self._families.clear()
        self._words, self.size = keywords(), 0


class Slots(NamedTuple):
    """A split statement, its constant literals with their readers, its structural ones, and those that are arguments of
    actions."""

    split: SplitStatement
    constants: tuple[tuple[int, Reader], ...]
    structural: tuple[int, ...]
    arguments: Arguments


def split_literals(text: str) -> tuple[Key, list[str]]:
    """The skeleton of a text, which begins with the kinds of its literals, and the literals."""
    parts = _LITERAL.split(text)
    literals = parts[1::2]
    return (tuple([_FIRST.get(literal[0]) for literal in literals]), *parts[::2]), literals


def join_literals(skeleton: Key, literals: Sequence[str]) -> str:
    """The text, reassembled."""
    between = [str(part) for part in skeleton[1:]]
    return "".join([text for pair in zip(between, [*literals, ""], strict=True) for text in pair])


def _split(text: str) -> SplitStatement | None:
    """The statement without its literals; None for a head that needs a full parse."""
    head = _HEAD.match(text)
    if head is None:
        if text[:6].lower() == "create":
            return None
        name, start, kind, named = None, 0, "", -1
    else:
        name, start, kind = head[2], head.end(), (head[1] or "create").strip().lower()
        named = head.start(2)
        if name[0] in OPENING_QUOTES:
            name, named = unquote(name), -1
            if not name.strip():
                return None
    parts = _LITERAL.split(text[start:])
    literals = parts[1::2]
    published = _PUBLISHED.search(parts[-1]) if name is None else None
    if published is not None:
        name, kind, parts[-1] = published[1], "publish", parts[-1][: published.start(1)]
        named = len(text) - len(name)
    kinds = tuple([_FIRST.get(literal[0]) for literal in literals])
    return SplitStatement(name, start, (kind, kinds, *parts[::2]), literals, named)


def _schedule(query: AnyParsed, now: float) -> Schedule | None:
    try:
        return query.clauses.schedule(now)
    except Rejected:
        return None


def _reader(place: AnyPlace) -> Reader:
    if place.kind in ("interval", "span"):
        return (Interval if place.kind == "interval" else _Span)(place.unit)
    return _READERS[place.kind]


def _family(split: SplitStatement, query: AnyParsed) -> _Family | None:
    """The literals that are slots; None unless each constant is exactly one literal."""
    spans: dict[tuple[int, int], int] = {}
    for index, (literal, (start, end)) in enumerate(zip(split.literals, split.spans(), strict=True)):
        spans[end - len(literal.lstrip("> \t\r\n\f\v")), start + len(literal.rstrip())] = index
    slots: list[tuple[int, Reader]] = []
    places: tuple[AnyPlace, ...] = query.places
    for place, constant in zip(places, query.constants, strict=True):
        fixed = place.kind == "keyword"
        found = 0 if fixed else spans.get((place.start, place.end))
        if found is None:
            return None
        slots.append((found, _Fixed(constant) if fixed else _reader(place)))
    taken = {index for index, read in slots if not isinstance(read, _Fixed)}
    return _Family(tuple(slots), tuple(i for i in range(len(split.literals)) if i not in taken))


def _with_arguments_of(
    family: _Family, split: SplitStatement, text: str, query: AnyParsed, parse: Callable[[str], AnyParsed]
) -> _Family:
    """The family with those structural literals as arguments of actions that turn out to be."""
    found: list[tuple[int, int, int]] = []
    for at, (start, end) in enumerate(split.spans()):
        if at in family.structural and text[start] in OPENING_QUOTES:
            place = argument_by_trial(query, partial(parse, f"{text[:start]}'{MARK}'{text[end:]}"))
            found += [] if place is None else [(at, *place)]
    taken = {at for at, _, _ in found}
    return _Family(family.slots, tuple(at for at in family.structural if at not in taken), tuple(found))

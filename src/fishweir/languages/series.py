"""Series: statements of a script that differ only in names and constants, read together.

In: a script, and statements that were parsed one by one. Out: the queries or subscriptions behind them as columns
(algebra/uniform_queries.py, algebra/action_columns.py). Once many statements of one form (forms.py) have been parsed,
the following ones are read with one search. Forms that alternate are read with one pattern for all of them. A series
ends before the first statement that no pattern matches or that has an invalid constant. This statement is then parsed
like any other.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, islice, pairwise, takewhile
from operator import attrgetter

from fishweir.algebra.action_columns import ActionColumns, Subscriptions
from fishweir.algebra.feeds import CreateFeed, Subscribe, to_query
from fishweir.algebra.nodes import Action, Constant, CreateQuery, Statement
from fishweir.algebra.uniform_queries import MixedQueries, UniformQueries
from fishweir.languages.forms import Form, form_of, names_of
from fishweir.languages.lexical import GAP
from fishweir.languages.skeleton import SkeletonCache
from fishweir.languages.statement_text import StatementText
from fishweir.languages.subscriptions import all_like
from fishweir.records import dataclass

LEAST = 100
"""The number of statements of one shape after which the others are read as a series. Compiling the pattern takes as
long as reading about fifty statements."""
MOST = 20_000
"""The maximum number of statements that are read at once."""
MOST_FORMS = 8
"""The maximum number of alternating forms."""
Series = UniformQueries | MixedQueries | Subscriptions


@dataclass(frozen=True, slots=True, eq=False)
class _Known:
    """A form, and the first of its statements."""

    form: Form
    first: CreateQuery | Subscribe
    groups: int
    """The number of groups of its pattern, with the whole statement."""

    @property
    def may_alternate(self) -> bool:
        """Whether its queries can be bound before others that precede them: they have nothing that others read."""
        return isinstance(self.first, CreateQuery) and not self.first.published and not self.first.actions


class SeriesReader:
    """Reads the statements behind those that were parsed one by one."""

    def __init__(self, cache: SkeletonCache) -> None:
        self._cache = cache
        self._parsed: dict[object, tuple[object, int]] = {}
        """By what statements of one form have in common: their shape, and how many have been parsed."""
        self._known: dict[object, _Known | None] = {}
        """The forms of shapes of which many statements have been parsed; None if they cannot be read together."""
        self._expected: tuple[_Known, ...] = ()
        """The forms that the next series may have."""
        self._patterns: dict[tuple[_Known, ...], re.Pattern[str]] = {}
        self._was_short, self._pause, self._next_pause = False, 0, LEAST

    def behind(self, piece: StatementText, statement: Statement, end: int) -> Iterator[tuple[Series, int]]:
        """The queries or subscriptions that follow a statement, which ends at an offset: in chunks, each with the
        offset of its end."""
        known = self._form(piece.text, statement)
        if known is None or not self._is_promising(known):
            return
        count, counted, line = 0, piece.start, statement.line
        while True:
            chunk = _Chunk(piece.script, end, self._expected, self._pattern())
            if chunk.size:
                lines = chunk.lines(counted, line)
                counted, line, end = chunk.starts[-1], lines[-1], chunk.end
                yield chunk.queries(lines), end
            count += chunk.size
            if chunk.size < MOST:
                break
        self._was_short = count < LEAST
        self._pause, self._next_pause = (self._next_pause, 2 * self._next_pause) if self._was_short else (0, LEAST)

    def _form(self, text: str, statement: Statement) -> _Known | None:
        """The form of a statement, if enough statements like it have been parsed."""
        if not isinstance(statement, (CreateQuery, CreateFeed, Subscribe)) or (
            isinstance(statement, CreateFeed) and statement.replace
        ):
            return None
        first = to_query(statement) if isinstance(statement, CreateFeed) else statement
        like: object = statement.query if isinstance(statement, CreateFeed) else statement
        if isinstance(like, CreateQuery):
            like = like.shape
        key = _key(first, like)
        if key not in self._known:
            self._parsed[key] = like, self._parsed.get(key, (like, 0))[1] + 1
            if self._parsed[key][1] < LEAST:
                return None
            form = form_of(like, text, self._cache)
            self._known[key] = None if form is None else _Known(form, first, 1 + re.compile(form.pattern).groups)
        return self._known[key]

    def _is_promising(self, known: _Known) -> bool:
        """Whether to try a series. After a short one, another form may alternate with its forms; if none does, there is
        a pause."""
        if known not in self._expected:
            some = (*self._expected, known)
            joins = self._was_short and all(one.may_alternate for one in some)
            self._expected = some[-MOST_FORMS:] if joins else (known,)
            self._pause, self._next_pause = 0, LEAST
        self._pause -= 1
        return self._pause < 0

    def _pattern(self) -> re.Pattern[str]:
        """Matches one statement of the expected forms, or nothing."""
        if self._expected not in self._patterns:
            forms = "|".join(f"({known.form.pattern})" for known in self._expected)
            self._patterns[self._expected] = re.compile(rf"(?:{GAP}|;)*+(?:{forms}){GAP}*+(?:;|\Z)|")
        return self._patterns[self._expected]


def _key(first: CreateQuery | Subscribe, shape: object) -> tuple[object, ...]:
    """What statements of one form have in common."""
    if isinstance(first, Subscribe):
        return first.feed, first.action.name, first.stylesheet, first.schedule.start, first.schedule.expire
    return id(shape), tuple(action.name for action in first.actions), first.schedule, first.name is None


class _Chunk:
    """The statements at a position of a script that have one of some forms."""

    def __init__(self, script: str, position: int, expected: Sequence[_Known], pattern: re.Pattern[str]) -> None:
        self.script = script
        is_one = attrgetter("lastindex")  # the group of the form, since it is closed last
        found = list(takewhile(is_one, islice(pattern.finditer(script, position), MOST)))
        kinds, groups = list(map(is_one, found)), [match.groups() for match in found]
        self._parts: list[_Part] = []
        first = 1
        for known in expected:
            behind = first + known.groups
            is_only = len(expected) == 1
            places = range(len(found)) if is_only else [place for place, kind in enumerate(kinds) if kind == first]
            if places:
                columns = list(zip(*[groups[place][first - 1 : behind - 1] for place in places], strict=True))
                names, constants = names_of(known.form, columns), known.form.constants(columns)
                actions = known.form.actions(_actions(known.first), columns)
                self._parts.append(_Part(known.first, places, names, columns[0], constants, actions))
            first = behind
        self.size = min([len(found), *(part.valid for part in self._parts)])
        self.starts = [match.start(match.lastindex or 0) for match in found[: self.size]]
        self.end = found[self.size - 1].end() if self.size else position

    def lines(self, counted: int, line: int) -> list[int]:
        """The lines of the statements, given the line of an offset before them."""
        breaks = [self.script.count("\n", *between) for between in pairwise([counted, *self.starts])]
        return list(accumulate(breaks, initial=line))[1:]

    def queries(self, lines: Sequence[int]) -> Series:
        parts = [(part, part.until(self.size)) for part in self._parts]
        some = [(part.places[:size], part.queries(size, lines)) for part, size in parts if size]
        if len(some) == 1:
            return some[0][1]
        queries = [part for _, part in some if isinstance(part, UniformQueries)]
        return MixedQueries(queries, [place for places, _ in some for place in places])


def _actions(first: CreateQuery | Subscribe) -> tuple[Action, ...]:
    return first.actions if isinstance(first, CreateQuery) else (first.action,)


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """The statements of one form: their places in the chunk, and their columns up to the first invalid value."""

    first: CreateQuery | Subscribe
    places: Sequence[int]
    names: Sequence[str | None]
    texts: Sequence[str]
    constants: Sequence[tuple[Constant, ...]]
    actions: Sequence[ActionColumns]

    @property
    def valid(self) -> int:
        """The place of the first invalid statement, or a place behind all statements."""
        size = min(len(self.names), len(self.constants))
        return self.places[size] if size < len(self.places) else MOST

    def until(self, place: int) -> int:
        """The number of statements before a place."""
        return bisect_left(self.places, place)

    def queries(self, size: int, lines: Sequence[int]) -> UniformQueries | Subscriptions:
        names, texts, constants = self.names[:size], self.texts[:size], self.constants[:size]
        own = [lines[place] for place in self.places[:size]]
        actions = [column.at(range(size)) for column in self.actions]
        if isinstance(self.first, Subscribe):
            return all_like(self.first, texts, own, constants, actions)
        first = replace(self.first, name=names[0], text=texts[0], constants=constants[0], line=own[0])
        if actions:
            first = replace(first, actions=tuple([column.one(0) for column in actions]))
        return UniformQueries(first, names, texts, constants, own, actions)

"""Series: consecutive statements of a script that differ only in names and constants, read together.

In: a script, and the first statements of a series, parsed one by one. Out: the queries of the series as columns
(algebra/uniform_queries.py). The skeleton of a statement (skeleton.py) becomes a pattern for statements with the same
skeleton and the same structural literals, so a series is read with one search. It ends before the first statement that
the pattern does not match or that has an invalid constant. This statement is then parsed like any other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, islice, pairwise
from typing import NamedTuple

from fishweir.algebra.feeds import CreateFeed, to_query
from fishweir.algebra.nodes import Constant, CreateQuery, Statement
from fishweir.algebra.path_queries import Paths
from fishweir.algebra.uniform_queries import UniformQueries
from fishweir.languages.lexical import GAP, NAME, OPENING_QUOTES, QUOTED, unquote
from fishweir.languages.skeleton import KINDS, NO_KEYWORD, Reader, SkeletonCache, SplitStatement, read_all
from fishweir.languages.statement_text import StatementText

LEAST = 100
"""The number of consecutive statements of one shape after which they are read as a series. Compiling the pattern takes
as long as reading about fifty statements."""
MOST = 20_000
"""The maximum number of statements that are read at once."""
_MARKS = re.compile(r"[;\"'“”#]|--")
"""What might begin a quotation or a comment, or end a statement, depending on the literal before it."""

Columns = Sequence[Sequence[str]]
"""The groups of a pattern, each with the texts of all statements. The first group is the whole statement."""


class Form(NamedTuple):
    """What the statements of a series have in common."""

    pattern: str
    """Matches one statement; its groups are the name, if any, and what the constants are read from."""
    name: int | None
    """The group of the name; the statement itself is group 0."""
    constants: Callable[[Columns], Sequence[tuple[Constant, ...]]]
    """Reads the constants of all statements, up to the first with an invalid constant."""
    is_feed: bool = False


class Streak:
    """The last statements that were parsed one by one, as long as they have the same shape."""

    def __init__(self) -> None:
        self.count = 0
        self._least = LEAST
        self._shape: object = None
        self._start = 0
        self._first: CreateQuery | CreateFeed | None = None

    def is_long_with(self, statement: Statement, start: int) -> bool:
        """Adds a statement, which starts at this offset; whether the streak may now become a series."""
        shape: object = None
        if isinstance(statement, CreateQuery):
            shape = statement.shape
        elif isinstance(statement, CreateFeed) and not statement.replace:
            shape = statement.query
        if shape is None or shape is not self._shape:
            self._shape, self.count, self._start = shape, 0, start
            self._first = statement if isinstance(statement, (CreateQuery, CreateFeed)) else None
        self.count += 1
        return self.count == self._least and shape is not None

    def series(self, last: StatementText, cache: SkeletonCache) -> list[tuple[UniformQueries, int]]:
        """The queries from the start of the streak on, in chunks, each with the offset of its end; none unless the
        whole streak has the form of its last statement. The streak is over.
        """
        found = list(self._series(last, cache))
        self._shape = None
        if not found:
            self._least *= 2
        return found

    def _series(self, last: StatementText, cache: SkeletonCache) -> Iterator[tuple[UniformQueries, int]]:
        form = _form(self._shape, last.text, cache)
        if form is None or self._first is None:
            return
        pattern = re.compile(rf"(?:{GAP}|;)*+({form.pattern}){GAP}*+(?:;|\Z)|(?s:.++)")
        script, first, end = last.script, to_query(self._first), self._start
        least, counted, line = self.count, end, first.line
        while True:
            found = list(islice(pattern.finditer(script, end), MOST))
            columns = list(zip(*[match.groups() for match in found if match[1] is not None], strict=True))
            if not columns:
                return
            names, constants = _names(form, columns), form.constants(columns)
            size = min(len(names), len(constants))
            if size < least:
                return
            starts = [match.start(1) for match in found[:size]]
            breaks = [script.count("\n", *between) for between in pairwise([counted, *starts])]
            lines = list(accumulate(breaks, initial=line))[1:]
            end = found[size - 1].end()
            first = replace(first, name=names[0], text=columns[0][0], constants=constants[0], line=lines[0])
            yield UniformQueries(first, names[:size], columns[0][:size], constants[:size], lines), end
            if size < MOST:
                return
            least, counted, line = 1, starts[-1], lines[-1]


def _form(shape: object, text: str, cache: SkeletonCache) -> Form | None:
    """The form of a statement; None if statements of this form cannot be read together."""
    if isinstance(shape, Paths):
        from fishweir.languages.xscl.plain import path_form

        return path_form(text)
    found = cache.slots(text)
    return None if found is None else _literal_form(*found)


def _literal_form(split: SplitStatement, slots: Sequence[tuple[int, Reader]], structural: Sequence[int]) -> Form | None:
    """The form of statements that have this skeleton and these structural literals. Between two literals there is a
    text that is neither a mark nor empty, so where a literal begins and ends does not depend on the others.
    """
    kind, kinds, *between = split.skeleton
    if any(_MARKS.search(str(text)) for text in between) or not all(between[1:-1]):
        return None
    patterns, groups = [_HEADS[str(kind)]], dict[int, int]()
    for at, literal in enumerate(split.literals):
        patterns.append(re.escape(str(between[at])))
        if at in structural:
            patterns.append(re.escape(literal))
        else:
            groups[at] = len(groups) + 1 + (kind in _NAMED)
            patterns.append(f"({KINDS[kinds[at]]})")  # type: ignore[index]
    patterns.append(re.escape(str(between[-1])))
    if kind == "publish":
        patterns.append(f"({NAME})")
    fixed = split.literals or ("",)

    def constants(columns: Columns) -> Sequence[tuple[Constant, ...]]:
        count = len(columns[0])
        read = [
            read_all(reader, columns[groups[at]]) if at in groups else [reader(fixed[at])] * count
            for at, reader in slots
        ]
        valid = min((column.index(None) for column in read if None in column), default=count)
        return list(zip(*read, strict=True))[:valid] if read else [()] * count

    name = len(groups) + 1 if kind == "publish" else 1 if kind in _NAMED else None
    return Form("".join(patterns), name, constants, kind == "feed")


_NAMED = ("create", "query", "feed")
_HEADS = {"": "", "publish": ""} | {
    kind: rf"(?i:{words}\s++{NO_KEYWORD})({NAME}|{QUOTED})"
    for kind, words in zip(_NAMED, ("create", r"create\s++query", r"create\s++feed"), strict=True)
}


def _names(form: Form, columns: Columns) -> Sequence[str | None]:
    """The names of all statements, up to the first that is blank."""
    if form.name is None:
        return [None] * len(columns[0])
    names = [unquote(name) if name[0] in OPENING_QUOTES else name for name in columns[form.name]]
    stripped = [name.strip() for name in names]
    valid = stripped.index("") if "" in stripped else len(names)
    return (stripped if form.is_feed else names)[:valid]

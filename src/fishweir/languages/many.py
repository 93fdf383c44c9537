"""The queries or subscriptions of `register_many`: one text, many rows, parsed once.

In: a text with placeholders, and rows. Out: queries, grouped by those that differ only in name and constants
(algebra/uniform_queries.py), or subscriptions (algebra/action_columns.py). The first row is rendered and parsed like
any statement. The skeleton cache then knows which literals are constants and which are arguments of actions. If each
placeholder is the name or the path of a query, or lies within a literal, the other rows differ in nothing else, and are
read from the columns. This is correct because the values of a placeholder are literals of one kind, which can replace
each other (skeleton.py). In all other cases, each row is parsed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, groupby, islice, pairwise, repeat
from typing import NamedTuple

from fishweir.algebra.action_columns import Subscriptions, to_subscriptions
from fishweir.algebra.feeds import CreateFeed, Subscribe, to_query
from fishweir.algebra.nodes import Constant, CreateQuery
from fishweir.algebra.uniform_queries import UniformQueries, group_uniform
from fishweir.errors import QueryError
from fishweir.languages.arguments import all_with_arguments
from fishweir.languages.bulk import BadValue, Part, Row, compile_text, render_rows
from fishweir.languages.lexical import NAME
from fishweir.languages.script import parse_script, shared_cache
from fishweir.languages.skeleton import Reader, Slots, read_all
from fishweir.languages.subscriptions import SHARED, all_like
from fishweir.records import dataclass

CHUNK = 20_000
_CREATE = re.compile(r"create\s+query\s+", re.IGNORECASE)
_AS_SOURCE = re.compile(rf"\s+as\s+({NAME})", re.IGNORECASE)
_NAME, _PATH = 1, 3
"""The places of the name and the path among the parts of `create query $name as S$path`."""
Outs = list[Sequence[str] | str]
"""For each part of the text, the text of each row, or the text that all rows share."""


@dataclass(frozen=True, slots=True)
class _Literal:
    """A literal of the statements: the text of each row, or the shared text; and the placeholders within it."""

    texts: Sequence[str] | str
    parts: Sequence[int] = ()
    is_whole: bool = False
    """Whether it consists of exactly one placeholder."""

    def constants(self, read: Reader, count: int) -> Sequence[Constant | None]:
        if isinstance(self.texts, str):
            return [read(self.texts)] * count
        return read_all(read, self.texts) if self.is_whole else [read(text) for text in self.texts]


def parse_rows(text: str, rows: Iterable[Row], now: float) -> Iterator[UniformQueries]:
    """The queries of all rows, in order. Raises QueryError with the row of an invalid value."""
    for some in _chunks(text, rows):
        has_path = any(_is(part, "path") for part in some.parts)
        found = None if has_path else _uniform_rows(some, now)
        if found is not None:
            yield found
        elif has_path:
            yield from _with_paths(some, now)
        else:
            yield from group_uniform(_one_by_one(some, now), CHUNK)


def parse_subscriptions(text: str, rows: Iterable[Row], now: float) -> Iterator[Subscriptions]:
    """The same for subscriptions."""
    for some in _chunks(text, rows):
        found = _uniform_subscriptions(some, now)
        if found is None:
            rendered = some.rendered()
            found = to_subscriptions([statement for one in rendered for statement in _subscriptions_of(one, now)])
        yield found


class _Rows(NamedTuple):
    """Some consecutive rows: the text for each, the columns of the first row, the compiled text, and the number of rows
    before them."""

    text: str
    columns: Sequence[str]
    parts: Sequence[str | Part]
    rows: Sequence[Row]
    before: int

    def rendered(self) -> Iterator[str]:
        return render_rows(self.text, self.rows, self.columns, self.before)

    def between(self, start: int, end: int) -> _Rows:
        return self._replace(rows=self.rows[start:end], before=self.before + start)

    def outs(self) -> Outs | None:
        """The texts of the parts; None if a value is missing or invalid."""
        try:
            return [part if isinstance(part, str) else part.all(self.rows) for part in self.parts]
        except (KeyError, TypeError, BadValue):
            return None

    def valid(self) -> int:
        """The number of rows before the first with a missing or invalid value."""
        alone = (self.between(place, place + 1).outs() for place in range(len(self.rows)))
        return next((place for place, outs in enumerate(alone) if outs is None), len(self.rows))


def _chunks(text: str, rows: Iterable[Row]) -> Iterator[_Rows]:
    text = text.strip().removesuffix(";").rstrip()
    source, done, columns = iter(rows), 0, list[str]()
    while chunk := list(islice(source, CHUNK)):
        if not done and isinstance(chunk[0], Mapping):
            columns = list(chunk[0])
        yield _Rows(text, columns, compile_text(text, columns), chunk, done)
        done += len(chunk)


def _with_paths(some: _Rows, now: float) -> Iterator[UniformQueries]:
    """The queries of `create query $name as S$path` with their paths as constants; those of other texts, and those with
    other paths, one by one."""
    from fishweir.languages.xscl.plain import path_constants

    is_path_query = _is_path_query(some.parts)
    outs = some.outs() if is_path_query else None
    if outs is None:
        valid = some.valid() if is_path_query else 0
        if valid:
            yield from _with_paths(some.between(0, valid), now)
        yield from group_uniform(_one_by_one(some.between(valid, len(some.rows)), now), CHUNK)
        return
    constants = [path_constants(path) for path in outs[_PATH]]
    for is_path, places in groupby(range(len(constants)), lambda place: constants[place] is not None):
        start, *others = places
        end = start + 1 + len(others)
        own = some.between(start, end)
        cut: Outs = [out if isinstance(out, str) else out[start:end] for out in outs]
        found = _path_queries(own, cut, constants[start:end], now) if is_path else None  # type: ignore[arg-type]
        yield from group_uniform(_one_by_one(own, now), CHUNK) if found is None else [found]


def _is_path_query(parts: Sequence[str | Part]) -> bool:
    match parts:
        case [str(head), Part(kind="name"), str(between), Part(kind="path"), *_]:
            return bool(_CREATE.fullmatch(head) and _AS_SOURCE.fullmatch(between))
    return False


def _path_queries(
    some: _Rows, outs: Outs, constants: Sequence[tuple[Constant, ...]], now: float
) -> UniformQueries | None:
    """Queries that differ in their path and in arguments of their actions; None if they may differ in more."""
    from fishweir.languages.xscl.plain import clause_slots, scan_statement

    first = _text_of_first(outs)
    query = scan_statement(first, 1, now)
    slots = clause_slots(first, len(_text_of_first(outs[: _PATH + 1]))) if query else None
    read = _read(some.parts, outs, slots, (_NAME, _PATH)) if slots else None
    if query is None or slots is None or read is None:
        return None
    actions = all_with_arguments(query.actions, slots.arguments, read.arguments, len(constants))
    return UniformQueries(query, outs[_NAME], read.texts, constants, actions=actions)


def _one_by_one(some: _Rows, now: float) -> Iterator[CreateQuery]:
    for rendered in some.rendered():
        for statement in parse_script(rendered, now):
            if not isinstance(statement, CreateQuery) and (not isinstance(statement, CreateFeed) or statement.replace):
                raise QueryError(f"register_many accepts only queries and feeds, not: {rendered[:80]}")
            yield to_query(statement)


def _subscriptions_of(text: str, now: float) -> Sequence[Subscribe]:
    statements = parse_script(text, now)
    subscriptions = [statement for statement in statements if isinstance(statement, Subscribe)]
    if len(subscriptions) < len(statements):
        raise QueryError(f"register_many accepts only queries and subscriptions, and not both: {text[:80]}")
    return subscriptions


def _uniform_rows(some: _Rows, now: float) -> UniformQueries | None:
    """The queries of some rows as columns; None if they might not be uniform."""
    outs = some.outs()
    if outs is None:
        return None
    first = _text_of_first(outs)
    statements, slots = parse_script(first, now), shared_cache().slots(first)
    if slots is None or len(statements) != 1 or shared_cache().find(first, 1, now) != statements[0]:
        return None
    starts = _places(outs)
    named = [i for i, part in enumerate(some.parts) if _is(part, "name") and starts[i][0] == slots.split.named]
    read = _read(some.parts, outs, slots, named) if named else None
    if read is None:
        return None
    query = to_query(statements[0])
    actions = all_with_arguments(query.actions, slots.arguments, read.arguments, len(some.rows))
    return UniformQueries(query, outs[named[0]], read.texts, read.constants, actions=actions)


def _uniform_subscriptions(some: _Rows, now: float) -> Subscriptions | None:
    """The subscriptions of some rows as columns; None if they might not be uniform."""
    outs = some.outs()
    if outs is None:
        return None
    first = _text_of_first(outs)
    statements, slots = _subscriptions_of(first, now), SHARED.slots(first)
    read = _read(some.parts, outs, slots) if slots and len(statements) == 1 else None
    if slots is None or read is None or SHARED.find(first, 1, now) != statements[0]:
        return None
    actions = all_with_arguments((statements[0].action,), slots.arguments, read.arguments, len(some.rows))
    return all_like(statements[0], read.texts, [1] * len(some.rows), read.constants, actions)


class _Read(NamedTuple):
    """What is read from columns: the texts, the constants, and the literals of each argument of an action."""

    texts: Sequence[str]
    constants: Sequence[tuple[Constant, ...]]
    arguments: Sequence[Sequence[str] | str]


def _read(parts: Sequence[str | Part], outs: Outs, slots: Slots, apart: Sequence[int] = ()) -> _Read | None:
    """The columns of statements, given the roles of the literals of the first; None if the statements may differ in
    more than constants, arguments, and the parts that stand apart."""
    first, places = _text_of_first(outs), _places(outs)
    count = next((len(out) for out in outs if not isinstance(out, str)), 1)
    literals = [_literal(first, parts, outs, places, span) for span in slots.split.spans()]
    within = {i for literal in literals if literal is not None for i in literal.parts}
    if (
        None in literals
        or any(isinstance(part, Part) and i not in apart and i not in within for i, part in enumerate(parts))
        or any(literals[at].parts for at in slots.structural)  # type: ignore[union-attr]
    ):
        return None
    none = _Literal("")
    read = [(literals[at] if literals else none).constants(reader, count) for at, reader in slots.constants]  # type: ignore[union-attr]
    if any(None in column for column in read):
        return None
    constants = list(zip(*read, strict=True)) if read else [()] * count
    texts = list(map("".join, zip(*(repeat(out, count) if isinstance(out, str) else out for out in outs), strict=True)))
    return _Read(texts, constants, [literals[at].texts for at, _, _ in slots.arguments])  # type: ignore[union-attr]


def _text_of_first(outs: Outs) -> str:
    return "".join([out if isinstance(out, str) else out[0] for out in outs])


def _places(outs: Outs) -> Sequence[tuple[int, int]]:
    """Where each part begins and ends in the first statement."""
    return list(pairwise(accumulate((len(out if isinstance(out, str) else out[0]) for out in outs), initial=0)))


def _is(part: str | Part, kind: str) -> bool:
    return isinstance(part, Part) and part.kind == kind


def _literal(
    first: str, parts: Sequence[str | Part], outs: Outs, places: Sequence[tuple[int, int]], span: tuple[int, int]
) -> _Literal | None:
    """The literal at a position of the first statement; None if other rows may have something else there."""
    start, end = span
    covered = [i for i, (lo, hi) in enumerate(places) if lo < end and hi > start]
    within = [i for i in covered if isinstance(parts[i], Part)]
    if not within:
        return _Literal(first[start:end])
    if any(places[i][0] < start or places[i][1] > end for i in within):
        return None
    kinds = {part.kind for i in within if isinstance(part := parts[i], Part)}
    if kinds == {"literal"} and len(within) == 1:
        (only,) = within
        quoted = outs[only][0][0] == "'"
        if not all((out[0] == "'") is quoted and (quoted or out[0] in "+-.0123456789") for out in outs[only]):
            return None
        if places[only] == span:
            return _Literal(outs[only], within, True)
        if quoted or first[start] != ">":
            return None
    elif kinds != {"quoted"}:
        return None
    pieces = [_inside(outs[i], start - places[i][0], end - places[i][0]) for i in covered]
    return _Literal(list(map("".join, zip(*(_repeated(p) for p in pieces), strict=False))), within)


def _inside(out: Sequence[str] | str, start: int, end: int) -> Sequence[str] | str:
    """The part between two positions of a text that all rows share."""
    return out[max(0, start) : end] if isinstance(out, str) else out


def _repeated(out: Sequence[str] | str) -> Iterable[str]:
    return repeat(out) if isinstance(out, str) else out

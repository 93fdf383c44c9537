"""The queries of `register_many`: one text, many rows, parsed once.

In: a text with placeholders, and rows. Out: queries, grouped by those that differ only in name and constants
(algebra/uniform_queries.py). The first row is rendered and parsed like any statement. The skeleton cache then knows
which literals are constants. If each placeholder is the name or lies within a literal, the other rows differ in nothing
else, and their constants are read from the columns. This is correct because the values of a placeholder are literals of
one kind, which can replace each other (skeleton.py). In all other cases, each row is parsed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, islice, pairwise, repeat

from fishweir.algebra.feeds import CreateFeed, to_query
from fishweir.algebra.nodes import Constant, CreateQuery
from fishweir.algebra.uniform_queries import UniformQueries, group_uniform
from fishweir.errors import QueryError
from fishweir.languages.arguments import all_with_arguments
from fishweir.languages.bulk import BadValue, Part, Row, compile_text, render_rows
from fishweir.languages.lexical import NAME
from fishweir.languages.script import parse_script, shared_cache
from fishweir.languages.skeleton import Reader, read_all
from fishweir.records import dataclass

CHUNK = 20_000
_CREATE = re.compile(r"create\s+query\s+", re.IGNORECASE)
_AS_SOURCE = re.compile(rf"\s+as\s+({NAME})", re.IGNORECASE)
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
    text = text.strip().removesuffix(";").rstrip()
    source, done, columns = iter(rows), 0, list[str]()
    while chunk := list(islice(source, CHUNK)):
        if not done and isinstance(chunk[0], Mapping):
            columns = list(chunk[0])
        parts = compile_text(text, columns)
        found = None if any(_is(part, "path") for part in parts) else _uniform_rows(parts, chunk, now)
        if found is not None:
            yield found
        else:
            yield from _with_paths(text, columns, parts, chunk, done, now)
        done += len(chunk)


def _with_paths(
    text: str, columns: Sequence[str], parts: Sequence[str | Part], rows: Sequence[Row], before: int, now: float
) -> Iterator[UniformQueries]:
    """The queries of `create query $name as S$path` with their paths as constants; those of other texts one by one."""
    match parts:
        case [str(head), Part(kind="name"), str(between), Part(kind="path"), *rest] if all(map(_is_fixed, rest)):
            own = _CREATE.fullmatch(head) and _AS_SOURCE.fullmatch(between)
        case _:
            own = None
    if not own:
        yield from group_uniform(_one_by_one(text, columns, rows, before, now), CHUNK)
        return
    from fishweir.languages.xscl.plain import is_constant, scan, to_path_query

    behind, first = "".join(map(str, rest)), None
    names, texts, constants = list[str](), list[str](), list[tuple[Constant, ...]]()
    for number, row in enumerate(rows, before):
        try:
            name, path = parts[1].of(row), parts[3].of(row)  # type: ignore[union-attr]
        except (KeyError, TypeError, BadValue):
            found = None  # the error is reported below
        else:
            whole = f"{head}{name}{between}{path}{behind}"
            found = scan(whole, len(whole) - len(path) - len(behind) - len(own[1]))
        if found is not None and is_constant(found) and not first:
            first = to_path_query(found, name, whole, 1, now)
        if found is None or not first or not is_constant(found):
            if first and names:
                yield UniformQueries(first, names, texts, constants)
            first, names, texts, constants = None, [], [], []
            yield from group_uniform(_one_by_one(text, columns, [row], number, now), CHUNK)
            continue
        names.append(name)
        texts.append(whole)
        constants.append((found.path, *found.constants))
    if first:
        yield UniformQueries(first, names, texts, constants)


def _is_fixed(part: str | Part) -> bool:
    return isinstance(part, str)


def _one_by_one(
    text: str, columns: Sequence[str], rows: Sequence[Row], before: int, now: float
) -> Iterator[CreateQuery]:
    for rendered in render_rows(text, rows, columns, before):
        for statement in parse_script(rendered, now):
            if not isinstance(statement, CreateQuery) and (not isinstance(statement, CreateFeed) or statement.replace):
                raise QueryError(f"register_many accepts only queries and feeds, not: {rendered[:80]}")
            yield to_query(statement)


def _uniform_rows(parts: Sequence[str | Part], rows: Sequence[Row], now: float) -> UniformQueries | None:
    """The queries of some rows as columns; None if they might not be uniform."""
    try:
        outs: Outs = [part if isinstance(part, str) else part.all(rows) for part in parts]
    except (KeyError, TypeError, BadValue):
        return None
    first = "".join([out if isinstance(out, str) else out[0] for out in outs])
    statements = parse_script(first, now)
    split, slots, structural, arguments = shared_cache().slots(first) or (None, (), (), ())
    if split is None or len(statements) != 1 or shared_cache().find(first, 1, now) != statements[0]:
        return None
    places = list(pairwise(accumulate((len(o if isinstance(o, str) else o[0]) for o in outs), initial=0)))
    named = next((i for i, part in enumerate(parts) if _is(part, "name") and places[i][0] == split.named), -1)
    literals = [_literal(first, parts, outs, places, span) for span in split.spans()]
    within = {i for literal in literals if literal is not None for i in literal.parts}
    if (
        named < 0
        or None in literals
        or any(isinstance(part, Part) and i != named and i not in within for i, part in enumerate(parts))
        or any(literals[at].parts for at in structural)  # type: ignore[union-attr]
    ):
        return None
    none = _Literal("")
    read = [(literals[at] if literals else none).constants(reader, len(rows)) for at, reader in slots]  # type: ignore[union-attr]
    if any(None in column for column in read):
        return None
    constants = list(zip(*read, strict=True)) if read else [()] * len(rows)
    texts = list(map("".join, zip(*(repeat(o, len(rows)) if isinstance(o, str) else o for o in outs), strict=True)))
    query = to_query(statements[0])
    columns = [literals[at].texts for at, _, _ in arguments]  # type: ignore[union-attr]
    actions = all_with_arguments(query.actions, arguments, columns, len(rows))
    return UniformQueries(query, outs[named], texts, constants, actions=actions)


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

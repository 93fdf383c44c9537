"""Reads plain paths, the most common queries over documents, with a scanner instead of the grammar.

In: a text such as `S/a//b[@k = 'x']/c do notify`. Out: the same as from grammar and binder, or None if the text
contains anything else (variables, axes, functions, `or`, joins, errors): then the grammar decides, and reports errors.
A test compares the two on random texts. `scan_statement` keeps the path, for queries that have it as a constant
(algebra/path_queries.py).
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from fishweir.algebra.nodes import Constant, CreateQuery, Source
from fishweir.algebra.path_queries import path_shape, paths_over
from fishweir.languages.forms import Columns, Form, literals_pattern
from fishweir.languages.lexical import NAME, NUMBER, OPERATOR, QUOTED, to_constant, to_operator, unquote
from fishweir.languages.parsed import ConstantPlace, ParsedQuery
from fishweir.languages.schedule import Clauses
from fishweir.languages.skeleton import SkeletonCache, Slots, SplitStatement
from fishweir.languages.statement_text import Rejected, StatementText

_TAG = r"[^\W\d](?:[\w.]|-(?![->]))*+(?!:)"
_ELEMENT = rf"(?:{_TAG}|\*)"
_LITERAL = rf"(?=[0-9+\-\"'“”])(?:{QUOTED}|{NUMBER})"
_COMPARISON = rf" *+(?:{OPERATOR}) *+{_LITERAL}"
_PREDICATE = rf"\[ *+(?:\.(?!\.){_COMPARISON}|(?:{_ELEMENT}//?)*+@?{_ELEMENT}(?:{_COMPARISON})?) *+\]"
_PATH = rf"(?://?{_ELEMENT}(?:{_PREDICATE})*+)++(?://?@{_TAG})?|//@{_TAG}"
_NAMED_AS = rf"create\s++query\s++({NAME})\s++as\s++"
_QUERY = re.compile(
    rf"(?!(?:select|from|where|with|for|let)(?![\w.-]))({_TAG})({_PATH})"
    r"(?:\Z|(?=\s+(?:distinct|publish|pref|do|start|every|expires?)(?![\w.-])))",
    re.IGNORECASE,
)
"""Attributes occur only at the end, without predicates."""
_COMPARED = re.compile(rf"({OPERATOR}) *+(?:({QUOTED})|({NUMBER}))")
_NAMED = re.compile(_NAMED_AS, re.IGNORECASE)
_ONLY_PATH = re.compile(_PATH)
_NO_CLAUSES = Clauses()
_CACHE = SkeletonCache(1_000)


class Scanned(NamedTuple):
    """A plain path with `0` or `''` for each of its constants, and the text after it."""

    source: str
    path: str
    constants: tuple[Constant, ...]
    places: tuple[ConstantPlace, ...]
    clauses: Clauses


def scan_query(piece: StatementText) -> ParsedQuery | None:
    """The query of a plain path; None if the grammar is needed."""
    found = scan(piece.text)
    if found is None:
        return None
    return ParsedQuery(path_shape(Source(found.source), found.path), found.constants, found.places, found.clauses)


def scan(text: str, start: int = 0) -> Scanned | None:
    match = _QUERY.match(text, start)
    if match is None:
        return None
    clauses = _NO_CLAUSES if match.end() == len(text) else _clauses(text[match.end() :])
    if clauses is None:
        return None
    source, path = match.groups()
    if "[" not in path:
        return Scanned(source, path, (), (), clauses)
    cut, end, constants, places = list[str](), match.start(2), list[Constant](), list[ConstantPlace]()
    for literal in _COMPARED.finditer(text, *match.span(2)):
        op, quoted, number = literal.groups()
        constant = to_constant(number) if quoted is None else unquote(quoted)
        if constant is None:
            return None
        constants.append(constant)
        places.append(
            ConstantPlace(*literal.span(3 if quoted is None else 2), "number" if quoted is None else "quoted")
        )
        cut += (text[end : literal.start()], to_operator(op), "0" if quoted is None else "''")
        end = literal.end()
    cut.append(text[end : match.end(2)])
    return Scanned(source, "".join(cut), tuple(constants), tuple(places), clauses)


def is_constant(found: Scanned) -> bool:
    """Whether a query may have its path as a constant: nothing depends on its own shape, and texts are not ordered."""
    clauses = found.clauses
    if clauses is not _NO_CLAUSES and (clauses.publish or clauses.preference or clauses.distinct):
        return False
    return "[" not in found.path or _ORDERED.search(found.path) is None


_ORDERED = re.compile(r"[<>]=?''")


def scan_statement(text: str, line: int, now: float) -> CreateQuery | None:
    """`create query NAME as PATH` with the path as a constant; None for any other statement."""
    head = _NAMED.match(text)
    found = scan(text, head.end()) if head else None
    if head is None or found is None or not is_constant(found):
        return None
    return to_path_query(found, head[1], text, line, now)


def to_path_query(found: Scanned, name: str, text: str, line: int, now: float) -> CreateQuery | None:
    try:
        schedule = found.clauses.schedule(now)
    except Rejected:
        return None  # a full parse reports the position
    constants = (found.path, *found.constants)
    return CreateQuery(paths_over(found.source), constants, name, found.clauses.actions, schedule, text, line)


def path_form(text: str) -> Form | None:
    """The form of statements like a scanned one: with any path over the same source, and with the same clauses but for
    the arguments of actions."""
    head = _NAMED.match(text)
    query = _QUERY.match(text, head.end()) if head else None
    slots = clause_slots(text, query.end()) if query else None
    behind = literals_pattern(slots.split, slots.structural, 3) if slots else None
    if query is None or slots is None or behind is None:
        return None
    clauses, groups = behind
    arguments = tuple((groups[at], number, place) for at, number, place in slots.arguments)
    pattern = rf"(?i:{_NAMED_AS}){re.escape(query[1])}({_PATH}){clauses}"
    return Form(pattern, 1, _all_constants, arguments=arguments)


def clause_slots(text: str, at: int) -> Slots | None:
    """The clauses that begin at an offset of a text, as the skeleton cache splits them; None if they are wrong."""
    clauses = text[at:]
    if _clauses(clauses) is None:
        return None
    found = _CACHE.slots(f"s{clauses}")
    if found is None:  # it was full, or a condition has been registered: then all is forgotten
        _clauses.cache_clear()
        found = _CACHE.slots(f"s{clauses}") if _clauses(clauses) else None
    if found is None:
        return None
    kind, kinds, between, *others = found.split.skeleton
    skeleton = (kind, kinds, str(between)[1:], *others)
    return found._replace(split=SplitStatement(None, at, skeleton, found.split.literals))


def _all_constants(columns: Columns) -> list[tuple[Constant, ...]]:
    """The constants of statements, up to the first whose path cannot be one."""
    found = [_path_constants(path) for path in columns[2]]
    return found[: found.index(None)] if None in found else found  # type: ignore[return-value]


def path_constants(path: str) -> tuple[Constant, ...] | None:
    """The constants of a query that is this path; None if it cannot be a constant."""
    return _path_constants(path) if _ONLY_PATH.fullmatch(path) else None


def _path_constants(path: str) -> tuple[Constant, ...] | None:
    if "[" not in path:
        return (path,)
    parts, constants = _COMPARED.split(path), list[Constant]()
    for at in range(1, len(parts), 4):
        op, quoted, number = parts[at : at + 3]
        constant = to_constant(number) if quoted is None else unquote(quoted)
        if constant is None:
            return None
        constants.append(constant)
        parts[at : at + 3] = to_operator(op), "0" if quoted is None else "''", ""
    path = "".join(parts)
    return None if _ORDERED.search(path) else (path, *constants)


@lru_cache(maxsize=1_000)
def _clauses(text: str) -> Clauses | None:
    """The clauses after a path; None if they are wrong, or if one of their errors would need its position. They are
    parsed once for all arguments of actions, as the clauses of all documents of a stream."""
    from fishweir.languages.xscl.language import parse_query

    def parse(text: str) -> ParsedQuery:
        return parse_query(StatementText(text, 0, len(text)))

    clauses = _CACHE.clauses(f"s{text}")
    if clauses is None:
        try:
            parsed = parse(f"s{text}")
        except Rejected:
            return None
        _CACHE.keep(f"s{text}", parsed, parse)
        clauses = parsed.clauses
    return clauses if clauses == replace(clauses, expire_at=0, preference_at=0, distinct_at=0) else None

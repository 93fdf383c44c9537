"""SQL joins: `from R [range 10 seconds], S [rows 100] where ...`, or `R [...] join S [...] on ...`, of any number.

In: the tree of a query with several streams, and the windows in brackets after their names. Out: a Shape with a block
for each stream, one formula over the columns of all, the windows and the select list. `[range t]` keeps a tuple for t
seconds, `[rows n]` while it is among the newest n of its stream, `[range unbounded]` forever (as in CQL).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from sqlglot import exp

from fishweir.algebra.column_joins import in_block
from fishweir.algebra.formula import And, RelativePath
from fishweir.algebra.nodes import (
    AllColumnsOutput,
    Block,
    ColumnOutput,
    PatternNode,
    Shape,
    SideWindow,
    Slot,
    Source,
)
from fishweir.algebra.normal import ANY_ROOT
from fishweir.languages.roses.literals import Constants, LiteralPlace
from fishweir.languages.sql.columns import Columns, scope_of, steps_of, words
from fishweir.languages.sql.conditions import Conditions
from fishweir.languages.sql.text import Bracket, SqlText
from fishweir.languages.statement_text import Rejected
from fishweir.languages.times import ENDLESS, UNITS, BadTime, parse_window
from fishweir.records import dataclass

_HINT = "write [range 10 seconds], [rows 100] or, to keep all, [range unbounded]"
_WINDOW = re.compile(r"\[\s*(?P<word>\w*)\s*(?P<rest>.*?)\s*\]", re.DOTALL)
_AMOUNT = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?P<unit>\s*[^\W\d_]*)", re.DOTALL)
_JOIN_PARTS = {"this", "on", "kind"}
Shown = ColumnOutput | AllColumnsOutput


@dataclass(frozen=True, slots=True)
class Stream:
    """One stream of a from clause: its name there, its position, and its window in brackets."""

    source: Source
    name: str
    start: int
    bracket: Bracket


@dataclass(frozen=True, slots=True)
class JoinScope(Columns):
    """The streams of a join; each column names its stream."""

    streams: tuple[Stream, ...]

    def stream(self, name: str) -> int | None:
        return next((i for i, stream in enumerate(self.streams) if stream.name.lower() == name.lower()), None)

    def path(self, node: exp.Expr) -> RelativePath:
        parts = self.words(node)
        block = self.stream(parts[0].text) if len(parts) > 1 else None
        if block is None:
            shown = ".".join(part.text for part in parts)
            choice = " or ".join(f"{stream.name}.{shown}" for stream in self.streams)
            reason = f"'{shown}' is ambiguous in a join: write {choice}"
            if len(parts) > 1:
                names = ", ".join(stream.name for stream in self.streams)
                reason = f"there is no stream '{parts[0].text}' in the from clause ({names}); for a path in a"
                reason += f" document, write {choice}"
            raise Rejected(reason, self.place(node))
        return in_block(block, steps_of(parts[1:]))

    def columns(self, nodes: list[exp.Expr]) -> tuple[Shown, ...]:
        """The columns of the select list. A name that several columns share is prefixed with the stream, as in `*`."""
        found = [(node, part) for node in nodes for part in self._shown(node)]
        often = Counter(part.name for _, part in found if isinstance(part, ColumnOutput))
        found = [
            (node, replace(part, name=f"{self.streams[part.block].name}.{part.name}"))
            if isinstance(part, ColumnOutput) and often[part.name] > 1 and not isinstance(node, exp.Alias)
            else (node, part)
            for node, part in found
        ]
        often = Counter(part.name for _, part in found if isinstance(part, ColumnOutput))
        for node, part in found:
            if isinstance(part, ColumnOutput) and often[part.name] > 1:
                raise Rejected(f"the column '{part.name}' is given twice: name one with 'as'", self.place(node))
        return tuple(dict.fromkeys(part for _, part in found))

    def _shown(self, node: exp.Expr) -> list[Shown]:
        if isinstance(node, exp.Star):
            return [AllColumnsOutput(i, stream.name) for i, stream in enumerate(self.streams)]
        if isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
            (word,) = self.words(node)[:1]
            block = self.stream(word.text)
            if block is None:
                raise Rejected(f"there is no stream '{word.text}' in the from clause", word.start)
            return [AllColumnsOutput(block, self.streams[block].name)]
        name, path = self.column(node)
        return [ColumnOutput(name, int(path[0].name), path[1:])]


def bind_join(
    select: exp.Select, first: exp.Expr, query: SqlText, constants: Constants
) -> Callable[[tuple[Slot, ...]], Shape]:
    """A function from the slots to the shape of a join. Raises Rejected for binding errors."""
    joins = select.args["joins"]
    scope = _scope([first, *(join.this for join in joins)], query)
    for join in joins:
        _check(join, query)
    windows = tuple(_window(stream, query, constants) for stream in scope.streams)
    columns = scope.columns(select.expressions)
    conditions = Conditions(scope, constants)
    where = select.args.get("where")
    bound = [join.args["on"] for join in joins if join.args.get("on")] + ([where.this] if where else [])
    formulas = tuple(conditions.bind(node) for node in bound)
    blocks = tuple(Block(stream.source, PatternNode(ANY_ROOT)) for stream in scope.streams)
    formula = formulas[0] if len(formulas) == 1 else And(formulas)
    return lambda slots: Shape(blocks, (), (), slots, windows, formula=formula, columns=columns)


def _check(join: exp.Join, query: SqlText) -> None:
    extra = {key for key, value in join.args.items() if value} - _JOIN_PARTS
    if extra or join.args.get("kind") not in (None, "", "INNER", "CROSS"):
        what = "'using'" if "using" in extra else "this kind of join"
        raise Rejected(f"{what} is not supported: write 'join ... on R.x = S.x'", _start(join.this, query))


def _scope(tables: list[exp.Expr], query: SqlText) -> JoinScope:
    starts = [_start(table, query) for table in tables]
    streams: list[Stream] = []
    for table, start, stop in zip(tables, starts, [*starts[1:], len(query.text)], strict=True):
        scope = scope_of(table, query)
        alias = table.args.get("alias")
        name = words(alias, query)[0].text if alias else scope.source.name
        own = [bracket for bracket in query.brackets if start < bracket.start < stop]
        if not own:
            raise Rejected(f"'{name}' needs a window to be joined: {_HINT} after its name", start)
        if len(own) > 1:
            raise Rejected(f"'{name}' has two windows", own[1].start)
        if any(name.lower() == stream.name.lower() for stream in streams):
            raise Rejected(f"'{name}' is read twice: name both with 'as'", start)
        streams.append(Stream(scope.source, name, start, own[0]))
    return JoinScope(query, tuple(streams))


def _start(table: exp.Expr, query: SqlText) -> int:
    return min((word.start for word in words(table, query)), default=0)


def _window(stream: Stream, query: SqlText, constants: Constants) -> SideWindow:
    start, text = stream.bracket.start, query.at(stream.bracket.start, stream.bracket.end)
    match = _WINDOW.fullmatch(text)
    word = match["word"].lower() if match else ""
    if match is None or word not in ("range", "rows") or not match["rest"]:
        raise Rejected(f"'{text}' is not a window: {_HINT}", start)
    at, rest = start + match.start("rest"), match["rest"]
    if rest.lower() in (*ENDLESS, "unbounded"):
        return SideWindow(constants.placed(math.inf, LiteralPlace(at, at + len(rest), "keyword")))
    if word == "rows":
        return SideWindow(constants.slot(rest, at, "count"), rows=True)
    return SideWindow(_range(rest, at, constants))


def _range(text: str, at: int, constants: Constants) -> Slot:
    try:
        seconds = parse_window(text.strip("'\""))
    except BadTime as error:
        raise Rejected(str(error), at) from None
    match = _AMOUNT.fullmatch(text)
    if match is None:
        return constants.placed(seconds, LiteralPlace(at, at + len(text), "keyword"))
    unit = UNITS[match["unit"].strip().lower() or "s"]
    return constants.placed(seconds, LiteralPlace(at, at + len(match["number"]), "interval", unit))

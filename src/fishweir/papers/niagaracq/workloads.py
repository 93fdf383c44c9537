"""The query types of NiagaraCQ 5.1, in the paper's words, with constants drawn from the data.

In: a market, a type, a case and N. Out: a workload. It has per type the statement with `$` placeholders and the
constants as columns, so that the same queries go to the kernel as numbers and to `register_many` or `execute` as text.
Case "F=N" draws constants uniformly over the values in the data, so the number of fired queries varies. Case "F=100"
generates 100 queries that fire on the round of changed rows and others that do not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fishweir.algebra.clauses import constants_of, to_normals
from fishweir.algebra.documents import Element
from fishweir.algebra.nodes import Constant, CreateQuery
from fishweir.catalog.query_inserter import bound_shape
from fishweir.evaluate.query_rows import QueryRow
from fishweir.languages.bulk import render_rows, to_rows
from fishweir.languages.script import parse_script
from fishweir.papers.niagaracq.quotes import Market, Quote, parsed_companies

STREAM, COMPANIES = "quotes", "companies"
FIRED = 100
INDUSTRIES = 100
"""The same as in the paper's data."""
CASES = ("F=N", "F=100")

STATEMENTS = {
    "Type 1": """create $name where <Quotes><Quote><Symbol>"$symbol"</></> element_as $g </>
        in "quotes" construct $g""",
    "Type 2": """create $name where <Quotes><Quote><Change_Ratio>$c</></> element_as $g </>
        in "quotes", $c > $low construct $g""",
    "Type 2b": """create $name where <Quotes><Quote><Change_Ratio>$c</></> element_as $g </>
        in "quotes", $c > $low, $c < $high construct $g""",
    "Type 3": """create $name where <Quotes><Quote><Symbol>"$symbol"</><Current_Price>$p</></>
        element_as $g </> in "quotes", $p < $limit construct $g""",
    "Type 4": """create $name where <Quotes><Quote><Symbol>$s</><Industry>"$industry"</></> element_as $g </>
        in "quotes", <Companies><Company><Symbol>$s</></> element_as $t </> in "companies" construct $g, $t""",
}
JOIN = "Type 4"
MIX = "Type 1+3"
TYPES = (*STATEMENTS, MIX)

Columns = dict[str, Sequence[Constant]]


@dataclass(frozen=True)
class Part:
    """Queries of one statement. `columns` are in the order of the statement's constants."""

    type: str
    columns: Columns

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def constants(self) -> Iterator[tuple[Constant, ...]]:
        return zip(*self.columns.values(), strict=True)

    def rows(self, first: int = 0) -> pa.Table:
        """The rows for `register_many`, with names."""
        names = [f"{self.type.replace(' ', '')}-{i}" for i in range(first, first + len(self))]
        return pa.table({"name": names, **{name: pa.array(values) for name, values in self.columns.items()}})

    def texts(self) -> Iterator[str]:
        """The statements as text."""
        return render_rows(STATEMENTS[self.type], to_rows(self.rows()))

    def parsed(self) -> CreateQuery:
        """The first query, parsed. The others differ from it in constants only."""
        (query,) = parse_script(next(self.texts()))
        assert isinstance(query, CreateQuery)
        return query


@dataclass(frozen=True)
class Counts:
    """Counts of fired queries, (query, row) pairs, and rows of the results table."""

    fired: int
    pairs: int
    result_rows: int


@dataclass(frozen=True)
class Companies:
    """The companies that the queries of type 4 join the quotes with: parsed, and indexed by symbol for contestants that
    use an index."""

    rows: Sequence[Element]

    @cached_property
    def symbols(self) -> frozenset[str]:
        return frozenset(row.findtext("Symbol", "") for row in self.rows)


@dataclass(frozen=True)
class Workload:
    type: str
    case: str
    parts: tuple[Part, ...]
    joined: tuple[Companies, ...] = ()
    """The companies that the quotes are joined with; empty except for type 4."""

    @property
    def size(self) -> int:
        return sum(len(part) for part in self.parts)

    def planned(self) -> Iterator[QueryRow]:
        """The queries in the planner's form, numbered across the parts."""
        number = 0
        for part in self.parts:
            query = part.parsed()
            (normal,) = to_normals(bound_shape(query))
            fixed = query.constants[len(part.columns) :]
            for constants in part.constants():
                yield number, normal.template, constants_of(normal, (*constants, *fixed))
                number += 1


def make_workload(type: str, case: str, n: int, market: Market, changed: Sequence[Quote], seed: int = 1) -> Workload:
    """N queries of a type. `changed` is the round on which they are evaluated."""
    draw = np.random.default_rng(seed)
    half = FIRED // 2
    shares = [("Type 1", n // 2, half), ("Type 3", n - n // 2, half)] if type == MIX else [(type, n, FIRED)]
    if case == "F=N":
        parts = [Part(kind, _UNIFORM[kind](draw, size, market.today)) for kind, size, _ in shares]
    else:
        parts = [Part(kind, _some(kind, draw, size, fired, market, changed)) for kind, size, fired in shares]
    joined = (Companies(parsed_companies(market.companies)),) if type == JOIN else ()
    return Workload(type, case, tuple(parts), joined)


def all_fire(n: int, changed: Sequence[Quote], seed: int = 1) -> Workload:
    """Type 1 with symbols of the changed rows only: F = N exactly (experiment 2)."""
    return Workload("Type 1", "F=N", (Part("Type 1", _symbols(np.random.default_rng(seed), n, changed)),))


def _some(kind: str, draw: Any, n: int, fired: int, market: Market, changed: Sequence[Quote]) -> Columns:
    """`fired` queries that fire on the round and others that do not, in random order."""
    fired = min(fired, n)
    firing = _FIRING[kind](draw, fired, changed)
    silent = _SILENT[kind](draw, n - fired, market.today[len(changed) :], changed)
    order = draw.permutation(n)
    mixed = {name: [*firing[name], *silent[name]] for name in firing}
    return {name: [values[i] for i in order] for name, values in mixed.items()}


# Constants drawn uniformly over the values in the data.


def _symbols(draw: Any, n: int, quotes: Sequence[Quote]) -> Columns:
    return {"symbol": [quotes[i].symbol for i in draw.integers(0, len(quotes), n)]}


def _lows(draw: Any, n: int, quotes: Sequence[Quote]) -> Columns:
    return {"low": draw.choice(_ratios(quotes), n).tolist()}


def _ranges(draw: Any, n: int, quotes: Sequence[Quote]) -> Columns:
    ends = np.sort(draw.choice(_ratios(quotes), (n, 2)), axis=1)
    return {"low": ends[:, 0].tolist(), "high": ends[:, 1].tolist()}


def _limits(draw: Any, n: int, quotes: Sequence[Quote], lowest: float = 0.8, highest: float = 1.2) -> Columns:
    """Prices around the symbol's own."""
    chosen = [quotes[i] for i in draw.integers(0, len(quotes), n)]
    factors = draw.uniform(lowest, highest, n)
    limits = [round(float(q.price * f), 6) for q, f in zip(chosen, factors, strict=True)]
    return {"symbol": [q.symbol for q in chosen], "limit": limits}


def _industries(draw: Any, n: int, quotes: Sequence[Quote]) -> Columns:
    return {"industry": draw.choice(sorted({quote.industry for quote in quotes} - {""}), n).tolist()}


_UNIFORM: dict[str, Callable[..., Columns]] = {
    "Type 1": _symbols, "Type 2": _lows, "Type 2b": _ranges, "Type 3": _limits, "Type 4": _industries,
}  # fmt: skip

# Queries that fire on at least one of the changed rows.


def _firing_lows(draw: Any, n: int, changed: Sequence[Quote]) -> Columns:
    return {"low": draw.choice(_ratios(changed)[:-1], n).tolist()}


def _firing_ranges(draw: Any, n: int, changed: Sequence[Quote]) -> Columns:
    """Ranges around one value, from below it to above it."""
    values = _ratios(changed)
    at = draw.integers(1, len(values) - 1, n)
    return {"low": values[at - 1].tolist(), "high": values[at + 1].tolist()}


def _firing_limits(draw: Any, n: int, changed: Sequence[Quote]) -> Columns:
    return _limits(draw, n, changed, 1.01, 1.2)


_FIRING: dict[str, Callable[..., Columns]] = {
    "Type 1": _symbols, "Type 2": _firing_lows, "Type 2b": _firing_ranges, "Type 3": _firing_limits,
    "Type 4": _industries,
}  # fmt: skip

# Queries that do not fire: on symbols that did not change, above every ratio, between two ratios, or on industries
# without stocks (in every industry of the data some stock may have changed).


def _silent_symbols(draw: Any, n: int, others: Sequence[Quote], _: Sequence[Quote]) -> Columns:
    return _symbols(draw, n, others)


def _silent_lows(draw: Any, n: int, _: Sequence[Quote], changed: Sequence[Quote]) -> Columns:
    largest = float(_ratios(changed)[-1])
    return {"low": draw.uniform(largest, largest + 1, n).tolist()}


def _silent_ranges(draw: Any, n: int, _: Sequence[Quote], changed: Sequence[Quote]) -> Columns:
    values = _ratios(changed)
    at = draw.integers(0, len(values) - 1, n)
    ends = np.sort(draw.uniform(values[at], values[at + 1], (2, n)), axis=0)
    return {"low": ends[0].tolist(), "high": ends[1].tolist()}


def _silent_limits(draw: Any, n: int, others: Sequence[Quote], _: Sequence[Quote]) -> Columns:
    return _limits(draw, n, others)


def _silent_industries(draw: Any, n: int, _: Sequence[Quote], __: Sequence[Quote]) -> Columns:
    return {"industry": [f"No stocks {i}" for i in draw.integers(0, INDUSTRIES, n)]}


_SILENT: dict[str, Callable[..., Columns]] = {
    "Type 1": _silent_symbols, "Type 2": _silent_lows, "Type 2b": _silent_ranges, "Type 3": _silent_limits,
    "Type 4": _silent_industries,
}  # fmt: skip


def _ratios(quotes: Sequence[Quote]) -> NDArray[np.float64]:
    """The distinct change ratios, ascending."""
    return np.unique([quote.ratio for quote in quotes])

"""The two contestants of NiagaraCQ 5.2, and the check that they return the same results.

Grouped is Fishweir's kernel as the worker runs it: witnesses of the parsed rows, then every constant table. For the
join of type 4 it is in niagaracq/joined.py. Non-grouped evaluates each query by itself, as a compiled closure over the
same parsed rows, in memory. A third contestant is in between: it evaluates each query by itself, but on values that
were extracted from the XML once for all queries. It shares the walk, which the paper's non-grouped queries do not, and
is compared with matching.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fishweir.algebra.documents import Document, Element
from fishweir.algebra.join_oracle import evaluate_join
from fishweir.algebra.nodes import CreateQuery, Shape, Source
from fishweir.algebra.oracle import evaluate
from fishweir.evaluate.arrays import Ints, expand
from fishweir.evaluate.group import Group
from fishweir.evaluate.matches import Matches
from fishweir.evaluate.plan.plan import plan_of
from fishweir.evaluate.plan.segments import build_groups, planned_segment
from fishweir.languages.script import parse_script
from fishweir.papers.niagaracq.joined import GroupedJoin, company_documents, quote_documents
from fishweir.papers.niagaracq.quotes import CONTEXT
from fishweir.papers.niagaracq.workloads import STREAM, Companies, Counts, Workload

ROWS_AT_ONCE = 1_000
"""The same as pipeline.worker.DOCUMENTS_AT_ONCE, which cannot be imported without Spark."""
OTHERS = 20
"""Number of companies that the oracle tries regardless of their symbol."""

Found = list[tuple[int, int, Matches]]
"""Chunk of rows, table, matches."""


class Disagreement(AssertionError):
    """The contestants return different results, so no time is printed."""


class Grouped:
    """One shared plan for all queries."""

    name = "grouped"

    def __init__(self, workload: Workload) -> None:
        self.segment = planned_segment("bench", build_groups(workload.planned(), {}), {})
        self.plan = plan_of([self.segment], [Source(STREAM)])

    def extract(self, rows: Sequence[Element]) -> list[Any]:
        """The witnesses, in chunks of the worker's size."""
        return [self._witnesses(rows[i : i + ROWS_AT_ONCE]) for i in range(0, len(rows), ROWS_AT_ONCE)]

    def _witnesses(self, rows: Sequence[Element]) -> Any:
        walk = self.plan.start()
        for i, row in enumerate(rows):
            walk.add(i, row, CONTEXT)
        return walk.tables()

    def match(self, chunks: list[Any]) -> Found:
        return [(i, at, found) for i, chunk in enumerate(chunks) for _, at, found in self.plan.match(chunk)]

    def counts(self, found: Found) -> Counts:
        """Counts from the slices, without listing the pairs of many queries."""
        numbers = [_fired(self.segment.groups[at], matches) for _, at, matches in found]
        fired = len(np.unique(np.concatenate(numbers))) if numbers else 0
        pairs = sum(int((m.slices[1::2] - m.slices[::2]).sum()) + len(m.members) for _, _, m in found)
        return Counts(fired, pairs, sum(len(m) for _, _, m in found))

    def pairs(self, found: Found) -> set[tuple[int, int]]:
        """All (query, row) pairs, expanded."""
        result: set[tuple[int, int]] = set()
        for chunk, at, matches in found:
            rows = matches.documents + chunk * ROWS_AT_ONCE
            of_slices, positions = expand(matches.slices[::2], matches.slices[1::2])
            numbers = np.asarray(self.segment.groups[at].members)[positions]
            by_slice = np.repeat(rows, np.diff(matches.slice_offsets) // 2)[of_slices]
            result.update(zip(numbers.tolist(), by_slice.tolist(), strict=True))
            by_member = np.repeat(rows, np.diff(matches.member_offsets))
            result.update(zip(matches.members.tolist(), by_member.tolist(), strict=True))
        return result


def _fired(table: Group, matches: Matches) -> Ints:
    """The queries with at least one row: those in some slice, and those listed."""
    depth = np.zeros(len(table.members) + 1, np.int64)
    np.add.at(depth, matches.slices[::2], 1)
    np.add.at(depth, matches.slices[1::2], -1)
    under = np.asarray(table.members)[np.cumsum(depth)[:-1] > 0]
    return np.concatenate([under, matches.members])


def grouped_of(workload: Workload) -> Any:
    """The kernel for the workload: a join, or selections."""
    return GroupedJoin(workload) if workload.joined else Grouped(workload)


Row = tuple[int, str, float, float, str]
"""Number, symbol, price, ratio, industry."""
Evaluate = Callable[[list[Row]], list[Row]]
Alone = Callable[[Sequence[Element]], list[Element]]


def _symbol_is(symbol: str) -> Evaluate:
    return lambda rows: [row for row in rows if row[1] == symbol]


def _ratio_above(low: float) -> Evaluate:
    return lambda rows: [row for row in rows if row[3] > low]


def _ratio_between(low: float, high: float) -> Evaluate:
    return lambda rows: [row for row in rows if low < row[3] < high]


def _symbol_below(symbol: str, limit: float) -> Evaluate:
    return lambda rows: [row for row in rows if row[1] == symbol and row[2] < limit]


def _industry_joined(industry: str, companies: Companies) -> Evaluate:
    """Evaluates with an index of the companies that all queries share."""
    symbols = companies.symbols
    return lambda rows: [row for row in rows if row[4] == industry and row[1] in symbols]


COMPILED: dict[str, Callable[..., Evaluate]] = {
    "Type 1": _symbol_is, "Type 2": _ratio_above, "Type 2b": _ratio_between, "Type 3": _symbol_below,
    "Type 4": _industry_joined,
}  # fmt: skip


def child_text(row: Element, tag: str) -> str:
    """The text of a child. Faster than lxml's findtext."""
    for child in row:
        if child.tag == tag:
            return child.text or ""
    return "nan"


def _symbol_is_alone(symbol: str) -> Alone:
    return lambda rows: [row for row in rows if child_text(row, "Symbol") == symbol]


def _ratio_above_alone(low: float) -> Alone:
    return lambda rows: [row for row in rows if float(child_text(row, "Change_Ratio")) > low]


def _ratio_between_alone(low: float, high: float) -> Alone:
    return lambda rows: [row for row in rows if low < float(child_text(row, "Change_Ratio")) < high]


def _symbol_below_alone(symbol: str, limit: float) -> Alone:
    return lambda rows: [
        row for row in rows if child_text(row, "Symbol") == symbol and float(child_text(row, "Current_Price")) < limit
    ]


def _industry_joined_alone(industry: str, companies: Companies) -> Alone:
    """Evaluates with a separate hash join: the selected quotes are the build side, and every company probes them."""

    def joined(rows: Sequence[Element]) -> list[Element]:
        selected: dict[str, list[Element]] = defaultdict(list)
        for row in rows:
            if child_text(row, "Industry") == industry:
                selected[child_text(row, "Symbol")].append(row)
        if not selected:
            return []
        return [row for company in companies.rows for row in selected.get(child_text(company, "Symbol"), ())]

    return joined


ALONE: dict[str, Callable[..., Alone]] = {
    "Type 1": _symbol_is_alone, "Type 2": _ratio_above_alone, "Type 2b": _ratio_between_alone,
    "Type 3": _symbol_below_alone, "Type 4": _industry_joined_alone,
}  # fmt: skip


class NonGrouped:
    """One closure per query over the parsed rows."""

    name = "non-grouped"

    def __init__(self, workload: Workload) -> None:
        given = workload.joined
        self.queries = [ALONE[part.type](*values, *given) for part in workload.parts for values in part.constants()]

    def extract(self, rows: Sequence[Element]) -> Sequence[Element]:
        """Shares nothing: each query finds its own values."""
        return rows

    def match(self, rows: Sequence[Element]) -> Counts:
        """Evaluates the queries one by one. Each result is constructed, counted and discarded."""
        lengths = [len(query(rows)) for query in self.queries]
        pairs = sum(lengths)
        return Counts(len(lengths) - lengths.count(0), pairs, pairs)

    def pairs(self, rows: Sequence[Element]) -> set[tuple[int, int]]:
        places: dict[Element, list[int]] = defaultdict(list)
        for i, row in enumerate(rows):
            places[row].append(i)
        found = ((number, row) for number, query in enumerate(self.queries) for row in query(rows))
        return {(number, i) for number, row in found for i in places[row]}


class ValuesShared:
    """One closure per query over values that were extracted once."""

    name = "values shared"

    def __init__(self, workload: Workload) -> None:
        given = workload.joined
        self.queries = [COMPILED[part.type](*values, *given) for part in workload.parts for values in part.constants()]

    def extract(self, rows: Sequence[Element]) -> list[Row]:
        """The values, extracted from the XML once for all queries."""
        return [
            (
                i,
                row.findtext("Symbol", ""),
                float(row.findtext("Current_Price", "nan")),
                float(row.findtext("Change_Ratio", "nan")),
                row.findtext("Industry", ""),
            )
            for i, row in enumerate(rows)
        ]

    def match(self, rows: list[Row]) -> Counts:
        """Evaluates the queries one by one. Each result is constructed, counted and discarded."""
        lengths = [len(query(rows)) for query in self.queries]
        pairs = sum(lengths)
        return Counts(len(lengths) - lengths.count(0), pairs, pairs)

    def pairs(self, rows: list[Row]) -> set[tuple[int, int]]:
        return {(number, row[0]) for number, query in enumerate(self.queries) for row in query(rows)}


def check_agreement(workload: Workload, rows: Sequence[Element], sample: int = 100) -> int:
    """Returns the number of pairs. Raises Disagreement unless all contestants return the same pairs, and the oracle
    agrees on a sample."""
    grouped = grouped_of(workload)
    found = grouped.match(grouped.extract(rows))
    pairs = grouped.pairs(found)
    label = f"{workload.type}, {workload.case}, N={workload.size:,}"
    for alone in (NonGrouped(workload), ValuesShared(workload)):
        expected = alone.pairs(alone.extract(rows))  # type: ignore[arg-type]
        if pairs != expected:
            some = sorted(pairs ^ expected)[:3]
            raise Disagreement(f"{label}: grouped {len(pairs):,} pairs, {alone.name} {len(expected):,}; e.g. {some}")
    counts = grouped.counts(found)
    if (counts.pairs, counts.fired) != (len(pairs), len({query for query, _ in pairs})):
        raise Disagreement(f"{label}: counted {counts}, expanded {len(pairs):,} pairs")
    _check_oracle(workload, rows, pairs, sample, label)
    return len(pairs)


def _check_oracle(
    workload: Workload, rows: Sequence[Element], pairs: set[tuple[int, int]], sample: int, label: str
) -> None:
    """Checks some pairs that hold and as many random pairs with the naive evaluator, from the text."""
    draw = np.random.default_rng(3)
    held = sorted(pairs)
    chosen = [held[i] for i in draw.integers(0, len(held), sample)] if held else []
    drawn = zip(draw.integers(0, workload.size, sample), draw.integers(0, len(rows), sample), strict=True)
    chosen += [(int(query), int(row)) for query, row in drawn]
    texts = [text for part in workload.parts for text in part.texts()]
    for number, row in chosen:
        (query,) = parse_script(texts[number])
        assert isinstance(query, CreateQuery)
        if _holds(query, rows[row], workload.joined) != ((number, row) in pairs):
            raise Disagreement(f"{label}: the oracle disagrees on {texts[number]} and row {row}")


def _holds(query: CreateQuery, row: Element, joined: Sequence[Companies]) -> bool:
    """Whether the naive evaluator finds a result. It tries the companies with the same symbol and some others."""
    assert isinstance(query.shape, Shape)
    if not joined:
        return bool(evaluate(query.shape, query.constants, Document("row", 0.0, row, CONTEXT)))
    symbol = row.findtext("Symbol", "")
    ((_, quote),) = quote_documents([row])
    rows = [one for companies in joined for one in companies.rows]
    some = company_documents([*rows[:OTHERS], *(one for one in rows[OTHERS:] if one.findtext("Symbol") == symbol)])
    return bool(evaluate_join(query.shape, query.constants, [[quote], [company for _, company in some]]))

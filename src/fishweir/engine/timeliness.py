"""The lateness of streams, for `status` and `explain`: the allowance, and the items that exceeded it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

from fishweir.algebra.clauses import to_normals
from fishweir.algebra.nodes import sources_of
from fishweir.catalog.catalog import Catalog, Query
from fishweir.pipeline.commits import ResultsTable
from fishweir.pipeline.event_time import load_lateness
from fishweir.pipeline.home import Home, open_log
from fishweir.records import dataclass

UNITS = (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0), ("seconds", 1.0))


def about(seconds: float) -> str:
    """A readable time span: 1.5 hours."""
    unit, size = next((found for found in UNITS if abs(seconds) >= 2 * found[1]), UNITS[-1])
    return f"{seconds / size:.3g} {unit}"


@dataclass(frozen=True)
class Timeliness:
    """The progress of a stream that joins read, the allowed lateness of its items, and how many were later."""

    stream: str
    front: float | None
    watermark: float | None
    allowed: float | None
    """Seconds; None while there are too few items to learn it."""
    declared: bool
    missed: int
    """Items that arrived later than allowed: joins may miss results with them."""
    ahead: int
    """Items whose event time is later than their arrival."""
    published: bool = False

    def __str__(self) -> str:
        if self.published:
            how = "that of the streams it is derived from"
        elif self.allowed is None:
            how = "not known yet, so everything is retained"
        else:
            how = f"{about(self.allowed)} ({'declared' if self.declared else 'learned'})"
        misses = f", {_items(self.missed)} arrived later: joins may miss results with {_them(self.missed)}"
        later, early = misses if self.missed else "", f", {_items(self.ahead)} from the future" if self.ahead else ""
        return f"allowed lateness {how}{later}{early}"


def missing(missed: Mapping[str, int]) -> str:
    """The results that a query may have missed, by stream."""
    counts = ", ".join(f"{count:,} of {stream}" for stream, count in missed.items())
    return f"{counts} arrived later than allowed: results with {_them(sum(missed.values()))} may be missing"


def _items(count: int) -> str:
    return f"{count:,} item{'' if count == 1 else 's'}"


def _them(count: int) -> str:
    return "it" if count == 1 else "them"


def timeliness(home: Home, table: ResultsTable, name: str, id: int) -> Timeliness | None:
    """The lateness of a stream; None if no join has read it."""
    known, stream = load_lateness(home, id), open_log(home.streams, id).stream
    declared = stream.late
    if not known.items:
        return None
    newest = table.newest()
    allowed = known.allowance(newest.level) if declared is None else declared
    return Timeliness(
        name,
        known.front if math.isfinite(known.front) else None,
        newest.watermarks.get(str(id)),
        allowed if math.isfinite(allowed) else None,
        declared is not None,
        known.missed,
        known.ahead,
        stream.virtual is not None,
    )


def joined_streams(catalog: Catalog, query: Query) -> dict[str, int]:
    """The streams whose late items may cause missing results of a query, by name: those it joins, and those joined to
    produce the streams it reads.
    """
    from fishweir.evaluate.plan.registry import KINDS  # imported late: the engine's status needs no evaluator

    streams = catalog.streams()
    found: dict[str, int] = {}
    border = [query]
    while border:
        one = border.pop()
        sources = set(one.shape.sources)
        joins = any(KINDS[normal.template.kind].misses_late for normal in to_normals(one.shape))
        for name, (id, stream) in streams.items():
            if not sources.intersection(sources_of(stream)) or name in found:
                continue
            if joins:
                found[name] = id
            made_of = None if stream.virtual is None else catalog.query(stream.virtual)
            border += [made_of] if made_of is not None else []
    return found


def missed_by(catalog: Catalog, table: ResultsTable, query: Query) -> dict[str, int]:
    """By stream, the items that arrived later than allowed since the query was added."""
    missed: Counter[str] = Counter()
    for commit in table.commits():
        if commit.missed and commit.version >= query.added:
            missed.update(commit.missed)
    if not missed:  # as mostly; otherwise, finding the streams loads the evaluator
        return {}
    return {name: missed[str(id)] for name, id in joined_streams(catalog, query).items() if missed[str(id)]}


def lateness_of(home: Home, catalog: Catalog, table: ResultsTable, query: Query) -> list[str]:
    """The lines of `explain` about the lateness of the streams that a query joins."""
    times = (timeliness(home, table, stream, id) for stream, id in joined_streams(catalog, query).items())
    lines = [f"  late      {time.stream}: {time}" for time in times if time is not None]
    missed = missed_by(catalog, table, query)
    return [*lines, f"  missed    {missing(missed)}"] if missed else lines

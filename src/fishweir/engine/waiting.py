"""Documents that wait for the end of their window, and those that have a match (`NOT FOLLOWED BY`).

In: the findings of micro-batches for the queries of one shape. Out: the documents whose window has ended, without those
that have a match. Both are kept as sorted runs, and a run that is not much longer than the next one is merged with it.
So a micro-batch costs no more than its own findings and those that become due, however many documents wait.
"""

from __future__ import annotations

from collections.abc import Callable, Sized
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from fishweir.evaluate.arrays import Ints, expand

Times = NDArray[np.float64]
Run = TypeVar("Run", bound=Sized)
MIXERS = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)


@dataclass(frozen=True)
class WaitingRun:
    """Waiting documents by the end of their window: query, document, and the result row that found it."""

    ends: Times
    queries: Ints
    documents: Ints
    batches: Ints
    rows: Ints
    first: int
    """A micro-batch before which none of them was found."""

    def __len__(self) -> int:
        return len(self.ends)

    def take(self, chosen: Any) -> WaitingRun:
        columns = {name: getattr(self, name)[chosen] for name in _WAITING}
        return WaitingRun(**columns, first=self.first)


_WAITING = ("ends", "queries", "documents", "batches", "rows")


def waiting_run(ends: Times, queries: Ints, documents: Ints, batches: Ints, rows: Ints) -> WaitingRun:
    whole = WaitingRun(ends, queries, documents, batches, rows, int(batches.min(initial=np.iinfo(np.int64).max)))
    return whole.take(np.argsort(ends, kind="stable"))


@dataclass(frozen=True)
class MatchedRun:
    """Documents with a match by a code of query and document. From `until` on, they no longer wait."""

    codes: NDArray[np.uint64]
    queries: Ints
    documents: Ints
    until: Times
    last: float

    def __len__(self) -> int:
        return len(self.codes)

    def has(self, queries: Ints, documents: Ints) -> NDArray[np.bool_]:
        """For each pair of a query and a document, whether it has a match."""
        codes = _codes(queries, documents)
        of, at = expand(self.codes.searchsorted(codes), self.codes.searchsorted(codes, "right"))
        found = np.zeros(len(queries), np.bool_)
        found[of[(self.queries[at] == queries[of]) & (self.documents[at] == documents[of])]] = True
        return found


def matched_run(queries: Ints, documents: Ints, until: Times) -> MatchedRun:
    codes = _codes(queries, documents)
    order = np.argsort(codes, kind="stable")
    last = float(until.max(initial=-np.inf))
    return MatchedRun(codes[order], queries[order], documents[order], until[order], last)


def _codes(queries: Ints, documents: Ints) -> NDArray[np.uint64]:
    return queries.astype(np.uint64) * MIXERS[0] + documents.astype(np.uint64) * MIXERS[1]


NO_MATCHES = matched_run(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))


@dataclass
class WaitingDocuments:
    """The documents of queries of one shape. Those of a query whose backfill found them wait for the backfill, and
    are kept separately, by its number; those that the job found are at 0."""

    waiting: dict[int, list[WaitingRun]] = field(default_factory=dict)
    matched: list[MatchedRun] = field(default_factory=list)

    def add(self, found: WaitingRun, matched: MatchedRun, backfilled: int = 0) -> None:
        if len(found):
            self.waiting[backfilled] = with_run(self.waiting.get(backfilled, []), found, _waiting_together)
        if len(matched):
            self.matched = with_run(self.matched, matched, _matched_together)

    def due(self, reached: Callable[[int], float]) -> WaitingRun | None:
        """Removes and returns the documents whose window ended before a time without a match. `reached` returns that
        time, given the query whose backfill is waited for, or 0."""
        times = {backfilled: reached(backfilled) for backfilled in self.waiting}
        due: list[WaitingRun] = []
        for backfilled, time in times.items():
            runs = [(run, int(run.ends.searchsorted(time))) for run in self.waiting[backfilled]]
            due += [run.take(slice(count)) for run, count in runs if count]
            self.waiting[backfilled] = [run.take(slice(count, None)) for run, count in runs if count < len(run)]
        found = _waiting_together(*due) if due else None
        if found is not None:
            for run in self.matched:
                found = found.take(~run.has(found.queries, found.documents))
        earliest = min(times.values(), default=np.inf)
        self.waiting = {backfilled: runs for backfilled, runs in self.waiting.items() if runs}
        self.matched = [run for run in self.matched if run.last >= earliest]
        return found

    @property
    def first(self) -> int | None:
        """A micro-batch before which no waiting document was found."""
        return min((run.first for runs in self.waiting.values() for run in runs), default=None)


def with_run(runs: list[Run], new: Run, together: Callable[[Run, Run], Run]) -> list[Run]:
    """Adds a run. Runs have decreasing lengths, so there are few, and each row is rarely copied."""
    *others, last = [*runs, new]
    while others and len(others[-1]) < 2 * len(last):
        last = together(others.pop(), last)
    return [*others, last]


def _waiting_together(*runs: WaitingRun) -> WaitingRun:
    if len(runs) == 1:
        return runs[0]
    return waiting_run(*(np.concatenate([getattr(run, name) for run in runs]) for name in _WAITING))


def _matched_together(*runs: MatchedRun) -> MatchedRun:
    names = ("queries", "documents", "until")
    return matched_run(*(np.concatenate([getattr(run, name) for run in runs]) for name in names))

"""One measured point and its measurement.

Registration is timed separately. As in the paper, only the time of the join counts for a document or batch, without
finding and loading the witnesses and maintaining the state (`rest_seconds`). A document without a common value comes
first (of a stream, its first two), so that no contestant is timed at its first statement. With two documents, the
second is processed repeatedly, as in the paper, and the state is restored each time: `cold_seconds` is the first time,
`seconds` the mean of the others (plans and edge sets are then cached). The time of a contestant that gets only a sample
of the queries is extrapolated. A contestant that exceeds its patience on a stream is stopped after the batch:
`documents` are then those it has processed, and its results for them are compared.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from statistics import fmean

import numpy as np

from fishweir.papers.experiment.contestants import Disagreement
from fishweir.papers.mmqjp.experiment.contestants import Contestant, Entry, compare, oracle_counts
from fishweir.papers.mmqjp.experiment.work import Items, Work
from fishweir.papers.mmqjp.relational import Counts, JoinQuery
from fishweir.papers.mmqjp.relations import Arrival
from fishweir.papers.mmqjp.templates import up_to_exchange

CHECKED = 40
"""Number of queries that are compared with the oracle."""
REPETITIONS = 10
LONG = 2.0
"""Seconds after which the second document is not processed again. It is processed at least twice."""


@dataclass(frozen=True)
class Point:
    """The measurement of one contestant at one work. `x` is what the figure varies."""

    experiment: str
    x: float
    queries: int
    contestant: str
    register_seconds: float
    seconds: float
    """Seconds for the second document, or for all items of the stream."""
    rest_seconds: float
    results: int
    extrapolated: bool = False
    documents: int = 1
    templates: int | None = None
    templates_exchanged: int | None = None
    views_seconds: float | None = None
    cold_seconds: float | None = None
    repetitions: int = 1
    """Number of measurements whose mean is `seconds`."""
    stopped: bool = False
    """Whether it was stopped before the last document."""

    @property
    def documents_per_second(self) -> float:
        return self.documents / self.seconds if self.seconds else float("inf")

    def point(self) -> tuple[str, float, float | None]:
        of = f", {self.documents:,} documents" if self.documents > 1 else ""
        return self.experiment + of, self.x, self.results


def measure_work(
    experiment: str, x: float, work: Work, entries: Sequence[Entry], repetitions: int = REPETITIONS
) -> list[Point]:
    """Measures all contestants at one work. The first one is compared with the oracle, the others with the first."""
    expected = oracle_counts(work.queries[:CHECKED], [work.first, work.second])
    points = []
    for entry in entries:
        if not entry.takes_part(experiment, x):
            continue
        contestant, queries, registered = _registered(partial(entry.make, False), entry.sample, work.queries)
        try:
            contestant.process([work.first])
            contestant.process([work.other])
            times = _repeated(contestant, work.second, repetitions)
        finally:
            contestant.close()
        counts = times[0].counts
        compare(f"{experiment}, {work.name}, {x:g}", entry.name, counts, expected)
        expected = counts if len(counts) == len(work.queries) else expected
        point = _point(experiment, x, entry, contestant, queries, work.queries, registered, _mean(times[1:]))
        cold = times[0].join * len(work.queries) / len(queries)
        points.append(replace(point, cold_seconds=cold, repetitions=len(times) - 1))
    return points


def measure_items(
    experiment: str,
    queries: Sequence[JoinQuery],
    items: Items,
    batch: int,
    entries: Sequence[Entry],
    share_equal: bool,
    sample: int,
    patience: float = inf,
) -> list[Point]:
    """Measures the stream in batches, all of it unless that takes longer than `patience` seconds. A contestant that
    takes a sample of the queries takes `sample`. Results are listed if equal queries share them."""
    batches = [items.arrivals[i : i + batch] for i in range(0, len(items.arrivals), batch)]
    points: list[Point] = []
    expected: list[Counts] = []
    for entry in entries:
        if not entry.takes_part(experiment, len(queries)):
            continue
        few = entry if entry.sample is None else replace(entry, sample=sample)
        make = partial(few.make, share_equal) if share_equal or few.counting is None else few.counting
        contestant, taken, registered = _registered(make, few.sample, queries)
        try:
            contestant.process(batches[0][:2], keep=False)
            timed = _timed(contestant, batches, patience=patience)
        finally:
            contestant.close()
        expected = expected or timed.by_batch
        for given, known in zip(timed.by_batch, expected, strict=False):
            compare(experiment, entry.name, given, known)
        reached = sum(map(len, batches[: len(timed.by_batch)]))
        if share_equal:
            share = _distinct(queries) / _distinct(taken) * len(taken) / len(queries)
            timed = replace(timed, join=timed.join * share)
        point = _point(experiment, len(queries), few, contestant, taken, queries, registered, timed, reached)
        points.append(replace(point, stopped=reached < len(items.arrivals)))
    return points


def _distinct(queries: Sequence[JoinQuery]) -> int:
    return len({id(shape) for shape, _ in queries})


def _registered(
    make: Callable[[], Contestant], sample: int | None, queries: Sequence[JoinQuery]
) -> tuple[Contestant, Sequence[JoinQuery], float]:
    contestant = make()
    taken = queries if sample is None else queries[:sample]
    began = time.perf_counter()
    contestant.register(taken)
    return contestant, taken, time.perf_counter() - began


@dataclass(frozen=True)
class Timed:
    """Results per query of each batch; seconds of the join, of the rest, and for views."""

    by_batch: list[Counts]
    join: float
    rest: float
    views: float | None

    @property
    def counts(self) -> Counts:
        return np.sum(self.by_batch, axis=0)


def _repeated(contestant: Contestant, arrival: Arrival, repetitions: int) -> list[Timed]:
    """The first time, then the repetitions."""
    times: list[Timed] = []
    began = time.perf_counter()
    while len(times) < 2 or (len(times) <= repetitions and time.perf_counter() - began < LONG):
        times.append(_timed(contestant, [[arrival]], keep=False))
        if not np.array_equal(times[-1].counts, times[0].counts):
            raise Disagreement(f"{contestant.name} finds different results for a repeated document")
    return times


def _mean(times: Sequence[Timed]) -> Timed:
    views = [one.views for one in times if one.views is not None]
    return Timed(
        times[0].by_batch, fmean(t.join for t in times), fmean(t.rest for t in times), fmean(views) if views else None
    )


def _timed(
    contestant: Contestant, batches: Sequence[Sequence[Arrival]], keep: bool = True, patience: float = inf
) -> Timed:
    gc.collect()
    join, views = contestant.seconds.get("join", 0.0), contestant.seconds.get("views")
    began = time.perf_counter()
    by_batch: list[Counts] = []
    for some in batches:
        by_batch.append(contestant.process(some, keep))
        if time.perf_counter() - began > patience:
            break
    whole = time.perf_counter() - began
    joined = contestant.seconds["join"] - join
    made = None if views is None else contestant.seconds["views"] - views
    return Timed(by_batch, joined, whole - joined, made)


def _point(
    experiment: str,
    x: float,
    entry: Entry,
    contestant: Contestant,
    taken: Sequence[JoinQuery],
    queries: Sequence[JoinQuery],
    registered: float,
    timed: Timed,
    documents: int = 1,
) -> Point:
    whole = len(taken) == len(queries)
    relations = [template for join in contestant.relational for template in join.templates.relations]
    templates = relations if whole and relations else None
    return Point(
        experiment,
        x,
        len(queries),
        entry.name,
        registered,
        timed.join * len(queries) / len(taken),
        timed.rest,
        int(timed.counts.sum()),
        not whole,
        documents,
        None if templates is None else len(templates),
        None if templates is None else len({up_to_exchange(t) for t in templates}),
        timed.views,
    )

"""`status`: the state of a query and of the engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from fishweir.algebra.intervals import interval_text
from fishweir.catalog.catalog import Catalog, Query
from fishweir.catalog.subscribers import Subscription
from fishweir.engine.timeliness import Timeliness, missing, timeliness
from fishweir.pipeline.commits import Commit, ResultsTable
from fishweir.pipeline.home import Home, about_feed, open_log
from fishweir.pipeline.settings import WALKED
from fishweir.records import dataclass
from fishweir.sealed import read_json

if TYPE_CHECKING:
    from fishweir.pipeline.results import ResultReader

SHOWN = 20
"""The maximum number of subscriptions in the engine's status."""


def moment(seconds: float | None) -> str:
    return "-" if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def firing(query: Query) -> str:
    """When the results of a query are delivered, and since when there are results."""
    schedule = query.schedule
    when = f"every {interval_text(schedule.every)}" if schedule.every else "on change"
    return when if schedule.start is None else f"{when}, from {moment(schedule.start)} on"


@dataclass(frozen=True)
class QueryStatus:
    """One query: whether it is active, how often and when it fired, its schedule and action."""

    name: str
    text: str
    alive: bool
    fired: int
    results: int
    first_fired: float | None
    last_fired: float | None
    last_timestamp: float | None
    start: float | None
    every: float
    expire: float | None
    action: str | None
    fires: str = "on change"
    paused: bool = False
    subscribers: tuple[Subscription, ...] = ()
    """Subscriptions by `subscribe`; the query's own `do` is its action."""
    missed: dict[str, int] = field(default_factory=dict)
    """By stream, the items that arrived later than allowed: results with them may be missing."""

    def __str__(self) -> str:
        return (
            f"query {self.name}: {self._state}, {self.results:,} results\n"
            f"  fired     {self.fired:,} micro-batches, last at {moment(self.last_fired)}\n"
            f"  schedule  {self.fires}; expires {moment(self.expire)}\n"
            f"  action    {self.action or '-'}"
            + (f"\n  late      {missing(self.missed)}" if self.missed else "")
            + "".join(f"\n  delivers  {subscription}" for subscription in self.subscribers)
        )

    @property
    def _state(self) -> str:
        return "paused" if self.paused else "alive" if self.alive else "dropped"


@dataclass(frozen=True)
class StreamStatus:
    name: str
    arrived: int
    evaluated: int
    set_aside: int
    trouble: str | None = None
    elements: int = 0
    skipped: int = 0
    """Elements in subtrees that no path of a query enters."""
    paths: int = 0
    """The number of distinct paths that its queries read, as of the last micro-batch."""
    times: Timeliness | None = None
    """The lateness of its items, if joins read it."""
    about: dict[str, str] = field(default_factory=dict)
    """The metadata of a feed: title, link and description."""
    shed: int = 0
    """The number of items that were left out under overload."""
    cut: int = 0
    """The number of items that were evaluated without some patterns or elements."""
    left_out: int = 0
    """The number of topmost elements that were left out of evaluated items."""
    completed: int = 0
    """The number of incomplete items whose results were completed later."""
    shedding: str = ""
    """What the last micro-batch left out."""
    made_up: int = 0
    """The number of shed items that were evaluated later."""


@dataclass(frozen=True)
class EngineStatus:
    version: int
    queries: int
    micro_batches: int
    documents: int
    match_rows: int
    set_aside: int
    retained: int = 0
    runs: int = 0
    state_bytes: int = 0
    streams: dict[str, StreamStatus] = field(default_factory=dict)
    subscriptions: tuple[Subscription, ...] = ()

    def __str__(self) -> str:
        lines = [
            f"version {self.version}: {self.queries:,} queries over {len(self.streams)} streams",
            f"  {self.documents:,} documents in {self.micro_batches:,} micro-batches, "
            f"{self.match_rows:,} match rows, {self.set_aside:,} set aside",
        ]
        if self.runs:
            size = f"{self.state_bytes / 2**20:,.1f} MiB in {self.runs:,} runs"
            lines.append(f"  {self.retained:,} documents retained for joins, {size}")
        for s in self.streams.values():
            trouble = f"; {s.trouble}" if s.trouble else ""
            counts = f"{s.arrived:,} arrived, {s.evaluated:,} evaluated, {s.set_aside:,} set aside"
            lines.append(f"  stream {s.name}: {counts}{trouble}")
            if s.about:
                link = f" ({s.about['link']})" if "link" in s.about else ""
                description = f": {s.about['description'][:200]}" if "description" in s.about else ""
                lines.append(f"    {s.about.get('title', '')}{link}{description}")
            if s.elements:
                walked = f"{s.elements - s.skipped:,} elements walked, {s.skipped:,} skipped"
                lines.append(f"    {walked}, distinct paths: {s.paths:,}")
            if s.shed:
                later = f", {s.made_up:,} evaluated later" if s.made_up else ""
                lines.append(f"    {s.shed:,} left out under overload{later}")
            if s.cut:
                later = f", {s.completed:,} completed later" if s.completed else ""
                lines.append(f"    {s.cut:,} evaluated without some patterns under overload{later}")
            if s.left_out:
                lines.append(f"    {s.left_out:,} elements of items left out under overload")
            if s.shedding:
                lines.append(f"    shedding now: leaving out {s.shedding}")
            if s.times is not None:
                lines.append(f"    {s.times}, watermark {moment(s.times.watermark)}")
        lines += [f"  subscription to {s.feed}: {s}" for s in self.subscriptions[:SHOWN]]
        if len(self.subscriptions) > SHOWN:
            lines.append(f"  and {len(self.subscriptions) - SHOWN:,} more subscriptions")
        return "\n".join(lines)


def query_status(
    query: Query,
    table: ResultsTable,
    reader: Callable[[], ResultReader],
    subscribers: Sequence[Subscription] = (),
    missed: Mapping[str, int] | None = None,
) -> QueryStatus:
    """The status of a query, from the results table. A query fires in a micro-batch that has a result for it. `reader`
    is called only if some micro-batch has results, since loading the reader takes most of a second."""
    results, fired, last = 0, [], None
    for commit in table.commits():
        if (commit.version < query.added and len(query.numbers) == 1) or not commit.matches:
            continue
        stamps = [reader().times(table, commit, query, number, query.added) for number in query.numbers]
        if any(map(len, stamps)):
            results += sum(map(len, stamps))
            fired.append(commit.at)
            newest = max(float(some.max()) for some in stamps if len(some))
            last = newest if last is None else max(newest, last)
    actions = [one.action for one in subscribers if one.by_query]
    return QueryStatus(
        query.name,
        query.text,
        query.dropped is None,
        len(fired),
        results,
        fired[0] if fired else None,
        fired[-1] if fired else None,
        last,
        query.schedule.start,
        query.schedule.every or 0.0,
        query.schedule.expire,
        "; ".join(actions) or None,
        firing(query),
        query.paused,
        tuple(one for one in subscribers if not one.by_query),
        dict(missed or {}),
    )


def _made_up(home: Home, stream: int) -> int:
    from fishweir.engine.make_up import made_up  # imported late: few streams use it, and it loads Arrow

    return made_up(open_log(home.streams, stream))


def _shedding(commit: Commit, stream: int) -> str:
    decided = commit.shedding.get(str(stream))
    if decided is None:
        return ""
    from fishweir.shedding.decision import StreamShed  # imported late: it loads NumPy

    return str(StreamShed.from_json(decided))


def engine_status(home: Home, catalog: Catalog, table: ResultsTable, troubles: dict[int, str]) -> EngineStatus:
    commits = table.commits()
    aside: Counter[int] = Counter()
    for commit in commits:
        if commit.aside:
            aside.update(table.aside(commit).column("stream").to_pylist())
    done, streams = table.offsets(), {}
    for name, (id, stream) in catalog.streams().items():
        head = open_log(home.streams, id).head()
        counted = read_json(home.streams / str(id) / WALKED, {})
        streams[name] = StreamStatus(
            name,
            head,
            done.get(str(id), 0),
            aside[id],
            troubles.get(id),
            counted.get("elements", 0),
            counted.get("skipped", 0),
            counted.get("paths", 0),
            timeliness(home, table, name, id),
            about_feed(home, id) if stream.format == "feed" else {},
            sum(commit.shed.get(str(id), 0) for commit in commits),
            sum(commit.cut.get(str(id), 0) for commit in commits),
            sum(commit.elements.get(str(id), 0) for commit in commits),
            sum(commit.cut.get(str(id), 0) for commit in commits if table.is_completed(commit.batch)),
            _shedding(table.newest(), id),
            _made_up(home, id) if stream.make_up else 0,
        )
    version, runs = catalog.version(), table.newest().states
    return EngineStatus(
        version,
        catalog.count_active(0, version),
        len(commits),
        sum(c.documents for c in commits),
        sum(c.matches for c in commits if c.completes < 0),
        sum(c.aside for c in commits),
        sum(run["documents"] for run in runs),
        len(runs),
        sum(run["bytes"] for run in runs),
        streams,
        tuple(one for one in catalog.subscribers() if not one.by_query),
    )

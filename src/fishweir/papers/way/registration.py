"""Part `registration`: the rates of registering and dropping queries, and the delay until one more takes effect.

Rates are in processor time, in a process that has registered before, including writing the segments. Each language
registers the same number of queries by `register_many` and by one script; one more script alternates between forms.
A rate is the median of some rounds, since a busy machine halves some of them.
The drawn paths are distinct. Addresses are new in each registration. Subscriptions are registered in the same two ways
and ended by one script. One more query among many is timed from the call that registers it until its action has
been called with a document that was published right after it, through the job on Spark. Then the private memory of all
processes is read.
"""

from __future__ import annotations

import gc
import os
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from fishweir.delivery.payload import NotRewindable, Payload
from fishweir.engine.weir import Weir
from fishweir.papers.experiment.figures import Target
from fishweir.papers.way.part import FISHWEIR, Measured, Part, Setting, home_folder, running
from fishweir.papers.way.registered import (
    ALTERNATING,
    FEED,
    LANGUAGES,
    OTHERS,
    PATHS,
    SETUP,
    SUBSCRIPTIONS,
    distinct_paths,
)
from fishweir.papers.way.work import STREAM, TEXT

WARM = 1_000
PATIENCE = 60.0
"""Seconds after which the call of an action is considered to have failed."""


@dataclass(frozen=True)
class Sizes:
    queries: int
    rounds: int
    among: int
    more: int
    """Number of single queries that are registered among many."""


WHOLE, QUICK = Sizes(20_000, 3, 1_000_000, 10), Sizes(1_200, 1, 2_000, 2)


@dataclass(frozen=True)
class Figure:
    measured: str
    by: str
    queries: int
    per_second: float | None = None
    seconds: float | None = None
    megabytes: float | None = None
    contestant: str = FISHWEIR

    def point(self) -> tuple[str, float, float | None]:
        return f"{self.measured}, {self.by}", self.queries, self.per_second


def measure(setting: Setting) -> Measured:
    sizes: Sizes = setting.sizes_of("registration", WHOLE, QUICK)
    figures: list[Figure] = []
    for kind, template, row in (*LANGUAGES, *OTHERS):
        setting.say(f"{kind}, {sizes.queries:,} queries")
        figures += rates(kind, template, [row(i) for i in range(sizes.queries)], sizes.rounds)
    setting.say(f"alternating statements, {sizes.queries:,} queries")
    figures += alternating(sizes.queries, sizes.rounds)
    for kind, template in PATHS:
        setting.say(f"{sizes.queries:,} {kind}")
        drawn = distinct_paths(sizes.queries, predicates=kind.endswith("predicates"))
        figures += rates(kind, template, [{"path": path} for path in drawn], sizes.rounds)
    for kind, template in SUBSCRIPTIONS:
        setting.say(f"{sizes.queries:,} {kind}")
        figures += subscription_rates(kind, template, sizes.queries, sizes.rounds)
    figures += one_more(setting, sizes)
    return Measured(figures, targets(figures))


def rates(name: str, template: str, rows: list[dict[str, Any]], rounds: int) -> list[Figure]:
    """Rates of `register_many` and of a script, and of dropping by name and by pattern."""
    spent = Spent(name, len(rows))
    with home_folder() as folder, Weir(folder) as weir:
        weir.execute(SETUP)
        weir.register_many(template, named("w", rows[:WARM]))
        before = len(weir.catalog.names())
        for turn in range(rounds):
            some, script = (
                named(f"q{turn}a", rows),
                ";\n".join(rendered(template, row) for row in named(f"q{turn}b", rows)),
            )
            names = [row["name"] for row in some]
            calls: list[tuple[str, Callable[[], Any]]] = [
                ("register_many", partial(weir.register_many, template, some)),
                ("drop_many", partial(weir.drop_many, names)),
                ("script", partial(weir.execute, script)),
                ("drop where name like", partial(weir.execute, "drop where name like 'q%'")),
            ]
            for by, call in calls:
                spent.on(by, call)
                there = len(weir.catalog.names()) - before
                assert there == (0 if "drop" in by else len(rows)), f"{by} of {name}: {there}"
    return spent.figures()


def named(prefix: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows with new names, and thus with new addresses."""
    return [{"name": f"{prefix}{i}", **row} for i, row in enumerate(rows)]


def subscription_rates(name: str, template: str, count: int, rounds: int) -> list[Figure]:
    """Rates of `register_many` and of a script, and of ending the subscriptions of the script by another one."""
    spent, rows = Spent(name, count), [dict[str, Any]() for _ in range(count)]
    ending = template.replace("subscribe to", "unsubscribe from").partition(" every ")[0]
    with home_folder() as folder, Weir(folder) as weir:
        weir.execute(f"{SETUP};{FEED}")
        weir.register_many(template, named("w", rows[:WARM]))
        there = len(weir.catalog.subscribers())
        for turn in range(rounds):
            others = named(f"b{turn}", rows)
            script, endings = (";\n".join(rendered(text, row) for row in others) for text in (template, ending))
            calls: list[tuple[str, int, Callable[[], Any]]] = [
                ("register_many", count, partial(weir.register_many, template, named(f"a{turn}", rows))),
                ("script", count, partial(weir.execute, script)),
                ("unsubscribe", -count, partial(weir.execute, endings)),
            ]
            for by, more, call in calls:
                spent.on(by, call)
                there += more
                assert len(weir.catalog.subscribers()) == there, f"{by} of {name}"
    return spent.figures()


@dataclass(frozen=True)
class Spent:
    """Processor times of calls that register or drop `count` queries."""

    name: str
    count: int
    seconds: dict[str, list[float]] = field(default_factory=dict)

    def on(self, by: str, call: Callable[[], Any]) -> None:
        gc.collect()
        began = time.process_time()
        call()
        self.seconds.setdefault(by, []).append(time.process_time() - began)

    def figures(self) -> list[Figure]:
        medians = {by: statistics.median(turns) for by, turns in self.seconds.items()}
        return [Figure(self.name, by, self.count, self.count / seconds) for by, seconds in medians.items()]


def alternating(count: int, rounds: int) -> list[Figure]:
    """The rate of a script whose statements alternate between several forms."""
    spent = Spent("alternating forms", count)
    forms = [(template, row) for name, template, row in LANGUAGES if name in ALTERNATING]
    chosen = [(*forms[i % len(forms)], i) for i in range(count)]
    with home_folder() as folder, Weir(folder) as weir:
        weir.execute(SETUP)
        for turn in range(-1, rounds):
            some = chosen if turn >= 0 else chosen[:WARM]
            texts = [rendered(template, {"name": f"q{turn + 1}a{i}", **row(i)}) for template, row, i in some]
            before, script = len(weir.catalog.names()), ";\n".join(texts)
            if turn < 0:
                weir.execute(script)
            else:
                spent.on("script", partial(weir.execute, script))
            assert len(weir.catalog.names()) == len(some) + before
    return spent.figures()


def rendered(template: str, row: dict[str, Any]) -> str:
    from fishweir.languages.bulk import render_rows

    return next(iter(render_rows(template, [row])))


def one_more(setting: Setting, sizes: Sizes) -> Iterator[Figure]:
    called = threading.Event()

    class Ping(NotRewindable):
        def deliver(self, results: Payload) -> None:
            called.set()

    setting.say(f"one more query among {sizes.among:,}")
    with running(setting.spark, TEXT, sizes.among, 200) as weir:
        weir.register_action("ping", Ping)
        calls, waited = list[float](), list[float]()
        for i in range(sizes.more):
            called.clear()
            began = time.perf_counter()
            weir.execute(f"create query more{i} as select title from {STREAM} where title contains 'more{i}' do ping")
            calls.append(time.perf_counter() - began)
            weir.publish(STREAM, [f"<item><title>more{i} w1</title></item>"])
            if not called.wait(PATIENCE):
                raise RuntimeError("the action of a new query was not called")
            waited.append(time.perf_counter() - began)
        for what, taken in (("the call", calls), ("until its action", waited)):
            yield Figure(f"one more query, {what}", "median", sizes.among, seconds=statistics.median(taken))
            yield Figure(f"one more query, {what}", "longest", sizes.among, seconds=max(taken))
        yield Figure("private memory", "driver", sizes.among, megabytes=private(os.getpid()))
        others = [private(process) for process in workers(os.getpid())]
        yield Figure("private memory", "largest other Python process", sizes.among, megabytes=max(others, default=0.0))


def private(process: int) -> float:
    """Megabytes of memory that a process shares with no other."""
    lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) / 1024


def workers(process: int) -> list[int]:
    """The Python processes below a process."""
    found, below = list[int](), [process]
    children: dict[int, list[int]] = {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((place / "stat").read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(place.name))
        except OSError:
            continue  # it has ended
    while below:
        below = [child for parent in below for child in children.get(parent, ())]
        found += [child for child in below if "python" in _command(child)]
    return found


def _command(process: int) -> str:
    try:
        return Path(f"/proc/{process}/comm").read_text()
    except OSError:
        return ""


def targets(figures: list[Figure]) -> list[Target]:
    found = []
    for figure in figures:
        if figure.per_second is not None:
            is_half = figure.measured.startswith(("distinct", "SQL, two addresses")) and "drop" not in figure.by
            least = 10_000 if is_half else 20_000
            name = f"{figure.measured} by {figure.by}: {least:,} per second"
            found.append(Target(name, f"{figure.per_second:,.0f}", figure.per_second >= least))
        elif figure.seconds is not None and figure.measured.endswith("action") and figure.by == "longest":
            found.append(Target(f"{figure.measured}: within 0.5 s", f"{figure.seconds:.2f} s", figure.seconds <= 0.5))
        elif figure.by == "driver" and figure.megabytes is not None:
            found.append(Target("driver: under 1 GB", f"{figure.megabytes:.0f} MB", figure.megabytes < 1024))
    return found


PART = Part("registration", "Registration", measure)

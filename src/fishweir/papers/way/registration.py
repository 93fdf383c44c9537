"""Part `registration`: the rates of registering and dropping queries, and the delay until one more takes effect.

Rates are in processor time, in a process that has registered before, including writing the segments. Each language
registers the same number of queries by `register_many` and by one script; one more script alternates between forms.
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
from dataclasses import dataclass
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
    among: int
    rounds: int


WHOLE, QUICK = Sizes(20_000, 1_000_000, 10), Sizes(1_200, 2_000, 2)


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
        figures += rates(kind, template, [{"name": f"q{i}", **row(i)} for i in range(sizes.queries)])
    setting.say(f"alternating statements, {sizes.queries:,} queries")
    figures += alternating(sizes.queries)
    for kind, template in PATHS:
        setting.say(f"{sizes.queries:,} {kind}")
        drawn = distinct_paths(sizes.queries, predicates=kind.endswith("predicates"))
        figures += rates(kind, template, [{"name": f"q{i}", "path": path} for i, path in enumerate(drawn)])
    for kind, template in SUBSCRIPTIONS:
        setting.say(f"{sizes.queries:,} {kind}")
        figures += subscription_rates(kind, template, sizes.queries)
    figures += one_more(setting, sizes)
    return Measured(figures, targets(figures))


def rates(name: str, template: str, rows: list[dict[str, Any]]) -> Iterator[Figure]:
    """Rates of `register_many` and of a script, and of dropping by name and by pattern."""
    script = ";\n".join(rendered(template, {**row, "name": f"q{row['name']}"}) for row in rows)
    with home_folder() as folder, Weir(folder) as weir:
        weir.execute(SETUP)
        weir.register_many(template, [{**row, "name": f"w{row['name']}"} for row in rows[:WARM]])
        before = len(weir.catalog.names())
        calls: list[tuple[str, Callable[[], Any]]] = [
            ("register_many", lambda: weir.register_many(template, rows)),
            ("drop_many", lambda: weir.drop_many([row["name"] for row in rows])),
            ("script", lambda: weir.execute(script)),
            ("drop where name like", lambda: weir.execute("drop where name like 'q%'")),
        ]
        for by, call in calls:
            yield timed(name, by, len(rows), call)
            there = len(weir.catalog.names()) - before
            assert there == (0 if "drop" in by else len(rows)), f"{by} of {name}: {there}"


def subscription_rates(name: str, template: str, count: int) -> Iterator[Figure]:
    """Rates of `register_many` and of a script, and of ending the subscriptions of the script one by one."""
    rows, others, warm = ([{"name": f"{prefix}{i}"} for i in range(count)] for prefix in ("a", "b", "w"))
    script = ";\n".join(rendered(template, row) for row in others)
    ending = template.replace("subscribe to", "unsubscribe from").partition(" every ")[0]
    endings = ";\n".join(rendered(ending, row) for row in others)
    with home_folder() as folder, Weir(folder) as weir:
        weir.execute(f"{SETUP};{FEED}")
        weir.register_many(template, warm[:WARM])
        there = len(weir.catalog.subscribers())
        calls: list[tuple[str, int, Callable[[], Any]]] = [
            ("register_many", count, lambda: weir.register_many(template, rows)),
            ("script", count, lambda: weir.execute(script)),
            ("unsubscribe", -count, lambda: weir.execute(endings)),
        ]
        for by, more, call in calls:
            yield timed(name, by, count, call)
            there += more
            assert len(weir.catalog.subscribers()) == there, f"{by} of {name}"


def timed(name: str, by: str, count: int, call: Callable[[], Any]) -> Figure:
    gc.collect()
    began = time.process_time()
    call()
    return Figure(name, by, count, count / (time.process_time() - began))


def alternating(count: int) -> Iterator[Figure]:
    """The rate of a script whose statements alternate between several forms."""
    forms = [(template, row) for name, template, row in LANGUAGES if name in ALTERNATING]
    chosen = [(*forms[i % len(forms)], i) for i in range(count)]
    texts = [rendered(template, {"name": f"q{i}", **row(i)}) for template, row, i in chosen]
    with home_folder() as folder, Weir(folder) as weir:
        weir.execute(SETUP)
        weir.execute(";".join(text.replace("query q", "query w", 1) for text in texts[:WARM]))
        before, script = len(weir.catalog.names()), ";\n".join(texts)
        yield timed("alternating forms", "script", count, lambda: weir.execute(script))
        assert len(weir.catalog.names()) == count + before


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
        for i in range(sizes.rounds):
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
            least = 10_000 if figure.measured.startswith("distinct") and "drop" not in figure.by else 20_000
            name = f"{figure.measured} by {figure.by}: {least:,} per second"
            found.append(Target(name, f"{figure.per_second:,.0f}", figure.per_second >= least))
        elif figure.seconds is not None and figure.measured.endswith("action") and figure.by == "longest":
            found.append(Target(f"{figure.measured}: within 0.5 s", f"{figure.seconds:.2f} s", figure.seconds <= 0.5))
        elif figure.by == "driver" and figure.megabytes is not None:
            found.append(Target("driver: under 1 GB", f"{figure.megabytes:.0f} MB", figure.megabytes < 1024))
    return found


PART = Part("registration", "Registration", measure)

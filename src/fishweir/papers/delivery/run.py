"""Delivery, from committed results to targets: files, a web server, a hundred thousand subscribers, a million timers.

Results are committed first, so that what is measured is delivery alone: collecting, reading, sending and recording.
The web server runs in this machine and counts what it acknowledges; whatever a contestant delivers is compared with the
results that there are before a time is believed.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from rich.console import Console
from rich.table import Table

from fishweir import testing
from fishweir.catalog import deliveries
from fishweir.papers.experiment.closing import show_targets, warn_if_busy
from fishweir.papers.experiment.figures import Figure, Outcome, Target, about_run

NAME = "delivery"
FILES, HTTP, FEED, TIMERS = "to a file", "to 50 web targets", "subscribers of one feed", "timers"


def main(out: Path, quick: bool = False) -> None:
    """The whole experiment; `quick` has small sizes, to see that it works."""
    run(out, quick, Console())


def run(out: Path, quick: bool, console: Console) -> Outcome:
    outcome = Outcome(about_run("generated tuples", quick))
    with console.status("") as status:
        for name, measure, size in (
            (FILES, to_files, 2_000 if quick else 100_000),
            (HTTP, to_http, 1_000 if quick else 20_000),
            (FEED, to_subscribers, 500 if quick else 100_000),
            (TIMERS, many_timers, 2_000 if quick else 1_000_000),
        ):
            status.update(f"{name}: {size:,}")
            outcome.figures += measure(size)
            outcome.write(out, NAME)
    outcome.about["load_after"] = os.getloadavg()[0]
    outcome.targets = targets(outcome)
    outcome.write(out, NAME)
    show(outcome, console)
    console.print(f"Written: {out / NAME}.csv, .json", markup=False)
    return outcome


@contextmanager
def opened(clock: testing.Clock | None = None) -> Iterator[testing.Weir]:
    folder = Path(tempfile.mkdtemp(prefix="fishweir-bench-"))
    try:
        with testing.open(folder / "home", clock=clock) as weir:
            weir.execute("create stream R (x int)")
            assert isinstance(weir, testing.Weir)
            yield weir
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def committed(weir: testing.Weir, count: int, batch: int = 10_000) -> None:
    """Results in the table, and nothing delivered yet."""
    office = weir._office
    whole, office.step = office.step, lambda: 0  # type: ignore[method-assign]
    for start in range(0, count, batch):
        weir.publish("R", [{"x": value} for value in range(start, min(start + batch, count))])
        weir.step()
    office.step = whole  # type: ignore[method-assign]


def delivered(weir: testing.Weir) -> tuple[float, float]:
    """Seconds for everything that is due, and the processor's."""
    began, spent = time.perf_counter(), time.process_time()
    weir._office.start()
    while not weir._office.is_idle():
        time.sleep(0.01)
    weir._office.stop()
    return time.perf_counter() - began, time.process_time() - spent


def to_files(count: int) -> list[Figure]:
    with opened() as weir:
        target = weir.home.path / "results.jsonl"
        weir.execute(f"create query q as select x from R do append '{target}'")
        committed(weir, count)
        seconds, spent = delivered(weir)
        with target.open() as file:
            assert [json.loads(line)["output"]["x"] for line in file] == list(range(count)), "each once, in order"
        return [_figure(FILES, count, seconds, spent)]


def to_http(count: int) -> list[Figure]:
    """One query for each of 50 targets, each with its own share of the results, which may be a single POST."""
    with opened() as weir, web_server() as (url, taken):
        for part in range(50):
            low, high = count * part // 50, count * (part + 1) // 50
            weir.execute(
                f"create query q{part} as select x from R where x >= {low} and x < {high} do http '{url}/{part}'"
            )
        committed(weir, count, batch=max(20, count // 20))
        seconds, spent = delivered(weir)
        assert sorted(x for post in taken for x in post) == list(range(count)), "each once"
        figure = _figure(HTTP, count, seconds, spent)
        return [figure, _figure("posts", len(taken), seconds, spent)]


def to_subscribers(count: int) -> list[Figure]:
    """Intervals from 1 to 100 minutes over two hours, of which the first is the warm-up; every target is a file."""
    clock = testing.Clock(0.0)
    with opened(clock) as weir:
        weir.execute("create feed F from R")
        folder = weir.home.path / "boxes"
        began = time.perf_counter()
        statements = [
            f"subscribe to F output jsonl '{folder / str(i % 1000) / str(i)}' every {1 + i % 100} minutes"
            for i in range(count)
        ]
        for start in range(0, count, 10_000):
            weir.execute(";\n".join(statements[start : start + 10_000]))
        registered = time.perf_counter() - began
        fired, seconds, spent, memory = 0, 0.0, 0.0, []
        for minute in range(1, 21):
            clock.now = minute * 60.0
            weir.publish("R", [{"x": minute}])
            before = weir._office.delivered
            took, used = _timed(weir.step)
            fired, seconds, spent = fired + weir._office.delivered - before, seconds + took, spent + used
            memory.append(_memory())
        expected = sum(20 // every * every for every in (1 + i % 100 for i in range(count)) if every <= 20)
        assert fired == expected, (fired, expected)
        growth = memory[-1] / memory[len(memory) // 2]
        figure = _figure(FEED, fired, seconds, spent, f"{count:,} subscribers, memory {growth:.2f} in the second half")
        return [figure, _figure("subscriptions", count, registered, registered)]


def many_timers(count: int) -> list[Figure]:
    """All but a hundred are due in a year: a round costs what is due."""
    clock = testing.Clock(0.0)
    found = []
    with opened(clock) as weir:
        weir.execute("create query q as select x from R")
        for size in (0, count):
            if size:
                _add_timers(weir, size)
            weir._office.step()
            began = time.process_time()
            for _ in range(50):
                clock.advance(1.0)
                weir._office.step()
            spent = (time.process_time() - began) / 50
            found.append(_figure(TIMERS, size, spent, spent, "a round in which none is due"))
    return found


def _add_timers(weir: testing.Weir, count: int) -> None:
    weir.execute("subscribe to q output jsonl 'box' every 1 year")
    with weir.catalog.engine.begin() as connection:
        stored = [column for column in deliveries.channels.columns if column.computed is None]
        row = connection.execute(sa.select(*stored)).mappings().first()
        assert row is not None
        for start in range(0, count, 50_000):
            some = range(start + 10, min(start + 50_000, count) + 10)
            channels = [{**row, "id": i, "key": str(i), "token": str(i)} for i in some]
            connection.execute(sa.insert(deliveries.channels), channels)
            rows = [{"channel": i, "due": 3e7 + i, "batch": -1} for i in some]
            connection.execute(sa.insert(deliveries.timers), rows)


@contextmanager
def web_server() -> Iterator[tuple[str, list[list[int]]]]:
    taken: list[list[int]] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            taken.append([result["output"]["x"] for result in body])
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", taken
    finally:
        server.shutdown()
        server.server_close()


def targets(outcome: Outcome) -> list[Target]:
    def rate(case: str) -> float:
        (one,) = outcome.find(case=case)
        return float(one.n / one.seconds)

    (feed,) = outcome.find(case=FEED)
    few, many = outcome.find(case=TIMERS)
    ratio = many.seconds / few.seconds
    growth = float(feed.note.split("memory ")[1].split()[0])
    return [
        Target("10,000 results a second to files", f"{rate(FILES):,.0f}", rate(FILES) >= 10_000),
        Target("1,000 results a second to web targets", f"{rate(HTTP):,.0f}", rate(HTTP) >= 1_000),
        Target("subscribers with different intervals: memory flat", f"{growth:.2f}", growth < 1.1),
        Target("a million timers cost what is due", f"{ratio:.2f} times a round without them", ratio < 2),
    ]


def show(outcome: Outcome, console: Console) -> None:
    table = Table("what", "number", "seconds", "a second", "processor seconds", "")
    for one in outcome.figures:
        rate = f"{one.n / one.seconds:,.0f}" if one.case != TIMERS else "-"
        table.add_row(one.case, f"{one.n:,}", f"{one.seconds:.4f}", rate, f"{one.match_seconds:.4f}", one.note)
    console.print(table)
    show_targets(outcome.targets, console)
    warn_if_busy(outcome.about, console)


def _figure(case: str, n: int, seconds: float, spent: float, note: str = "") -> Figure:
    return Figure(NAME, "delivery", case, n, "Fishweir", seconds, match_seconds=spent, note=note)


def _timed(act: Any) -> tuple[float, float]:
    began, spent = time.perf_counter(), time.process_time()
    act()
    return time.perf_counter() - began, time.process_time() - spent


def _memory() -> int:
    """Megabytes in use at most so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

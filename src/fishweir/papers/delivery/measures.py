"""Parts of the delivery experiment: each commits results first, then measures their delivery."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from fishweir import testing
from fishweir.catalog.checksums import SUM
from fishweir.papers.delivery.receiver import receiver
from fishweir.papers.experiment.figures import Figure
from fishweir.pipeline.result import Result

NAME = "delivery"
FILES, CALLS, HTTP, POSTS = "to a file", "to a callback", "to 50 web targets", "to a web target each"
FEED, DELIVERIES, SUBSCRIBED, TIMERS = "subscribers of one feed", "deliveries to them", "subscriptions", "timers"


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
    """Commits results without delivering them."""
    service = weir._delivery_service
    whole, service.step = service.step, lambda: 0  # type: ignore[method-assign]
    for start in range(0, count, batch):
        weir.publish("R", [{"x": value} for value in range(start, min(start + batch, count))])
        weir.step()
    service.step = whole  # type: ignore[method-assign]


def delivered(weir: testing.Weir) -> tuple[float, float]:
    """Delivers everything that is due. Returns the elapsed seconds and the processor seconds."""
    began, spent = time.perf_counter(), time.process_time()
    weir._delivery_service.start()
    while not weir._delivery_service.is_idle():
        time.sleep(0.01)
    taken = time.perf_counter() - began, time.process_time() - spent
    weir._delivery_service.stop()
    return taken


def to_files(count: int) -> list[Figure]:
    with opened() as weir:
        target = weir.home.path / "results.jsonl"
        weir.execute(f"create query q as select x from R do append '{target}'")
        committed(weir, count)
        seconds, spent = delivered(weir)
        with target.open() as file:
            assert [json.loads(line)["output"]["x"] for line in file] == list(range(count)), "each once, in order"
        return [figure(FILES, count, seconds, spent)]


def to_callback(count: int) -> list[Figure]:
    with opened() as weir:
        taken: list[Any] = []

        def hear(result: Result) -> None:
            taken.append(result.output["x"])  # type: ignore[index]

        weir.action("hear", hear)
        weir.execute("create query q as select x from R do hear")
        committed(weir, count)
        seconds, spent = delivered(weir)
        assert taken == list(range(count)), "each once, in order"
        return [figure(CALLS, count, seconds, spent)]


def to_http(count: int) -> list[Figure]:
    """One query for each of 50 targets, each with its share of the results, which may be a single POST."""
    with opened() as weir, receiver() as (url, taken):
        for part in range(50):
            low, high = count * part // 50, count * (part + 1) // 50
            weir.execute(
                f"create query q{part} as select x from R where x >= {low} and x < {high} do http '{url}/{part}'"
            )
        committed(weir, count, batch=max(20, count // 20))
        seconds, spent = delivered(weir)
        posts = taken()
        assert sorted(x for _, post in posts for x in post) == list(range(count)), "each once"
        return [figure(HTTP, count, seconds, spent, f"{len(posts)} POSTs")]


def small_posts(count: int) -> list[Figure]:
    """As many targets as POSTs, each with one query that has two results."""
    with opened() as weir, receiver() as (url, taken):
        weir.execute(";".join(
            f"create query q{i} as select x from R where x >= {2 * i} and x < {2 * i + 2} do http '{url}/{i}'"
            for i in range(count)
        ))  # fmt: skip
        committed(weir, 2 * count, batch=2 * count)
        seconds, spent = delivered(weir)
        assert sorted(taken()) == sorted((f"/{i}", [2 * i, 2 * i + 1]) for i in range(count)), "each once"
        return [figure(POSTS, count, seconds, spent, "POSTs of two results")]


def to_subscribers(count: int) -> list[Figure]:
    """Intervals from 1 to 100 minutes, 20 minutes with one item each. Every target is a file."""
    clock = testing.Clock(0.0)
    with opened(clock) as weir:
        weir.execute("create feed F from R")
        folder = weir.home.path / "boxes"
        rows = [{"box": str(folder / str(i % 1000) / str(i)), "minutes": 1 + i % 100} for i in range(count)]
        statement = "subscribe to F output jsonl $box every $minutes minutes"
        registered = _timed(partial(weir.register_many, statement, rows))
        del rows
        fired, times, memory = 0, (0.0, 0.0), []
        for minute in range(1, 21):
            clock.now = minute * 60.0
            weir.publish("R", [{"x": minute}])
            before = weir._delivery_service.delivered
            taken = _timed(weir.step)
            fired, times = fired + weir._delivery_service.delivered - before, (times[0] + taken[0], times[1] + taken[1])
            memory.append(_resident())
        intervals = [1 + i % 100 for i in range(count)]
        assert fired == sum(20 // every * every for every in intervals), fired
        assert _lines(folder / "0" / "0") == list(range(1, 21)), "each once, in order"
        growth = max(memory[10:]) / max(memory[:10])
        note = f"{count:,} subscribers, memory {growth:.2f} times that of the first half, at most {max(memory):,.0f} MB"
        return [
            figure(SUBSCRIBED, count, *registered),
            figure(FEED, fired, *times, note),
            figure(DELIVERIES, sum(20 // every for every in intervals), *times),
        ]


def _lines(path: Path) -> list[int]:
    """The numbers in the items of a feed."""
    outputs = [json.loads(line)["output"] for line in path.read_text().splitlines()] if path.exists() else []
    return [int(number) for output in outputs for number in re.findall(r"<x>(\d+)</x>", output)]


def many_timers(count: int) -> list[Figure]:
    """All but a hundred timers are due in a year: the cost of a round depends only on the timers that are due."""
    clock = testing.Clock(0.0)
    found = []
    with opened(clock) as weir:
        weir.execute("create query q as select x from R")
        weir.execute("subscribe to q output jsonl 'box' every 1 year")  # without subscribers, nothing is collected
        for size in (0, count):
            if size:
                _add_timers(weir, size)
            weir._delivery_service.step()
            began = time.process_time()
            for _ in range(50):
                clock.advance(1.0)
                weir._delivery_service.step()
            spent = (time.process_time() - began) / 50
            found.append(figure(TIMERS, size, spent, spent, "a round in which none is due"))
    return found


def _add_timers(weir: testing.Weir, count: int) -> None:
    with weir.catalog.database.begin() as connection:
        row = dict(connection.execute("select * from channels").first()._mapping)
        del row[SUM]
        for start in range(0, count, 50_000):
            some = range(start + 10, min(start + 50_000, count) + 10)
            channels = [{**row, "id": i, "key": str(i), "token": str(i)} for i in some]
            connection.insert_rows("channels", channels)
            connection.insert_tuples("timers", ("channel", "due", "batch"), [(i, 3e7 + i, -1) for i in some])


def figure(case: str, n: int, seconds: float, spent: float, note: str = "") -> Figure:
    return Figure(NAME, "delivery", case, n, "Fishweir", seconds, match_seconds=spent, note=note)


def _timed(act: Callable[[], object]) -> tuple[float, float]:
    began, spent = time.perf_counter(), time.process_time()
    act()
    return time.perf_counter() - began, time.process_time() - spent


def _resident() -> float:
    """Resident memory in megabytes."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6

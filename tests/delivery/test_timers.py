"""`start`, `every`, `expire`: each due time fires once, late rather than lost, and only if there is something new."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fishweir import testing
from fishweir.testing import Clock, Weir
from tests.delivery.servers import Hooks

HOUR = 3600.0


def publish(weir: Weir, *values: int) -> None:
    weir.publish("R", [{"x": value} for value in values])
    weir.step()


def at(weir: Weir, clock: Clock, now: float) -> None:
    clock.now = now
    weir.step()


def values(hooks: Hooks) -> list[list[int]]:
    return [[result["output"]["x"] for result in one.results] for one in hooks.taken]


@pytest.mark.parametrize("begin", ["subscribe to big output", "create query b2 as select x from R where x > 5 do"])
def test_every_delivers_the_results_since_the_last_time(weir: Weir, clock: Clock, hooks: Hooks, begin: str) -> None:
    weir.execute(f"{begin} http '{hooks.url}' every 1 hour")
    publish(weir, 6)
    publish(weir, 7)
    at(weir, clock, 1000 + HOUR - 1)
    assert values(hooks) == []
    at(weir, clock, 1000 + HOUR)
    assert values(hooks) == [[6, 7]]
    at(weir, clock, 1000 + 2 * HOUR)
    publish(weir, 1)
    at(weir, clock, 1000 + 3 * HOUR)
    assert values(hooks) == [[6, 7]], "without new results, nothing is delivered"
    publish(weir, 8)
    at(weir, clock, 1000 + 4 * HOUR)
    assert values(hooks) == [[6, 7], [8]]
    assert len(list(weir.results("big"))) == 3, "results are available at once, with their own times"


def test_intervals_share_results(weir: Weir, clock: Clock, hooks: Hooks) -> None:
    weir.execute(f"subscribe to big output http '{hooks.url}/w' every 2 hours")
    weir.execute(f"subscribe to big output http '{hooks.url}/m' every 3 hours")
    for hour in range(1, 7):
        publish(weir, 10 + hour)
        at(weir, clock, 1000 + hour * HOUR)
    seen = {path: [[r["output"]["x"] for r in one.results] for one in hooks.taken if one.path == path]
            for path in ("/w", "/m")}  # fmt: skip
    assert seen == {"/w": [[11, 12], [13, 14], [15, 16]], "/m": [[11, 12, 13], [14, 15, 16]]}


def test_a_sleeping_machine_fires_once_and_late(weir: Weir, clock: Clock, hooks: Hooks) -> None:
    weir.execute(f"subscribe to big output http '{hooks.url}' every 10 minutes")
    publish(weir, 6)
    weir.close()
    clock.advance(5 * HOUR + 100)
    with testing.open(weir.home.path, clock=clock) as again:
        again.step()
        assert values(hooks) == [[6]]
        again.step()
        publish(again, 7)
        at(again, clock, clock.now + 500)
        assert values(hooks) == [[6], [7]], "the next due time is on the old grid"


def test_a_clock_that_is_set_back_delays_by_one_interval_at_most(weir: Weir, clock: Clock, hooks: Hooks) -> None:
    weir.execute(f"subscribe to big output http '{hooks.url}' every 10 minutes")
    at(weir, clock, 1000 + 10 * 24 * HOUR)
    publish(weir, 6)
    at(weir, clock, 1000 + 700)
    at(weir, clock, 1000 + 1300)
    assert values(hooks) == [[6]]


def test_start_in_the_future(weir: Weir, clock: Clock, hooks: Hooks) -> None:
    weir.execute(f"create query later as select x from R do http '{hooks.url}' start in 2 hours every 1 hour")
    publish(weir, 1)
    at(weir, clock, 1000 + 1.5 * HOUR)
    publish(weir, 2)
    assert "from 1970-01-01T02:16:40+00:00 on" in str(weir.status("later"))
    clock.now = 1000 + 2 * HOUR
    publish(weir, 3)
    assert [result.output for result in weir.results("later")] == [{"x": 3}]
    at(weir, clock, 1000 + 3 * HOUR)
    assert values(hooks) == [[3]]


def test_start_of_a_subscription(weir: Weir, clock: Clock, hooks: Hooks) -> None:
    weir.execute(f"subscribe to big output http '{hooks.url}' start in 1 hour")
    publish(weir, 6)
    clock.advance(HOUR)
    publish(weir, 7)
    assert values(hooks) == [[7]]


@pytest.mark.parametrize("begin", ["subscribe to big output", "create query b as select x from R do"])
def test_expiring_delivers_the_remaining_results(weir: Weir, clock: Clock, hooks: Hooks, begin: str) -> None:
    weir.execute(f"{begin} http '{hooks.url}' every 1 day expire in 2 hours")
    publish(weir, 6)
    clock.advance(3 * HOUR)
    publish(weir, 7)
    weir.step()
    assert values(hooks) == [[6]]
    at(weir, clock, 1000 + 25 * HOUR)
    assert values(hooks) == [[6]]


def test_no_results_after_unsubscribing(weir: Weir, clock: Clock, hooks: Hooks) -> None:
    weir.execute(f"subscribe to big output http '{hooks.url}' every 1 hour")
    publish(weir, 6)
    weir.execute("unsubscribe from big")
    at(weir, clock, 1000 + 2 * HOUR)
    assert values(hooks) == []


def test_files_every_ten_minutes(weir: Weir, clock: Clock) -> None:
    weir.execute("subscribe to big output jsonl 'box' every 10 minutes")
    for minute in range(1, 31):
        clock.now = 1000 + minute * 60.0
        publish(weir, 100 + minute)
    assert [json.loads(line)["output"]["x"] for line in Path("box").read_text().splitlines()] == list(range(101, 131))


def test_timers_that_are_not_due_are_not_read(weir: Weir, clock: Clock, executed: list[dict[str, Any]]) -> None:
    rows = [{"name": f"n{i}", "hours": i + 1} for i in range(2000)]
    weir.register_many("create query $name as select x from R where x > 5 do append 'box' every $hours hours", rows)
    publish(weir, 6)
    with weir.catalog.database.connect() as connection:
        plan = connection.execute("explain query plan select * from timers where due <= 5000 order by due limit 9")
        assert "USING INDEX timers_due" in str([tuple(row) for row in plan])
    executed.clear()
    at(weir, clock, 1000 + HOUR)
    assert len(Path("box").read_text().splitlines()) == 1
    assert len(str(executed)) < 10_000

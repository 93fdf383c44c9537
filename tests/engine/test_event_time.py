"""The same results however items arrive: late, in any micro-batches, over restarts, with other queries."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from fishweir import testing
from fishweir.testing import Clock

HOUR, START = 3600.0, 1.7e9
LATE = 2 * HOUR
STREAMS = """
    create stream A timestamp t late by 2 hours;
    create stream B timestamp t late by 2 hours;
    create stream C timestamp t late by 2 hours;
    create stream R (k int, v int, t double) timestamp t late by 2 hours;
    create stream S (k int, v int, t double) timestamp t late by 2 hours;
    create stream T (k int, v int, t double) timestamp t late by 2 hours;
"""
BY_SECONDS = {
    "both": "A//i->x[k->a] JOIN{a = b, 20 minutes} B//i->y[k->b]",
    "then": "A//i->x[k->a] FOLLOWED BY{a = b, 30 minutes} B//i->y[k->b]",
    "chain": "(A//i->x[k->a] JOIN{a = b, 20 minutes} B//i->y[k->b]) JOIN{b = c, 40 minutes} C//i->z[k->c]",
    "itself": "A//i->x[k->a] FOLLOWED BY{a = b, 1 hour} A//i->y[k->b]",
    "ranges": "select R.v as r, S.v as s from R [range 20 minutes], S [range 10 minutes] where R.k = S.k",
    "theta": "select R.v as r, S.v as s from R [range 5 minutes], S [range 5 minutes] where R.k < S.k and R.v > 40",
    "three": "select R.v as r, S.v as s, T.v as t from R [range 20 minutes], S [range 30 minutes], T [range 10 minutes]"
    " where R.k = S.k and S.k = T.k",
    "passed": "select k, v from R where v > 20 publish passed",
    "onward": "select p.v as p, S.v as s from passed [range 15 minutes] as p, S [range 15 minutes] where p.k = S.k",
    "pairs": "select R.v as v, R.k as k from R [range 10 minutes], S [range 10 minutes] where R.k = S.k publish pairs",
    "further": "select p.v as p, T.v as t from pairs [range 25 minutes] as p, T [range 25 minutes] where p.k = T.k",
}
BY_ARRIVAL = {
    "rows": "select R.v as r, S.v as s from R [rows 3], S [rows 2] where R.k = S.k",
    "mixed": "select R.v as r, S.v as s from R [range 30 minutes], S [rows 3] where R.k = S.k",
    "own": "select x.v as x, y.v as y from R [rows 2] as x, R [rows 3] as y where x.k = y.k",
    "several": "select R.v as r, S.v as s, T.v as t from R [rows 2], S [rows 3], T [range 20 minutes] where R.k = S.k"
    " and S.k = T.k",
    "Recent": "create feed Recent from A join last 30 minutes on (B | C) with [k = window.k]",
    "changing": "F//row->x[k->a] JOIN{a = b, 2 hours} B//i->y[k->b]",
    "Newest": "create feed Newest from A join last 3 items on B with [k = window.k]",
}
OTHERS = [
    "create query far as A//i->x[k->a] JOIN{a = b, 9 hours} C//i->y[k->b]",
    "create query many as select R.v as r from R [rows 30], T [range 7 hours] where R.k = T.k",
    "create feed Long from C join last 8 hours on A with [k = window.k]",
]


@dataclass(frozen=True)
class Item:
    stream: str
    number: int
    time: float
    arrival: float
    key: int

    @property
    def body(self):
        if self.stream in "ABC":
            return f"<i n='{self.number}'><k>{self.key}</k><t>{self.time}</t></i>"
        return {"k": self.key, "v": self.number, "t": self.time}


def items(seed: int, size: int = 100) -> list[Item]:
    """Items in arrival order, each up to two hours late."""
    draw = random.Random(seed)
    found = []
    for number in range(size):
        time = START + round(draw.random() * 6 * HOUR)
        delay = draw.choice([0.0, 1.0, draw.random() * LATE * 0.99])
        found.append(Item(draw.choice("ABCRSTRSF"), number, time, time + delay, draw.randrange(2)))
    return sorted(found, key=lambda item: item.arrival)


def statements(queries: dict[str, str]) -> str:
    named = {"create", "publish"}
    return ";".join(
        text if named.intersection(text.split()) else f"create query {name} as {text}" for name, text in queries.items()
    )


@dataclass
class Story:
    """A home with arriving items and other events."""

    home: Path
    queries: dict[str, str]
    clock: Clock = field(default_factory=lambda: Clock(START))
    limit: int = 20_000

    def __post_init__(self) -> None:
        self.weir, self.rows, self.file = self._open(), {}, self.home.with_suffix(".xml")
        self.file.write_text("<rows/>")
        self.weir.execute(f"create stream F from '{self.file}' rows //row key @id every 0;")
        self.weir.execute(STREAMS + statements(self.queries))

    def _open(self):
        return testing.open(self.home, self.clock, self.limit)

    def arrive(self, some: list[Item]) -> None:
        for item in some:
            self.clock.now = max(self.clock.now, item.arrival)
            if item.stream == "F":
                self._change(item)
            else:
                self.weir.publish(item.stream, [item.body])
            self.clock.advance(1e-3)

    def _change(self, item: Item) -> None:
        """A row of the file is inserted, changed or deleted. Two changes between polls count as one."""
        self.rows[item.key] = item.number
        if item.number % 5 == 0:
            del self.rows[item.key]
        rows = "".join(f"<row id='{id}' n='{number}'><k>{number % 2}</k></row>" for id, number in self.rows.items())
        self.file.write_text(f"<rows>{rows}</rows>")
        self.settle()

    def settle(self) -> None:
        while self.weir.step():
            pass

    def restart(self) -> None:
        self.weir.close()
        self.weir = self._open()

    def answers(self) -> dict[str, list[str]]:
        found = {name: sorted(str(result.output) for result in self.weir.results(name)) for name in self.queries}
        self.weir.close()
        return found


def disturbed(home: Path, queries: dict[str, str], some: list[Item], seed: int) -> tuple[dict[str, list[str]], Story]:
    """Random cuts, micro-batches, idle periods, restarts, and queries that are added and dropped."""
    draw = random.Random(seed)
    story = Story(home, queries, limit=draw.choice([5, 20_000]))
    living: list[str] = []
    for item in some:
        story.arrive([item])
        chance = draw.random()
        if chance < 0.25:
            story.settle()
        elif chance < 0.35:
            story.weir.step()
        if draw.random() < 0.05:
            story.settle()
            story.restart()
        if draw.random() < 0.05:
            story.settle()
            text = draw.choice(OTHERS)
            name = text.split()[2]
            if name in living:
                living.remove(name)
                story.weir.execute(f"drop feed {name}") if "feed" in text else story.weir.drop(name)
            else:
                living.append(name)
                story.weir.execute(text)
    story.settle()
    return story.answers(), story


@pytest.mark.parametrize("seed", range(3))
def test_joins_by_seconds_do_not_depend_on_arrival(tmp_path: Path, seed: int) -> None:
    some = items(seed)
    whole = Story(tmp_path / "whole", BY_SECONDS)
    whole.arrive(sorted(some, key=lambda item: item.time))
    whole.settle()
    expected = whole.answers()
    assert sum(map(bool, expected.values())) >= len(expected) - 1
    found, story = disturbed(tmp_path / "disturbed", BY_SECONDS, some, seed)
    assert found == expected
    assert not any(commit.missed for commit in story.weir.table.commits())
    assert story.weir.table.newest().dropped_by, "something was dropped"


@pytest.mark.parametrize("seed", range(3))
def test_joins_by_arrival_depend_on_arrival_order_only(tmp_path: Path, seed: int) -> None:
    some = items(seed + 100)
    single = Story(tmp_path / "single", BY_ARRIVAL)
    for item in some:
        single.arrive([item])
        single.settle()
    expected = single.answers()
    assert all(expected.values())
    whole = Story(tmp_path / "whole", BY_ARRIVAL)
    whole.arrive(some)
    whole.settle()
    assert whole.answers() == expected
    assert disturbed(tmp_path / "disturbed", BY_ARRIVAL, some, seed)[0] == expected


def test_the_spark_job_has_the_same_results(spark_weir, tmp_path: Path) -> None:
    """Late items in several micro-batches of the real job, joins by seconds and by arrival; times are declared late."""
    queries = {name: BY_SECONDS[name] for name in ("both", "chain", "ranges", "pairs", "further")}
    queries |= {name: BY_ARRIVAL[name] for name in ("rows", "Newest")}
    some, draw = items(5, 60), random.Random(5)
    single = Story(tmp_path / "single", queries)
    spark_weir.execute(STREAMS + statements(queries))
    spark_weir.start()
    for item in (item for item in some if item.stream != "F"):
        single.arrive([item])
        single.settle()
        spark_weir.publish(item.stream, [item.body])
        if draw.random() < 0.1:
            spark_weir.wait_idle()
    spark_weir.wait_idle()
    found = {name: sorted(str(result.output) for result in spark_weir.results(name)) for name in queries}
    assert found == single.answers()
    assert sum(map(bool, found.values())) > 4
    assert len(spark_weir.table.commits()) > 2

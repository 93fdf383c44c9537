"""Joins whose start is in the past: all results over documents since then, each once, whatever happens."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import pytest

from fishweir import testing
from fishweir.algebra.documents import Document, parse_document
from fishweir.algebra.join_oracle import evaluate_join
from fishweir.engine.weir import Weir
from fishweir.languages.script import parse_script

LATE = 3
BEGAN = 1_000_000.0
STREAMS = "".join(f"create stream {name} timestamp /*/t late by {LATE};" for name in "ABC")
JOINS = {
    "pair": "select A.k from A [range 6], B [range 4] where A.k = B.k",
    "ever": "select A.k from A [range unbounded], B [range 2] where A.k = B.k",
    "rows": "select A.k from A [rows 2], B [rows 3] where A.k = B.k",
    "three": "select A.k from A [range 5], B [range 5], C [range 5] where A.k = B.k and B.k = C.k",
    "followed": "A->x FOLLOWED BY{x/k = y/k, 5} B->y",
    "itself": "A->x JOIN{x/k = y/k, 3} A->y",
}
OTHERS = {
    "noted": "from A as $a join last 5 on B with $a[k = window.k]",
    "alone": "A->x NOT FOLLOWED BY{x/k = y/k, 5} B->y",
    "chain": "A->x FOLLOWED BY{x/k = y/k, 5} B->y FOLLOWED BY{y/k = z/k, 5} C->z",
    "one": "A//d[k = 1]",
}
Found = list[list[str]]


@dataclass(frozen=True)
class Item:
    stream: str
    number: int
    time: int
    key: int
    arrived: float

    @property
    def id(self) -> str:
        return f"{self.stream}-{self.number}"

    @property
    def text(self) -> str:
        return f"<d><t>{self.time}</t><k>{self.key}</k></d>"

    @property
    def document(self) -> Document:
        return Document(self.id, float(self.time), parse_document(self.text.encode()))


def of(items: Iterable[Item], stream: str) -> list[Item]:
    return [item for item in items if item.stream == stream]


def follows(first: Item, then: Item, seconds: int) -> bool:
    return first.key == then.key and 0 < then.time - first.time <= seconds


def expected(name: str, items: Sequence[Item]) -> Found:
    a, b, c = (of(items, stream) for stream in "ABC")
    if name in JOINS:
        (query,) = parse_script(JOINS[name])
        documents = {stream: [item.document for item in of(items, stream)] for stream in "ABC"}
        sides = [documents[block.source.name] for block in query.shape.blocks]  # type: ignore[union-attr]
        joined = evaluate_join(query.shape, query.constants, sides)  # type: ignore[union-attr, arg-type]
        return sorted(pair.documents for pair in joined)
    match name:
        case "one":
            return sorted([x.id] for x in a if x.key == 1)
        case "alone":
            return sorted([x.id] for x in a if not any(follows(x, y, 5) for y in b))
        case "chain":
            chains = ((x, y, z) for x, y, z in product(a, b, c) if follows(x, y, 5) and follows(y, z, 5))
            return sorted([f"<result>{x.text}{y.text}{z.text}</result>"] for x, y, z in chains)
    return noted(items)


def noted(items: Sequence[Item]) -> Found:
    """The items in the window of five seconds when an item arrives."""
    found = []
    for item in of(items, "A"):
        there = [other for other in of(items, "B") if other.arrived <= item.arrived and other.key == item.key]
        window = sorted((other.time, other.number, other.id) for other in there if 0 <= item.time - other.time <= 5)
        if window:
            found.append([item.id, *(id for _, _, id in window)])
    return sorted(found)


def shown(weir: Weir, name: str) -> Found:
    if name == "chain":
        return sorted([str(result.output)] for result in weir.results(name))
    if name == "noted":
        return sorted(
            [*result.documents, *(bound["document"] for bound in result.bindings.values())]
            for result in weir.results(name)
        )
    return sorted(result.documents for result in weir.results(name))


class History:
    """Random arrivals, micro-batches, pauses and restarts. Items arrive in order, or up to LATE seconds late."""

    def __init__(self, home: Path, seed: int) -> None:
        self.draw, self.home, self.clock = random.Random(seed), home, testing.Clock(BEGAN)
        self.in_order = seed % 2 == 0
        self.items: list[Item] = []
        self.front = dict.fromkeys("ABC", 0)
        self.weir = self.open()

    def open(self) -> testing.Weir:
        return testing.open(self.home, clock=self.clock, documents_per_batch=self.draw.choice([3, 20]))

    def publish(self) -> None:
        stream, some = self.draw.choice("AAABBBC"), list[Item]()
        for _ in range(1 if self.in_order else self.draw.randint(1, 3)):
            some.append(
                Item(
                    stream,
                    len(of(self.items, stream)) + 1,
                    self.next_time(stream),
                    self.draw.randint(0, 1),
                    self.clock.now,
                )
            )
            self.items.append(some[-1])
        self.weir.publish(stream, [item.text for item in some])

    def next_time(self, stream: str) -> int:
        if self.in_order:
            self.front = dict.fromkeys("ABC", self.front[stream] + 1)
            return self.front[stream]
        time = max(int(self.clock.now - BEGAN) - self.draw.randint(0, LATE), self.front[stream] - LATE)
        self.front[stream] = max(self.front[stream], time)
        return time

    def go_on(self, steps: int) -> None:
        for _ in range(steps):
            what = self.draw.random()
            if what < 0.5:
                self.publish()
            elif what < 0.85:
                self.weir.step()
            elif what < 0.95:
                self.clock.advance(self.draw.choice([1, 1, 2, 9]))
            else:
                self.weir.close()
                self.weir = self.open()
            self.clock.advance(0.5)

    def register(self) -> list[Item]:
        """Registers the queries, with a start in the past. Returns the items that they see so far."""
        start, seen = 0.0, list(self.items)
        if self.draw.random() < 0.7:  # else some of what arrived before waits, and is seen whatever the start is
            self.weir.run(until_idle=True)
            start = self.draw.uniform(BEGAN, self.clock.now)
            seen = [item for item in self.items if item.arrived >= start]
        queries = (JOINS | OTHERS).items()
        self.weir.execute(";".join(f"create query {name} as {text} start '{start}'" for name, text in queries))
        return seen

    def end(self) -> None:
        """Streams move on, so that all windows have passed."""
        self.weir.run(until_idle=True)
        self.clock.advance(100)
        for key, stream in enumerate("ABC", 7):
            self.weir.publish(stream, [Item(stream, 0, 10_000, key, self.clock.now).text])
        self.weir.run(until_idle=True)


@pytest.mark.parametrize("seed", range(3))
def test_equal_to_the_definition(tmp_path: Path, seed: int) -> None:
    history = History(tmp_path / "home", seed)
    history.weir.execute(STREAMS)
    if history.draw.random() < 0.5:  # others share the state from before
        history.weir.execute("create query other as select A.k from A [range 9], B [range 9] where A.k = B.k")
    history.go_on(history.draw.randint(5, 25))
    before = len(history.items)
    seen = history.register()
    history.go_on(25)
    seen += history.items[before:]
    history.end()
    last = {item.id for item in history.items}
    for name in JOINS | OTHERS:
        if name != "rows" or history.in_order:  # the oracle of windows of rows knows no lateness
            found = [some for some in shown(history.weir, name) if name == "chain" or some[0] in last]
            assert found == expected(name, seen), name
    history.weir.close()


def test_the_job_takes_over_once_earlier_documents_cannot_join(tmp_path: Path) -> None:
    with testing.open(tmp_path / "home", clock=testing.Clock(BEGAN)) as weir:
        weir.execute(STREAMS)
        weir.publish("A", [Item("A", 1, 0, 1, BEGAN).text])
        weir.run(until_idle=True)
        weir.execute(f"create query pair as {JOINS['pair']} start '0'; create query ever as {JOINS['ever']} start '0'")
        hidden = []
        for time in (5, 6, 30, 31):
            weir.publish("B", [Item("B", 0, time, 1, BEGAN).text])
            weir.publish("A", [Item("A", 0, time, 0, BEGAN).text])
            weir.run(until_idle=True)
            hidden.append(set([commit for commit in weir.table.commits() if not commit.past][-1].hidden))
        numbers = {name: {weir.catalog.query(name).number} for name in ("pair", "ever")}  # type: ignore[union-attr]
        assert hidden[0] == numbers["pair"], "of a window without end, the state of the past is handed over"
        assert hidden[-1] == set()
        assert shown(weir, "pair") == [["A-1", "B-1"], ["A-1", "B-2"]]
        assert len(shown(weir, "ever")) == 4


def test_results_after_repeated_kills(tmp_path: Path) -> None:
    """A process that is killed repeatedly, then one that finishes."""
    with testing.open(tmp_path / "home") as weir:
        weir.execute(STREAMS)
        a = [Item("A", n, n, n % 3, BEGAN) for n in range(1, 200)]
        b = [Item("B", n, n + 2, n % 3, BEGAN) for n in range(1, 200)]
        for start in range(0, 200, 50):
            weir.publish("A", [item.text for item in a[start : start + 50]])
            weir.publish("B", [item.text for item in b[start : start + 50]])
            if start == 100:
                weir.run(until_idle=True)
                weir.execute(
                    f"create query pair as {JOINS['pair']} start '0'; create query alone as {OTHERS['alone']} start '0'"
                )
    for seconds in (0.0, 0.2, 0.4, 0.8):
        kill_a_run(tmp_path / "home", seconds)
    with testing.open(tmp_path / "home", documents_per_batch=5) as weir:
        weir.run(until_idle=True)
        assert shown(weir, "pair") == expected("pair", [*a, *b])
        weir.publish("B", [Item("B", 0, 10_000, 9, BEGAN).text])
        weir.run(until_idle=True)
        assert shown(weir, "alone") == expected("alone", [*a, *b])


def kill_a_run(home: Path, seconds: float) -> None:
    """Kills a process some time after it has started to evaluate."""
    code = f"""
from fishweir import testing
with testing.open({str(home)!r}, documents_per_batch=5) as weir:
    weir.step()
    print("began", flush=True)
    weir.run(until_idle=True)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "began\n"
        time.sleep(seconds)
        process.kill()

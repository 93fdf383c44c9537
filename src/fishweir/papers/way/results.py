"""Part `results`: the cost of a result for its receiver: read to Arrow, one by one, of one query, appended, called.

The homes are filled without Spark, since reading them is the same. Times are wall times and processor times of the
reading process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from fishweir import testing
from fishweir.papers.experiment.figures import Target
from fishweir.papers.way.part import Measured, Part, Setting, home_folder
from fishweir.papers.way.work import BOXES, STREAM, TEXT
from fishweir.papers.way.work import items as all_items


@dataclass(frozen=True)
class Sizes:
    queries: int
    documents: int
    pairs: int
    """Approximate number of results of the SQL join."""
    batches: int
    """Number of micro-batches of the home in which one query is read."""
    rounds: int
    selected: int
    """Number of documents with a result of an XSCL selection."""
    deliveries: int
    """Number of micro-batches whose results are delivered."""


WHOLE = Sizes(100_000, 20_000, 500_000, 1_000, 3, 100_000, 12)
QUICK = Sizes(1_000, 500, 5_000, 20, 1, 500, 2)
MOST_US_A_RESULT = {"to_arrow": 2.0, "append": 10.0, "callback": 10.0}


@dataclass(frozen=True)
class Figure:
    """Microseconds per result."""

    results_of: str
    taken: str
    results: int
    processor_us: float
    wall_us: float

    def point(self) -> tuple[str, float, float | None]:
        return f"{self.results_of}, {self.taken}", self.results, self.results


def measure(setting: Setting) -> Measured:
    sizes: Sizes = setting.sizes_of("results", WHOLE, QUICK)
    found: list[Figure] = []
    for name, fill in FILLED.items():
        setting.say(name)
        with home_folder() as folder, opened(folder) as weir:
            fill(weir, sizes)
            weir.run(until_idle=True)
            found.append(best(name, "to_arrow", sizes.rounds, lambda: weir.results().to_arrow().num_rows))
            found.append(best(name, "one by one", sizes.rounds, lambda: sum(1 for _ in weir.results())))
    setting.say("one query among many micro-batches")
    found.append(one_query(sizes))
    for action in ("append", "callback"):
        setting.say(action)
        found += delivered(action, sizes)
    return Measured(found, targets(found))


@contextmanager
def opened(folder: Path) -> Iterator[testing.Weir]:
    weir = testing.open(folder, documents_per_batch=5_000)
    with weir:
        yield weir


def best(name: str, taken: str, rounds: int, read: Callable[[], int]) -> Figure:
    """The fastest of some rounds, by wall time. The first one also looks up queries and opens files."""
    turns = []
    for _ in range(rounds + 1):
        began, wall = time.process_time(), time.perf_counter()
        count = read()
        turns.append((time.process_time() - began, time.perf_counter() - wall))
    assert count, f"{name}: there are no results to read"
    processor, wall = min(turns, key=itemgetter(1))
    return Figure(name, taken, count, processor / count * 1e6, wall / count * 1e6)


def boxes(weir: testing.Weir, sizes: Sizes) -> None:
    weir.execute(BOXES.stream)
    weir.register_many(BOXES.template, BOXES.rows(sizes.queries))
    weir.publish(STREAM, BOXES.documents(sizes.documents, 1))


def frequent_words(count: int) -> list[str]:
    """The words that most items contain."""
    known, shares = all_items().keywords
    return [known[i] for i in np.argsort(-shares, kind="stable")[:count].tolist()]


def texts(weir: testing.Weir, sizes: Sizes) -> None:
    """Pairs of frequent words."""
    weir.execute(TEXT.stream)
    words = frequent_words(max(2, int(sizes.queries**0.5)))
    pairs = [{"name": f"q{i}", "a": a, "b": b} for i, (a, b) in enumerate(product(words, repeat=2))]
    weir.register_many(TEXT.template, pairs)
    weir.publish(STREAM, TEXT.documents(sizes.documents, 1))


def sql_join(weir: testing.Weir, sizes: Sizes) -> None:
    """One query; each key joins 50 tuples with 50."""
    rows, rng = sizes.pairs // 50, np.random.default_rng(1)
    window = "[range 1000000 seconds]"
    weir.execute(f"""create stream A (k int, a int, s string); create stream B (k int, b int);
        create query pairs as select A.k, A.a, A.s, B.b from A {window}, B {window} where A.k = B.k""")
    keys, times = rng.integers(0, max(1, rows // 50), (2, rows)).tolist(), [float(i) for i in range(rows)]
    weir.publish("A", [{"k": k, "a": i, "s": f"text {i}"} for i, k in enumerate(keys[0])], timestamps=times)
    weir.publish("B", [{"k": k, "b": i} for i, k in enumerate(keys[1])], timestamps=times)


def items(weir: testing.Weir, sizes: Sizes) -> None:
    """Feeds of whole items; each of the most frequent words of titles is selected by one feed."""
    weir.execute(TEXT.stream)
    words = [{"name": f"f{i}", "word": word} for i, word in enumerate(frequent_words(max(sizes.queries // 100, 10)))]
    weir.register_many(f"create feed $name from {STREAM} as $s where $s[title contains $word]", words)
    weir.publish(STREAM, [_item(i, text) for i, text in enumerate(TEXT.documents(sizes.documents // 4, 1))])


def _item(i: int, text: str) -> str:
    """A typical feed item: references, a CDATA section, white space."""
    title = text.removeprefix("<item>").removesuffix("</item>")
    shown = f"<link>http://example.org/?i={i}&amp;b=1</link><description><![CDATA[<p>{title}</p>]]></description>"
    return f'<item>\n  {title}\n  {shown}\n  <guid isPermaLink="false">{i}</guid>\n</item>'


def xscl_selection(weir: testing.Weir, sizes: Sizes) -> None:
    """Patterns over items; each title is selected by one query, which outputs the item."""
    _select_items(weir, sizes.selected, f"{STREAM}//item->i[./title->t=$title][./link->l]")


def xscl_construction(weir: testing.Weir, sizes: Sizes) -> None:
    """The same with an element that is constructed of three variables."""
    output = "<hit by=$t>{l}{i}</hit>"
    _select_items(weir, sizes.selected, f"select {output} from {STREAM}//item->i[./title->t=$title][./link->l]")


def _select_items(weir: testing.Weir, count: int, query: str) -> None:
    weir.execute(TEXT.stream)
    weir.register_many(f"create query $name as {query}", [{"name": f"x{i}", "title": f"t{i}"} for i in range(count)])
    weir.publish(STREAM, [_item(i, f"<item><title>t{i}</title></item>") for i in range(count)])


def xscl_join(weir: testing.Weir, sizes: Sizes) -> None:
    """One query over documents; each author joins 20 books with 20 entries."""
    documents, rng = max(sizes.pairs // 90, 20), np.random.default_rng(1)
    weir.execute("create stream D; create query x as "
                 "D//book->x1[.//author->x2] FOLLOWED BY{x2=x4, 1000000} D//blog->x3[.//author->x4]")  # fmt: skip
    for tag in ("book", "blog"):
        authors = rng.integers(0, max(1, documents // 20), documents).tolist()
        published = [f"<{tag}><author>a{k}</author><title>t{i}</title></{tag}>" for i, k in enumerate(authors)]
        start = 0.0 if tag == "book" else float(documents)
        weir.publish("D", published, timestamps=[start + i for i in range(documents)])


FILLED = {
    "boxes": boxes, "text filters": texts, "feeds of items": items, "XSCL selections": xscl_selection,
    "XSCL selections of three variables": xscl_construction,
    "an SQL join": sql_join, "an XSCL join": xscl_join,
}  # fmt: skip


def one_query(sizes: Sizes) -> Figure:
    """Reads all results of a query that has one in every tenth micro-batch, among many queries. The time is per
    micro-batch."""
    with home_folder() as folder, opened(folder) as weir:
        weir.execute("create stream R (x int)")
        weir.register_many("create query $name as select x from R where x = $x",
                           [{"name": f"q{i}", "x": i} for i in range(sizes.queries)])  # fmt: skip
        for batch in range(sizes.batches):
            weir.publish("R", [{"x": batch % 10}])
            weir.step()
        name = f"one query of {sizes.queries:,}, {sizes.batches:,} micro-batches"
        one = best(name, "results(name), a micro-batch", sizes.rounds, lambda: len(list(weir.results("q3"))))
        share = one.results / sizes.batches
        return Figure(one.results_of, one.taken, one.results, one.processor_us * share, one.wall_us * share)


@contextmanager
def delivering(action: str, sizes: Sizes) -> Iterator[testing.Weir]:
    with home_folder() as folder, opened(folder) as weir:
        weir.execute(BOXES.stream)
        weir.action("callback", _heard)
        target = "callback" if action == "callback" else f"append '{folder.parent / 'results.jsonl'}'"
        weir.register_many(f"{BOXES.template} do {target}", BOXES.rows(sizes.queries))
        yield weir


def _heard(_: Any) -> None:
    """Does nothing: the receiver's processing is not measured."""


def delivered(action: str, sizes: Sizes) -> list[Figure]:
    """From the commit until all results of its micro-batch are delivered. Every query has the same action. The first
    delivery also looks up every query that fires. After some more, most queries are known."""
    turns: list[tuple[float, float, int]] = []
    with delivering(action, sizes) as weir:
        service = weir._delivery_service
        step = service.step

        def timed() -> int:
            began, wall = time.process_time(), time.perf_counter()
            count = step()
            turns.append((time.process_time() - began, time.perf_counter() - wall, count))
            return count

        service.step = timed  # type: ignore[method-assign]
        for seed in range(sizes.deliveries):
            weir.publish(STREAM, BOXES.documents(min(5_000, sizes.documents), seed))
            while weir.step():
                continue
    spent = [turn for turn in turns if turn[2]]
    name = f"boxes, {sizes.queries:,} actions"
    ways = ((f"{action}, first delivery", spent[0]), (action, min(spent, key=lambda turn: turn[0] / turn[2])))
    return [Figure(name, way, n, cpu / n * 1e6, wall / n * 1e6) for way, (cpu, wall, n) in ways]


def targets(figures: list[Figure]) -> list[Target]:
    goals = []
    for one in figures:
        most = MOST_US_A_RESULT.get(one.taken)
        if most is not None:
            name = f"{one.results_of}, {one.taken}: at most {most:g} us per result"
            spent = f"{one.wall_us:.2f} us, {one.processor_us:.2f} us of processor time"
            goals.append(Target(name, spent, one.wall_us <= most))
    return goals


PART = Part("results", "What a result costs its receiver", measure)

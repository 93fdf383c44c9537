"""Windows over the published items of feeds that join: through the engine, with each level checked by the oracle."""

from __future__ import annotations

import random

import pytest
from lxml import etree

from fishweir import testing
from fishweir.algebra.documents import Document, parse_document
from fishweir.algebra.join_oracle import Arrival, annotate
from fishweir.algebra.nodes import Source
from fishweir.errors import QueryError
from fishweir.pipeline.home import open_log

STREAMS = "create stream News; create stream Photos; create stream Blog;"
SHOWN = "create feed Shown from News join last 1 day on Photos with [title = window.title];"


def item(title: str, more: str = "") -> str:
    return f"<item><title>{title}</title>{more}</item>"


def annotated(weir, name):
    """By result: the item, and the documents of its annotation."""
    return [(r.documents[0], [b["document"] for b in r.bindings.values()]) for r in weir.results(name)]


def put(weir, stream, bodies, time):
    weir.publish(stream, bodies, [time] * len(bodies))
    weir.run(until_idle=True)


def test_a_window_contains_annotated_items(weir):
    weir.execute(STREAMS + SHOWN)
    weir.execute("""
        create feed Cut from Shown where [title != 'c'];
        create feed Cited from Blog as $b join last 1 day on (Shown as $s | Cut) with $b[about = window.title]
            where $s[annotation/item/link = 'p1'];
        create feed Again from Blog join last 2 items on Cited with [title = window.about];
    """)
    put(weir, "Photos", [item("a", "<link>p1</link>"), item("b", "<link>p2</link>")], 1)
    put(weir, "News", [item("a"), item("b"), item("c")], 2)
    assert annotated(weir, "Shown") == [("News-1", ["Photos-1"]), ("News-2", ["Photos-2"])]
    put(weir, "Blog", [item("x", "<about>a</about>"), item("y", "<about>b</about>"), item("z", "<about>c</about>")], 3)
    assert annotated(weir, "Cited") == [("Blog-1", ["Shown-1", "Cut-1"]), ("Blog-2", ["Cut-2"])]
    output = etree.fromstring(str(next(iter(weir.results("Cited"))).output))
    inner = output.find("annotation/item")
    assert (inner.findtext("title"), inner.findtext("annotation/item/link")) == ("a", "p1"), "annotations are kept"
    put(weir, "Blog", [item("a"), item("x")], 4)
    assert annotated(weir, "Again") == [("Blog-4", ["Cited-1"])], "a third level"


def test_feeds_in_windows_cannot_be_dropped(weir):
    weir.execute(STREAMS + SHOWN)
    weir.execute("create feed Cited from Blog join last 1 day on Shown with [about = window.title]")
    with pytest.raises(QueryError, match="the feed Shown is read by Cited; drop them first"):
        weir.execute("drop feed Shown")
    with pytest.raises(QueryError, match="the feeds read each other: Shown -> Cited -> Shown") as caught:
        weir.execute("create or replace feed Shown from News join last 1 day on Cited with [title = window.title]")
    assert caught.value.column == 59
    assert [name for name, (_, stream) in weir.catalog.streams().items() if stream.virtual] == ["Shown"]
    weir.execute("drop feed Cited; drop feed Shown")
    assert list(weir.catalog.streams()) == ["News", "Photos", "Blog"]


def test_a_feed_that_is_replaced_by_one_that_joins(weir):
    """Its readers read its sources before, its published items after."""
    weir.execute(STREAMS + "create feed Shown from News;")
    weir.execute("create feed Cited from Blog join last 1 day on Shown with [about = window.title]")
    about = item("x", "<about>a</about>")
    put(weir, "News", [item("a")], 1)
    put(weir, "Blog", [about], 2)
    weir.execute(SHOWN.replace("create", "create or replace", 1))
    put(weir, "Photos", [item("a")], 3)
    put(weir, "News", [item("a")], 4)
    put(weir, "Blog", [about], 5)
    assert annotated(weir, "Cited") == [("Blog-1", ["News-1"]), ("Blog-2", ["Shown-1"])]
    weir.execute("create or replace feed Shown from News as $n where $n[title = 'a']")
    put(weir, "News", [item("a")], 6)
    put(weir, "Blog", [about], 7)
    assert annotated(weir, "Cited")[-1] == ("Blog-3", ["News-3"])


LEVELS = """
    create stream A; create stream B; create stream C;
    create feed Q1 from (A | B as $b) as $x join last 30 seconds on (B | C as $c) with $x[title similar window.title]
        where $b[title contains 'w1'] and $c[has link];
    create feed Q2 from C join last 5 items on (A | Q1 as $q) with [link = window.link] where $q[title contains 'w2'];
    create feed Q3 from (A | Q1) as $x join last 9 seconds on (Q1 | Q2) with $x[title similar(0.3) window.title];
    create feed Q4 from B join last 20 seconds on Q3 with [title similar(0.3) window.annotation/item/title];
"""


def arrivals(weir) -> list[Arrival]:
    """All items of all streams, with their arrival times."""
    found = []
    for name, (id, _) in weir.catalog.streams().items():
        log = open_log(weir.home.streams, id)
        for number in range(1, log.head() + 1):
            entry = log.entry(number)
            document = Document(entry.id, entry.timestamp, parse_document(entry.body))
            found.append(Arrival(Source(name), id, number, entry.arrival, document))
    return found


def random_item(pick: random.Random, batch: int) -> tuple[str, float]:
    title = " ".join(pick.choice(["w1", "w2", "w3", "w4"]) for _ in range(pick.randint(1, 3)))
    link = f"<link>l{pick.randint(1, 3)}</link>" if pick.random() < 0.7 else ""
    return item(title, link), float(batch * 4 + pick.randint(0, 5))


@pytest.mark.parametrize("seed", range(3))
def test_every_level_agrees_with_the_oracle(tmp_path, seed):
    """The home is closed after each part, some items are late, and later levels follow a micro-batch later."""
    pick = random.Random(seed)
    for part in range(4):
        with testing.open(tmp_path / "home") as weir:
            weir.execute(LEVELS)
            for name in "ABC":
                made = [random_item(pick, part) for _ in range(8)]
                weir.publish(name, [body for body, _ in made], [time for _, time in made])
            weir.run(until_idle=True)
    with testing.open(tmp_path / "home") as weir:
        arrived = arrivals(weir)
        for name in ("Q1", "Q2", "Q3", "Q4"):
            query = weir.catalog.query(name)
            wanted = sorted(
                (one.item.document.id, sorted(a.document.id for some in one.annotation.values() for a in some))
                for one in annotate(query.shape, query.constants, arrived)
            )
            assert sorted((id, sorted(some)) for id, some in annotated(weir, name)) == wanted, name
            assert wanted, name
            items = [one for one in arrived if one.source.name == name]
            assert name == "Q4" or len(items) == len(wanted), "each result is an item of the feed's stream"

"""Queries of every language are added and dropped while documents and tuples arrive; results equal the oracle's."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from fishweir.algebra.documents import Document, parse_document, tuple_to_document
from fishweir.algebra.feeds import Selection
from fishweir.algebra.nodes import Source
from fishweir.algebra.oracle import evaluate, selects

WORDS = ["rock", "jazz", "concert", "paris", "free"]
NAMES = [f"n{i}" for i in range(12)]


def statement(pick: random.Random, name: str) -> str:
    """A random query over the feed, the documents or the tuples."""
    a, b, c = pick.sample(WORDS, 3)
    low, high = sorted(pick.sample(range(10), 2))
    return pick.choice(
        [
            f"create feed {name} from News as $n where $n[title contains '{a}' and not contains '{b}']",
            f"create feed {name} from News as $n where $n[(title = '{a}' or contains '{b}') and price < {high}]",
            f"create feed {name} from News where "
            f"[title similar '{a} {b}' or month(date) = {1 + low} and contains '{c}']",
            f"create {name} where <item><title>$t</><price>$p</></> in 'News', $p >= {low}, $p < {high} construct $t",
            f"create {name} where <item><tag k='{a}'>$v</></> in 'News' construct $v",
            f"News//item->x[.//tag->y[@k='{a}']][price > {low}] publish {name}",
            f"News//*[@k='{a}']->y publish {name}",
            f"create query {name} as select x, y from R where x > {low} and y <= {high} and name = '{a}'",
            f"create query {name} as select * from R where {low} <= x <= {high} or name like '{a[:2]}%' and x > y",
            f"create query {name} as select title from News where price between {low} and {high}",
        ]
    )


def item(pick: random.Random) -> str:
    title = " ".join(pick.choices(WORDS, k=pick.randint(1, 3)))
    tags = "".join(f"<tag k='{pick.choice(WORDS)}'>{pick.choice(WORDS)}</tag>" for _ in range(pick.randint(0, 3)))
    date = f"2025-{pick.randint(1, 9):02}-01T00:00:00Z"
    return f"<item><title>{title}</title><price>{pick.randint(0, 9)}</price><date>{date}</date><a>{tags}</a></item>"


def row(pick: random.Random) -> dict[str, object]:
    return {
        "x": pick.choice([None, *range(10)]),
        "y": float(pick.randint(0, 9)),
        "name": pick.choice([None, *WORDS]),
    }


def expected_results(weir, name: str, stream: str, document: Document) -> int:
    query = weir.catalog.query(name)
    if isinstance(query.shape, Selection):
        return int(selects(query.shape, query.constants, Source(stream), document))
    if query.shape.blocks[0].source.name != stream:
        return 0
    return len(evaluate(query.shape, query.constants, document))


@pytest.mark.parametrize("seed", [3, 8])
def test_queries_of_every_language_come_and_go(weir, seed):
    pick = random.Random(seed)
    weir.execute("create stream News; create stream R (x int, y double, name string)")
    weir.start()
    alive: set[str] = set()
    expected: Counter[tuple[str, str]] = Counter()
    for step in range(9):
        for name in pick.sample(sorted(alive), k=min(len(alive), pick.randint(0, 3))):
            weir.drop(name)
            alive.remove(name)
        free = [name for name in NAMES if name not in alive]
        for name in pick.sample(free, k=min(len(free), pick.randint(1, 6))):
            assert weir.execute(statement(pick, name)) == [name]
            alive.add(name)
        texts, rows = [item(pick) for _ in range(6)], [row(pick) for _ in range(6)]
        documents = [("News", f"d{step}.{i}", parse_document(text.encode())) for i, text in enumerate(texts)]
        documents += [("R", f"t{step}.{i}", tuple_to_document("R", one)) for i, one in enumerate(rows)]
        weir.publish("News", texts, ids=[id for stream, id, _ in documents if stream == "News"])
        weir.publish("R", rows, ids=[id for stream, id, _ in documents if stream == "R"])
        weir.wait_idle()
        for stream, id, root in documents:
            for name in alive:
                expected[name, id] += expected_results(weir, name, stream, Document(id, 0.0, root))
    weir.stop()
    found = Counter((r.query, r.documents[0]) for r in weir.results())
    assert found == +expected
    assert len(found) > 60

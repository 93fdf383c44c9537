"""Joins through the Spark job equal the oracle, with changing queries, restarts and bounded state."""

from __future__ import annotations

import random

import pytest

from fishweir import testing
from fishweir.algebra.documents import Document, parse_document
from fishweir.algebra.join_oracle import evaluate_join

LEAVES = ["a", "b", "c"]


def text(pick: random.Random, stream: str) -> str:
    leaves = [name for name in LEAVES for _ in range(pick.choice([0, 1, 1, 1, 2]))]
    inner = "".join(f"<{name}>{pick.choice('12x')}</{name}>" for name in leaves)
    return f"<{stream} k='{pick.choice('12')}'><g>{inner}</g></{stream}>"


def query(pick: random.Random, name: str) -> str:
    left, right = pick.choice([("S", "S"), ("S", "T"), ("T", "S")])
    count = pick.randint(1, 2)
    ones, twos = pick.sample(LEAVES, count), pick.sample(LEAVES, count)
    edges = " AND ".join(f"x{i}{pick.choice(['=', '=', '=', '<', '!='])}y{i}" for i in range(count))
    limit = pick.choice(["", "", f"[@k = '{pick.choice('12')}']"])
    operator, reach = pick.choice(["JOIN", "FOLLOWED BY"]), pick.choice(["1", "3 seconds", "INF"])
    blocks = [
        f"{s}//{s}->{v}{limit}" + "".join(f"[.//{n}->{v}{i}]" for i, n in enumerate(names))
        for s, v, names in ((left, "x", ones), (right, "y", twos))
    ]
    return f"create query {name} as {blocks[0]} {operator}{{{edges}, {reach}}} {blocks[1]}"


def expected(weir, name: str, documents: list[tuple[str, Document, int]], since: int):
    """The results over the documents of the micro-batches since the query was registered."""
    found = weir.catalog.query(name)
    sides = [
        [d for stream, d, batch in documents if stream == block.source.name and batch >= since]
        for block in found.shape.blocks
    ]
    return sorted(
        (name, tuple(p.documents), tuple(sorted((v, n.id, n.value) for v, n in p.binding.items() if v[0] != "_")))
        for p in evaluate_join(found.shape, found.constants, sides)
    )


def got(weir, name: str):
    return sorted(
        (r.query, tuple(r.documents), tuple(sorted((v, str(b["node"]), b["value"]) for v, b in r.bindings.items())))
        for r in weir.results(name)
    )


@pytest.mark.parametrize(("seed", "opened"), [(5, "spark_weir"), (6, "weir"), (7, "weir")])
def test_joins_are_added_and_dropped(request, seed, opened):
    """A query sees pairs from its registration on."""
    weir, by_spark = request.getfixturevalue(opened), opened == "spark_weir"
    pick = random.Random(seed)
    weir.execute("create stream S; create stream T")
    if by_spark:
        weir.start()
    documents, since, number = [], {}, 0
    for batch in range(5):
        for _ in range(3):
            number += 1
            weir.execute(query(pick, f"q{number}"))
            since[f"q{number}"] = batch
        texts = [(s, text(pick, s), float(batch + pick.randint(0, 3))) for s in pick.choices("ST", k=6)]
        for stream in "ST":
            own = [(t, at) for s, t, at in texts if s == stream]
            if own:
                ids = weir.publish(stream, [t for t, _ in own], timestamps=[at for _, at in own])
                for id, (t, at) in zip(ids, own, strict=True):
                    documents.append((stream, Document(id, at, parse_document(t.encode())), batch))
        weir.wait_idle() if by_spark else weir.step()
    total = 0
    for name, first in since.items():
        want = expected(weir, name, documents, first)
        assert got(weir, name) == want, weir.catalog.query(name).text
        assert weir.status(name).results == len(want)
        total += len(want)
    assert total > 100


def test_state_is_freed_and_bounded(weir):
    weir.execute("create stream S; create query near as S//d[@k->x] FOLLOWED BY{x=y, 10} S//d[@k->y]")
    sizes = []
    for i in range(40):
        weir.publish("S", [f"<d k='{j}'/>" for j in range(20)], timestamps=[i * 2.0] * 20)
        weir.step()
        state = weir.status()
        sizes.append(state.retained)
        kept = {file["name"] for commit in weir.table.commits()[-2:] for file in commit.states}
        assert {path.name for path in weir.home.state.glob("*.state")} == kept  # those of the last commit and before it
    assert max(sizes[10:]) <= 20 * 20, "at most twice the reach of the window, since runs are dropped as a whole"
    assert len(list(weir.results("near"))) == 20 * sum(min(i, 5) for i in range(40))
    weir.execute("create query far as S//d[@k->x] FOLLOWED BY{x=y, INF} S//d[@k->y]")
    weir.drop("near")
    weir.drop("far")
    weir.publish("S", ["<d k='1'/>"], timestamps=[100.0])
    weir.step()
    assert weir.status().retained == 0
    weir.publish("S", ["<d k='1'/>"], timestamps=[101.0])
    weir.step()
    assert not list(weir.home.state.glob("*.state"))


def test_a_home_continues_where_it_stopped(tmp_path):
    home = tmp_path / "home"
    with testing.open(home) as weir:
        weir.execute("create stream S; create query q as S//d[@k->x] JOIN{x=y, INF} S//d[@k->y]")
        weir.publish("S", ["<d k='1'/>", "<d k='2'/>"], timestamps=[1.0, 2.0])
        weir.step()
    with testing.open(home) as weir:
        weir.publish("S", ["<d k='2'/>"], timestamps=[0.0])
        weir.step()
        assert [r.documents for r in weir.results("q")] == [["S-3", "S-2"], ["S-3", "S-2"]]
        assert "pairs whose earliest document arrived after its registration" in weir.explain("q")

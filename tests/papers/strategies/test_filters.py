"""STA, VCA on the graph and the naive plan through the engine: the same results as the default, for feeds that are
added and dropped."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from fishweir.papers.roses import filters
from fishweir.papers.strategies import OFFERED
from tests.papers.strategies.support import REOPEN, Event, Execute, Publish, explained, inline, play

NAMES = [*OFFERED["filters"]]
WORDS = ["rock", "jazz", "live", "tour", "album"]


def formula(rng: random.Random) -> str:
    def atom() -> str:
        text = f"title contains '{rng.choice(WORDS)}'"
        return rng.choice([text, text, f"not ({text})", f"price < {rng.randint(1, 9)}", "exists description"])

    clauses = [" or ".join(atom() for _ in range(rng.choice([1, 1, 1, 2]))) for _ in range(rng.randint(1, 3))]
    return " and ".join(f"({clause})" for clause in clauses)


def feeds(rng: random.Random, first: int, count: int) -> Execute:
    texts = (f"create feed f{i} from News as $n where $n[{formula(rng)}];" for i in range(first, first + count))
    return Execute("".join(texts))


def items(rng: random.Random, start: float) -> Publish:
    def item() -> str:
        title = " ".join(rng.sample(WORDS, rng.randint(0, 4)))
        described = "<description>x</description>" if rng.random() < 0.5 else ""
        return f"<item><title>{title}</title><price>{rng.randint(0, 9)}</price>{described}</item>"

    return Publish("News", [item() for _ in range(12)], [start + i for i in range(12)])


def history(seed: int) -> list[Event]:
    rng = random.Random(seed)
    first: list[Event] = [Execute("create stream News;"), feeds(rng, 0, 8), items(rng, 0.0), REOPEN]
    drops = "".join(f"drop feed f{i};" for i in rng.sample(range(8), 3))
    return [*first, Execute(drops), feeds(rng, 8, 4), items(rng, 100.0), REOPEN, items(rng, 200.0)]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", range(3))
def test_results_match_the_default(name: str, seed: int, tmp_path: Path) -> None:
    expected = play(inline(tmp_path / "default", {}), history(seed))
    assert expected
    assert play(inline(tmp_path / name, {"filters": name}), history(seed)) == expected


def test_many_equal_filters(tmp_path: Path) -> None:
    """Enough for the default to answer with slices."""
    same = "".join(f"create feed f{i} from News as $n where $n[title contains 'rock'];" for i in range(9))
    story = [Execute("create stream News;" + same), items(random.Random(1), 0.0)]
    expected = play(inline(tmp_path / "default", {}), story)
    assert len({result["query"] for result in expected}) == 9
    for name in NAMES:
        assert play(inline(tmp_path / name, {"filters": name}), story) == expected


JOINED = """create stream Blog;
create feed j0 from News as $n join last 50 seconds on (Blog as $b) with $n[title similar window.title]
    where $b[title contains 'rock'] and $n[price < 5];
create feed j1 from Blog as $b join last 3 items on News with $b[price = window.price];
create feed j2 from News as $n join last 9 seconds on (News as $m) with $n[price = window.price]
    where $m[title contains 'rock' or title contains 'live'];"""


@pytest.mark.parametrize("name", NAMES)
def test_sides_of_annotation_joins_are_planned_with_the_filters(name: str, tmp_path: Path) -> None:
    def on(stream: str, seed: int, start: float) -> Publish:
        some = items(random.Random(seed), start)
        return Publish(stream, some.items, some.timestamps)

    story = history(5)
    story[2:2] = [Execute(JOINED), on("Blog", 1, 0.0)]
    story += [on("Blog", 2, 205.0), Execute("drop feed j2;"), REOPEN, on("News", 3, 210.0), on("Blog", 4, 215.0)]
    expected = play(inline(tmp_path / "default", {}), story)
    assert {"j0", "j1", "j2"} <= {result["query"] for result in expected}
    assert play(inline(tmp_path / name, {"filters": name}), story) == expected


SHARED = """create stream News;
create feed a from News as $n where $n[title contains 'rock' and title contains 'live'];
create feed b from News as $n where $n[title contains 'rock' and title contains 'tour'];"""


@pytest.mark.parametrize(
    ("name", "title", "shared"),
    [("sta", "STA", 1), ("vca", "VCA on the subsumption graph", 1), ("naive", "the naive plan", 0)],
)
def test_explain_shows_the_plan_that_ran(name: str, title: str, shared: int, tmp_path: Path) -> None:
    play(inline(tmp_path, {"filters": name}), [Execute(SHARED), items(random.Random(2), 0.0)])
    text = explained(inline(tmp_path, {}), "a")
    assert f"filters   of News, by {title}\n" in text
    assert f"shared nodes inserted: {shared}," in text
    assert len([line for line in text.splitlines() if "->" in line]) == 1 + shared


def test_sources_beyond_the_bound_are_left_to_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filters.STRATEGIES["sta"], "most", 1)
    story = [Execute(SHARED), items(random.Random(2), 0.0)]
    play(inline(tmp_path, {"filters": "sta"}), story)
    assert "by VCA with VCB" in explained(inline(tmp_path, {}), "a")

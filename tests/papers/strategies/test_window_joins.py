"""SJ-Join and IBS-JS through the engine: the default's results, with windows, restarts, queries that come and go."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from fishweir.papers.strategies import OFFERED
from tests.papers.strategies.support import REOPEN, Event, Execute, Publish, explained, inline, play

NAMES = [*OFFERED["window-joins"]]
STREAMS = "create stream R (a double, b int, name string); create stream S (c double, d int, name string);"
COLUMNS = {"R": ["a", "b"], "S": ["c", "d"]}


def query(rng: random.Random) -> str:
    """Comparisons of numbers, ranges on either side; now and then what the paper does not have."""
    left, right = rng.choice([("R", "S"), ("R", "S"), ("S", "R"), ("R", "R")])

    def column(stream: str) -> str:
        return rng.choice(COLUMNS[stream])

    edges = [
        f"l.{column(left)} {rng.choice(['<', '<=', '>', '>='])} r.{column(right)}" for _ in range(rng.randint(1, 2))
    ]
    edges += rng.choice([[], [], [], ["l.name = r.name"], [f"l.{column(left)} = r.{column(right)}"]])
    for alias, stream in (("l", left), ("r", right)):
        if rng.random() < 0.5:
            edges.append(f"{alias}.{column(stream)} {rng.choice(['<', '>=', '='])} {rng.randint(0, 6)}")
    edges += rng.choice([[], [], [], ["l.name like '%x%'"]])
    windows = [
        rng.choice([f"range {rng.choice([0, 2, 5, 30])}", f"range {rng.choice([1, 9])}", "rows 3"]) for _ in "lr"
    ]
    return f"select * from {left} [{windows[0]}] as l, {right} [{windows[1]}] as r where {' and '.join(edges)}"


def queries(rng: random.Random, first: int, count: int) -> Execute:
    return Execute("".join(f"create query q{i} as {query(rng)};" for i in range(first, first + count)))


def tuples(rng: random.Random, start: float) -> list[Event]:
    def value() -> int | None:
        return rng.choice([None, *range(7)])

    def row(stream: str) -> dict[str, object]:
        return {column: value() for column in COLUMNS[stream]} | {"name": rng.choice(["x", "y", None])}

    return [
        Publish(stream, [row(stream) for _ in range(5)], sorted(start + rng.choice([0, 1, 2, 5, 9]) for _ in range(5)))
        for stream in "RS"
    ]


def history(seed: int) -> list[Event]:
    rng = random.Random(seed)
    first: list[Event] = [Execute(STREAMS), queries(rng, 0, 12), *tuples(rng, 0.0)]
    drops = "".join(f"delete q{i};" for i in rng.sample(range(12), 4))
    later = [REOPEN, Execute(drops), queries(rng, 12, 6), *tuples(rng, 4.0), REOPEN, *tuples(rng, 10.0)]
    return [*first, *later]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", range(1, 5))
def test_results_are_those_of_the_default(name: str, seed: int, tmp_path: Path) -> None:
    expected = play(inline(tmp_path / "default", {}), history(seed))
    assert expected
    assert play(inline(tmp_path / name, {"window-joins": name}, parallelism=1 + seed % 3), history(seed)) == expected


@pytest.mark.parametrize("name", NAMES)
def test_what_is_retained_serves_every_strategy(name: str, tmp_path: Path) -> None:
    """The home is opened with the default, twice with the strategy, and with the default again."""
    less = "create query less as select * from R [range 9] as l, S [range 9] as r where l.a < r.c and l.b > 1;"
    play(inline(tmp_path, {}), [Execute(STREAMS + less), Publish("R", [{"a": 1.0, "b": 2}], [1.0])])
    for number, asked in enumerate(({"window-joins": name}, {"window-joins": name}, {}), 1):
        found = play(inline(tmp_path, asked), [Publish("S", [{"c": 2.0}], [1.0 + number])])
        assert len(found) == number
    found = play(inline(tmp_path, {}), [Publish("R", [{"a": 0.0, "b": 2}], [5.0])])
    assert len(found) == 6, "three tuples of S are retained, two of them by the strategy"


@pytest.mark.parametrize("name", NAMES)
def test_explain_says_which_ran(name: str, tmp_path: Path) -> None:
    """A join by equality is left to the default."""
    two = """create query less as select * from R [range 9] as l, S [range 9] as r where l.a < r.c and l.b > 1;
    create query same as select * from R [range 9] as l, S [range 9] as r where l.name = r.name;"""
    rows = [Publish("R", [{"a": 1.0, "b": 2, "name": "x"}], [1.0]), Publish("S", [{"c": 2.0, "name": "x"}], [2.0])]
    assert len(play(inline(tmp_path, {"window-joins": name}), [Execute(STREAMS + two), *rows])) == 2
    assert f"decided   by the strategy {name}" in explained(inline(tmp_path, {}), "less")
    assert "decided   row by row" in explained(inline(tmp_path, {}), "same")

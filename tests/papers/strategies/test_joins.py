"""MMQJP and Sequential through the engine: the default's results, with windows, restarts and changing queries."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from fishweir.papers.strategies import OFFERED
from tests.papers.strategies.support import REOPEN, Event, Execute, Publish, explained, inline, play

pytest.importorskip("duckdb")

NAMES = [*OFFERED["joins"]]


def query(rng: random.Random) -> str:
    """A join of two patterns by one or two equal values; sometimes one that the paper does not support."""
    one, two = rng.sample([("b", "k"), ("b", "l"), ("c", "k"), ("", "@id")], 2)

    def path(place: tuple[str, str], name: str) -> str:
        above, leaf = place
        return f"[{rng.choice([f'./{above}/', './/']) if above else './'}{leaf} -> {name}]"

    def side(stream: str, names: str) -> str:
        other = rng.choice(["", "", "[./c]", "[./b/l]"])
        if rng.random() < 0.4:  # both values in one element
            return f"{stream}//a{other}[./b[./k -> {names[0]}][./l -> {names[1]}]]"
        return f"{stream}//a -> {names[0]}{names[1]}{other}{path(one, names[0])}{path(two, names[1])}"

    window, kind = rng.choice([3, 20, 500]), rng.choice(["FOLLOWED BY", "JOIN"])
    equal = ["x = u", "y = w"] if rng.random() < 0.6 else [rng.choice(["x = u", "x = w", "y < u", "x = u AND y != w"])]
    return f"{side('S', 'xy')} {kind}{{{' AND '.join(equal)}, {window}}} {side(rng.choice(['S', 'T']), 'uw')}"


def queries(rng: random.Random, first: int, count: int) -> Execute:
    return Execute("".join(f"create query q{i} as {query(rng)};" for i in range(first, first + count)))


def documents(rng: random.Random, start: float) -> list[Event]:
    def value() -> str:
        return rng.choice(["1", "2", "3", ""])

    def block() -> str:
        name = rng.choice(["b", "b", "c"])
        inner = "".join(f"<{leaf}>{value()}</{leaf}>" for leaf in rng.sample(["k", "l"], rng.randint(1, 2)))
        return f"<{name}>{inner}</{name}>"

    def document() -> str:
        return f"<a id='{value()}'>{''.join(block() for _ in range(rng.randint(1, 3)))}</a>"

    return [
        Publish(stream, [document() for _ in range(4)], [start + rng.choice([0, 1, 2, 5, 9]) for _ in range(4)])
        for stream in "ST"
    ]


def history(seed: int) -> list[Event]:
    rng = random.Random(seed)
    first: list[Event] = [Execute("create stream S; create stream T;"), queries(rng, 0, 10), *documents(rng, 0.0)]
    drops = "".join(f"delete q{i};" for i in rng.sample(range(10), 4))
    later = [REOPEN, Execute(drops), queries(rng, 10, 5), *documents(rng, 10.0), REOPEN, *documents(rng, 15.0)]
    return [*first, *later]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", range(4))
def test_results_match_the_default(name: str, seed: int, tmp_path: Path) -> None:
    expected = play(inline(tmp_path / "default", {}), history(seed))
    assert expected
    assert play(inline(tmp_path / name, {"joins": name}, parallelism=1 + seed % 3), history(seed)) == expected


PLAIN = "create stream S; create stream T; create query plain as S//k->x JOIN{x = y, 100} T//k->y;"
OTHER = "create query other as S//k->x JOIN{x < y, 100} T//k->y;"


@pytest.mark.parametrize("name", NAMES)
def test_retained_state_serves_every_strategy(name: str, tmp_path: Path) -> None:
    """The first document arrives with the default, the second with the strategy, the third with the default."""
    halves = [Publish("S", ["<a><k>1</k></a>"], [1.0])], [Publish("T", ["<a><k>1</k></a>"], [2.0])]
    play(inline(tmp_path, {}), [Execute(PLAIN), *halves[0]])
    assert len(play(inline(tmp_path, {"joins": name}), halves[1])) == 1
    assert len(play(inline(tmp_path, {}), halves[1])) == 2


def test_explain_shows_the_strategy(tmp_path: Path) -> None:
    """An inequality is left to the default."""
    play(inline(tmp_path, {"joins": "sequential"}), [Execute(PLAIN + OTHER), Publish("S", ["<a><k>1</k></a>"], [1.0])])
    assert "decided   by the strategy sequential" in explained(inline(tmp_path, {}), "plain")
    assert "decided   row by row" in explained(inline(tmp_path, {}), "other")

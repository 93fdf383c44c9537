"""SJ-Batch, SJ-Immediate and IBS through the engine: the default's results, for changing queries."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from fishweir import testing
from fishweir.papers.strategies import OFFERED
from tests.papers.strategies.support import REOPEN, Event, Execute, Publish, explained, inline, play

NAMES = [*OFFERED["selections"]]
STREAM = "create stream R (x double, y double, z int, name string);"


def condition(rng: random.Random) -> str:
    def sided(column: str) -> str:
        low, high = sorted(rng.sample(range(11), 2))
        return rng.choice([f"{column} >= {low} and {column} < {high}", f"{column} > {low}", f"{column} <= {high}"])

    parts = [sided(column) for column in rng.sample(["x", "y", "z"], rng.randint(1, 3))]
    parts += rng.choice([[], [], ["x > y"], ["name like '%a%'"], ["name = 'ab'"], ["z != 3"]])
    text = " and ".join(parts)
    return f"({text}) or (x = {rng.randint(0, 10)} and y < 4)" if rng.random() < 0.2 else text


def queries(rng: random.Random, first: int, count: int) -> Execute:
    texts = (f"create query q{i} as select * from R where {condition(rng)};" for i in range(first, first + count))
    return Execute("".join(texts))


def tuples(rng: random.Random, start: float) -> Publish:
    def number() -> int | None:
        return rng.choice([None, *range(11)])

    rows = [
        {"x": number(), "y": number(), "z": number(), "name": rng.choice([None, "ab", "ca", "x"])} for _ in range(12)
    ]
    return Publish("R", rows, [start + i for i in range(len(rows))])


def history(seed: int) -> list[Event]:
    rng = random.Random(seed)
    first: list[Event] = [Execute(STREAM), queries(rng, 0, 25), tuples(rng, 0.0), REOPEN]
    drops = "".join(f"delete q{i};" for i in rng.sample(range(25), 8))
    return [*first, Execute(drops), queries(rng, 25, 10), tuples(rng, 100.0), REOPEN, tuples(rng, 200.0)]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", range(3))
def test_results_match_the_default(name: str, seed: int, tmp_path: Path) -> None:
    expected = play(inline(tmp_path / "default", {}), history(seed))
    assert expected
    assert play(inline(tmp_path / name, {"selections": name}), history(seed)) == expected


TWO = f"""{STREAM} create query box as select * from R where x > 1 and y > 2;
create query x as select x from R where x > 1;"""


@pytest.mark.parametrize(("name", "shown"), [("sj-batch", "(Ndc)"), ("sj-immediate", "of 1 (Ndc)"), ("ibs", "ibs")])
def test_explain_shows_the_strategy(name: str, shown: str, tmp_path: Path) -> None:
    """A query with one attribute is left to the default."""
    row = Publish("R", [{"x": 2.0, "y": 3.0}], [1.0])
    assert len(play(inline(tmp_path, {"selections": name}), [Execute(TWO), row])) == 2
    box, alone = (explained(inline(tmp_path, {}), query) for query in ("box", "x"))
    (strategy,) = (line for line in box.splitlines() if "strategy" in line)
    assert strategy.split()[1].strip(",") == name
    assert shown in strategy
    assert "strategy" not in alone


def test_other_strategies_take_effect_when_the_home_is_opened_again(tmp_path: Path) -> None:
    row = Publish("R", [{"x": 2.0, "y": 3.0}], [1.0])
    shown = []
    for number, requested in enumerate(({}, {"selections": "ibs"}, {"selections": "sj-batch"}, {})):
        found = play(inline(tmp_path, requested), [Execute(TWO), row])
        assert len(found) == 2 * (number + 1)
        shown.append(explained(inline(tmp_path, {}), "box"))
    assert ["strategy  ibs" in text for text in shown] == [False, True, False, False]
    assert ["strategy  sj-batch" in text for text in shown] == [False, False, True, False]
    with testing.open(tmp_path) as weir:
        assert len(list(weir.results("box"))) == 4

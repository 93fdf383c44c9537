"""Steps of a weir without Spark reuse their runner, unless something that it depends on has changed."""

from __future__ import annotations

from pathlib import Path

from fishweir import testing
from fishweir.testing import STOP, Clock, Weir

SCRIPT = """
    create stream R (k int, x int);
    select k, x from R where x > 5 publish big;
    create query pairs as select a.x as x, b.x as y from big [range 1000] as a, R [range 1000] as b
        where a.k = b.k and b.x < 5;
"""


def settle(weir: Weir) -> None:
    while weir.step():
        pass


def outputs(weir: Weir, name: str) -> list[tuple[int, ...]]:
    return sorted(tuple(result.output.values()) for result in weir.results(name))


def test_weirs_of_one_home_take_turns(tmp_path: Path) -> None:
    """Each continues where the other one stopped, with its state and its published items."""
    clock = Clock(1000.0)
    with testing.open(tmp_path / "home", clock) as one, testing.open(tmp_path / "home", clock) as other:
        one.execute(SCRIPT)
        for number, weir in enumerate([one, one, other, one, other, other, one]):
            clock.advance(1.0)
            weir.publish("R", [{"k": 1, "x": 10 + number}])
            settle(weir)
        clock.advance(1.0)
        one.publish("R", [{"k": 1, "x": 1}])
        settle(one)
        for weir in (one, other):
            assert outputs(weir, "big") == [(1, 10 + number) for number in range(7)]
            assert outputs(weir, "pairs") == [(10 + number, 1) for number in range(7)]


def test_steps_and_runs_alternate(weir: Weir) -> None:
    weir.execute("create stream R (x int); create query big as select x from R where x > 5")
    for number in range(6):
        weir.publish("R", [{"x": 10 + number}])
        settle(weir) if number % 2 else weir.run(until_idle=True)
    assert outputs(weir, "big") == [(10 + number,) for number in range(6)]


def test_changes_between_steps_take_effect(weir: Weir) -> None:
    """The size of a micro-batch, new queries, and a source that is attached."""
    weir.execute("create stream R (x int); create query big as select x from R where x > 5")
    weir.publish("R", [{"x": 1}])
    settle(weir)
    weir.documents_per_batch = 2
    weir.publish("R", [{"x": 6}, {"x": 7}, {"x": 8}])
    weir.step()
    assert outputs(weir, "big") == [(6,), (7,)]
    weir.execute("create query small as select x from R where x < 5")
    source = weir.feed("R", [{"x": 2}, STOP, {"x": 3}])
    settle(weir)
    assert outputs(weir, "big") == [(6,), (7,), (8,)]
    source.resume()
    settle(weir)
    assert outputs(weir, "small")[-1:] == [(3,)]

"""Threads take short turns while a job runs, and the turns that there were when the last one has ended."""

from __future__ import annotations

import sys
from pathlib import Path

from fishweir import testing
from fishweir.engine.turns import TURN, short_turns


def test_runs_that_overlap() -> None:
    before = sys.getswitchinterval()
    one, other = short_turns(), short_turns()
    one.__enter__()
    other.__enter__()
    assert sys.getswitchinterval() <= TURN < before
    one.__exit__(None, None, None)
    assert sys.getswitchinterval() <= TURN
    other.__exit__(None, None, None)
    assert sys.getswitchinterval() == before


def test_a_run(tmp_path: Path) -> None:
    before, seen = sys.getswitchinterval(), list[float]()
    with testing.open(tmp_path / "home") as weir:
        weir.action("look", lambda _: seen.append(sys.getswitchinterval()))
        weir.execute("create stream R (x int); create query q as select x from R do look")
        weir.publish("R", [{"x": 1}])
        weir.run(until_idle=True)
    assert len(seen) == 1
    assert seen[0] < before
    assert sys.getswitchinterval() == before

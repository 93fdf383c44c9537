"""The loop of a run while nothing is left to do for it: how long it waits, and which commits wake it."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

from fishweir.engine import runner
from fishweir.engine.runner import Runner
from fishweir.testing import Weir


@pytest.fixture(name="loop")
def _loop(weir: Weir) -> Runner:
    weir.execute("create stream R (x int); create query q as select x from R")
    return weir._new_runner(threading.Event(), weir._new_rebuilder())


def commit(weir: Weir, loop: Runner) -> None:
    weir.publish("R", [{"x": 1}])
    assert loop.job.step()


def test_only_commits_after_stop_wake_a_loop_without_work(weir: Weir, loop: Runner) -> None:
    commit(weir, loop)
    assert not loop._woken.is_set()
    loop.stopped.set()
    commit(weir, loop)
    assert loop._woken.is_set()


def test_the_loop_does_not_wait_beyond_the_timeout(loop: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0

    def wait(seconds: float) -> None:
        nonlocal now
        now += seconds

    monkeypatch.setattr(runner, "time", SimpleNamespace(monotonic=lambda: now, time=lambda: now))
    monkeypatch.setattr(loop, "_woken", SimpleNamespace(wait=wait, clear=lambda: None))
    loop.run(until_idle=False, on_progress=None, timeout=7.5)
    assert now == pytest.approx(7.5)

"""The experiment on refreshing, at a small size, and the parts that it relies on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from fishweir.papers.refresh.run import DAY, EQUAL, HOUR, Web, load_times, measure, run


def test_a_feed_shows_its_last_items_and_loses_the_others() -> None:
    web = Web([np.arange(10) * HOUR + 4 * DAY], shown=3, start=0.0)
    times, new = web.fetch(0, 4 * DAY + 1.5 * HOUR)
    assert (len(times), new, web.items, web.missed) == (2, 2, 2, 0)
    assert web.delay == pytest.approx(2 * HOUR)
    _, new = web.fetch(0, 4 * DAY + 7 * HOUR)
    assert (new, web.items, web.missed) == (3, 5, 3)
    assert web.fetch(0, 4 * DAY + 7 * HOUR)[1] == 0


def test_it_runs_and_fetching_by_need_is_better(tmp_path: Path) -> None:
    outcome = run(tmp_path, True, Console(quiet=True))
    assert all(target.met for target in outcome.targets)
    assert (tmp_path / "refresh.csv").read_text().count("\n") == 3


def test_generated_times(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FISHWEIR_DATA", str(tmp_path))
    times, source = load_times(8)
    assert source.startswith("generated")
    figure = measure(EQUAL, times, 15, 12.0)
    assert figure.items + figure.missed > 0

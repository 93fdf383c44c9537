"""The experiment on lateness, at a small size: late items have the same results as items in order."""

from __future__ import annotations

from pathlib import Path

from fishweir import testing
from fishweir.papers.lateness.run import DECLARED, HOUR, IN_ORDER, LEARNED, draw, load_news, measure, targets


def test_lateness_has_the_documented_distribution() -> None:
    delays = load_news(20_000).delays
    assert abs((delays > 12 * HOUR).mean() - 0.5) < 0.02
    assert abs((delays > 44 * HOUR).mean() - 0.05) < 0.01


def test_late_items_have_the_same_results(tmp_path: Path) -> None:
    news = load_news(900)
    runs = {name: measure(testing.open, news, name, 300) for name in (IN_ORDER, LEARNED, DECLARED)}
    assert runs[IN_ORDER].found == runs[LEARNED].found == runs[DECLARED].found
    assert sum(runs[IN_ORDER].found.values()) > 0
    assert {run.missed for run in runs.values()} == {0}
    assert all(max(run.retained) > 0 for run in runs.values())
    assert [target.met for target in targets(runs) if "all results" in target.name] == [True, True]
    draw(runs, tmp_path / "lateness.png")
    assert (tmp_path / "lateness.png").stat().st_size > 1_000

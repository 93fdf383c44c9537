"""The experiment on the way through the job, at a small size: peers agree, and figures are there for each."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from fishweir.papers.way.run import Sizes, run
from fishweir.papers.way.work import WORKS

SMALL = Sizes(queries=(50, 200), documents=(1, 40), rounds=1, published=3, batches=5, idle=0.1)


def test_peers_agree(spark, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    outcome = run(tmp_path, SMALL, Console(quiet=True), quick=True, session=spark)
    assert len(outcome.figures) == len(WORKS) * 2 * 2 * 2
    assert all(figure.wall > 0 for figure in outcome.figures)
    assert any(figure.matches > 1 for figure in outcome.figures)
    assert outcome.about["callbacks"]["batches"] == 5
    assert {path.suffix for path in tmp_path.glob("way.*")} == {".csv", ".json", ".png"}

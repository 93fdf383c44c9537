"""The experiment on filters: contestants that agree, a wrong one that is detected, files that are written. No times."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest
from rich.console import Console

from fishweir.papers.experiment.contestants import Disagreement
from fishweir.papers.experiment.data import VARIABLE
from fishweir.papers.roses.experiment import matching, plans, run
from fishweir.papers.roses.experiment.contestants import Shared
from fishweir.papers.roses.experiment.work import load_items
from fishweir.papers.roses.naive import naive_plan


@pytest.fixture(autouse=True)
def generated(monkeypatch: pytest.MonkeyPatch, tmp_path):
    """Tests do not depend on the shared data."""
    monkeypatch.setenv(VARIABLE, str(tmp_path))


def silent(_: str) -> None:
    pass


def test_the_quick_experiment(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "QUICK_ITEMS", 300)
    monkeypatch.setattr(matching, "QUICK_SIZES", (50, 200))
    monkeypatch.setattr(matching, "QUICK_BATCH", 40)
    shown = io.StringIO()
    outcome = run.run(tmp_path, True, Console(file=shown, width=100))
    text = shown.getvalue()
    assert "generated items" in text
    for words in ("Figure 7", "Figure 8", "Matching feed items", "rarest word", "Targets"):
        assert words in text
    assert json.loads((tmp_path / "roses.json").read_text())["about"]["quick"] is True
    rows = list(csv.DictReader((tmp_path / "roses.csv").open()))
    assert len(rows) == len(outcome.figures)
    assert {row["contestant"] for row in rows if row["experiment"] == "matching"} == {
        c.name for c in matching.CONTESTANTS
    }
    assert (tmp_path / "roses.png").stat().st_size > 10_000
    costs = [f.cost for f in outcome.find(experiment="figure 7", contestant="VCA with VCB")]
    assert all(0 < cost <= 1 for cost in costs)


def test_a_wrong_contestant_is_detected(monkeypatch):
    class Forgetful(Shared):
        name = "forgetful"

        def pairs(self, found):
            items, numbers = super().pairs(found)
            return items[1:], numbers[1:]

    monkeypatch.setattr(matching, "CONTESTANTS", (Shared, Forgetful))
    with pytest.raises(Disagreement, match="forgetful"):
        list(matching.measure_matching(load_items(300), True, silent))


def test_a_wrong_plan_is_detected():
    shares = np.full(20, 0.2)
    wrong = {"halved": lambda predicates, _: naive_plan(predicates[: len(predicates) // 2])}
    with pytest.raises(Disagreement, match="halved"):
        plans.check_plans(shares, silent, wrong)

"""The names by which runs are compared, and the script that compares them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from fishweir.papers.experiment.comparable import Comparable, comparable
from fishweir.papers.experiment.figures import Figure
from fishweir.papers.mmqjp.experiment.measure import Point as JoinPoint
from fishweir.papers.roses.experiment.report import RosesFigure
from fishweir.papers.spatialjoin.experiment.measure import Point as RangePoint

SCRIPT = Path(__file__).parents[3] / "scripts" / "compare-bench"


def test_every_class_of_figures_names_its_points():
    figures = [
        Figure("changes", "Type 1", "F=N", 2_000, "grouped", 0.5, c=100, match_seconds=0.2, pairs=7),
        Figure("queries", "Type 1", "F=N", 2_000, "non-grouped", None),
        JoinPoint("figure 9", 12, 1_000, "Fishweir", 0.1, 0.3, 0.0, 40, cold_seconds=0.4),
        RosesFigure("figure 8", "STA", 20, 0.6, conjuncts=3, cost=0.5),
        RosesFigure("matching", "VCA with VCB", 100, 0.7, pairs=0.25),
        RangePoint("Ndc", "10 x 4", "uniform", 10, 4, "sj", 0.8, 0.9, 1.5, 60, ndc=8, batch=60, note="fixed"),
        RangePoint("joins", "10 queries", "uniform", 10, 4, "ibs-js", 0.8, 0.9, 1.5, 60, batch=3, window=20),
    ]
    assert comparable(figures) == [
        Comparable("changes, Type 1, F=N", "grouped", 100, 0.5, 7),
        Comparable("changes, Type 1, F=N", "grouped, matching", 100, 0.2, 7),
        Comparable("figure 9", "Fishweir", 12, 0.3, 40),
        Comparable("figure 9", "Fishweir, first time", 12, 0.4, 40),
        Comparable("figure 9", "Fishweir, registration", 12, 0.1, 40),
        Comparable("figure 8, 20 predicates", "STA", 3, 0.6, 0.5),
        Comparable("matching", "VCA with VCB", 100, 0.7, 0.25),
        Comparable("Ndc, 10 x 4, uniform, Ndc=8, batch=60", "sj", 10, 0.9, 1.5),
        Comparable("Ndc, 10 x 4, uniform, Ndc=8, batch=60", "sj, registration", 10, 0.8, 1.5),
        Comparable("joins, 10 queries, uniform", "ibs-js", 10, 0.9, None),
        Comparable("joins, 10 queries, uniform", "ibs-js, registration", 10, 0.8, None),
    ]


def write(path, **seconds):
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [{"figure": "f", "series": name, "x": 1, "seconds": s, "answers": n} for name, (s, n) in seconds.items()]
    path.write_text(json.dumps({"comparable": rows}))


def compare(*paths):
    ended = subprocess.run([sys.executable, SCRIPT, *paths], capture_output=True, text=True, check=False)
    assert not ended.stderr
    return ended.returncode, ended.stdout.splitlines()


def test_slower_figures_and_other_answers_are_printed(tmp_path):
    before, after = tmp_path / "before.json", tmp_path / "after.json"
    write(before, same=(1.0, 3), slower=(1.0, 3), wrong=(1.0, 3), gone=(1.0, 3))
    write(after, same=(1.05, 3), slower=(1.25, 3), wrong=(0.5, 4), new=(9.0, 3))
    assert compare(before, after) == (
        1,
        [
            "DIFFERENT  f: wrong at 1: 3 answers before, 4 after",
            "     +25%  f: slower at 1: 1,000 to 1,250 ms",
            "3 figures compared, 2 on one side only; 1 more than 10% worse, 1 with different answers",
        ],
    )


def test_the_least_time_of_several_runs_counts(tmp_path):
    for run, seconds in (("1", 1.0), ("2", 3.0)):
        write(tmp_path / "before" / run / "one.json", a=(seconds, 3))
        write(tmp_path / "after" / run / "one.json", a=(seconds + 0.05, 3))
    status, lines = compare(tmp_path / "before", tmp_path / "after")
    assert (status, len(lines)) == (0, 1)


def test_nothing_in_common_is_a_failure(tmp_path):
    write(tmp_path / "before" / "one.json", a=(1.0, 3))
    write(tmp_path / "after" / "two.json", a=(1.0, 3))
    assert compare(tmp_path / "before", tmp_path / "after")[0] == 1

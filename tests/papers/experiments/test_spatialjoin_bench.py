"""The experiment itself: works as described, contestants that agree, files that are written. No times."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest
from rich.console import Console

from fishweir.evaluate.select.boxes import KERNELS
from fishweir.papers.experiment.contestants import Disagreement
from fishweir.papers.experiment.data import VARIABLE, data_folder
from fishweir.papers.experiment.figures import Outcome
from fishweir.papers.spatialjoin.experiment import contest, joins, paper, report, run
from fishweir.papers.spatialjoin.experiment.contestants import Batchwise, Chosen, GridBitmaps, Strategy, check_agreement
from fishweir.papers.spatialjoin.experiment.measure import time_matching
from fishweir.papers.spatialjoin.experiment.nested_loop import NestedLoopJoin
from fishweir.papers.spatialjoin.experiment.outsiders import OUTSIDERS, NumbaScan
from fishweir.papers.spatialjoin.experiment.work import (
    CLIMATE,
    NODE,
    load_climate,
    narrow_climate_work,
    narrow_work,
    paper_work,
    skewed_tuples,
    uniform_tuples,
)
from fishweir.papers.spatialjoin.windows import SJJoin

pytest.importorskip("duckdb")
pytest.importorskip("polars")
pytest.importorskip("shapely")


@pytest.fixture(autouse=True)
def generated(monkeypatch: pytest.MonkeyPatch, tmp_path):
    """Tests do not depend on the shared data."""
    monkeypatch.setenv(VARIABLE, str(tmp_path))


WORKS = {
    "half of the attributes": lambda: paper_work(700, 4, 0.5, uniform_tuples(40, 4)),
    "skewed": lambda: paper_work(700, 8, 1.0, skewed_tuples(40, 8, 0.8)),
    "one attribute": lambda: paper_work(130, 1, 1.0, uniform_tuples(40, 1)),
    "narrow": lambda: narrow_work(3_000, 2, uniform_tuples(40, 2)),
    "equalities": lambda: narrow_climate_work(20_000, load_climate(), 300),
}


@pytest.mark.parametrize("name", WORKS)
def test_contestants_agree(name):
    work = WORKS[name]()
    all_of_them = [Strategy(work, name) for name in KERNELS]
    all_of_them += [Chosen(work), Batchwise(work, 40), GridBitmaps(work), *(outsider(work) for outsider in OUTSIDERS)]
    assert check_agreement(work, all_of_them, 300) > 0


def test_spark_agrees(spark):
    work = paper_work(300, 3, 1.0, uniform_tuples(10, 3))
    assert check_agreement(work, [NestedLoopJoin(work, spark)], 10) > 0


def test_a_wrong_contestant_is_detected():
    work = paper_work(300, 4, 0.5, uniform_tuples(40, 4))
    scan = NumbaScan(work)
    scan.highs[0] = np.where(np.isinf(scan.highs[0]), np.inf, scan.highs[0] - 0.1)
    with pytest.raises(Disagreement, match="numba scan finds"):
        check_agreement(work, [Chosen(work), scan], 40)


def test_a_wrong_window_join_is_detected():
    work = joins.join_work(300, 20, 4, 40)
    running = [joins.Running(name, work) for name in ("fishweir", "sj-join")]
    assert joins.check_counts(running, work, 5) > 0
    (sj_join,) = running[1].join.published
    assert isinstance(sj_join, SJJoin)
    sj_join.index.high[:] -= 1 << 50
    with pytest.raises(Disagreement, match="sj-join and fishweir differ"):
        joins.check_counts(running, work, 5)


def test_windows_are_full_when_the_clock_starts():
    work = joins.join_work(100, 30, 4, 40)
    running = joins.Running("sj-join", work)
    assert running.join.state_size() == 60
    running.once(5)
    assert (running.join.state_size(), running.at) == (60, 35)


def test_workloads_follow_the_paper():
    work = paper_work(4_000, 8, 0.5, uniform_tuples(10, 8))
    bounded = np.isfinite(work.low) | np.isfinite(work.high)
    assert (bounded.sum(axis=1) == 4).all()
    closed = (np.isfinite(work.low) & np.isfinite(work.high)).sum() / bounded.sum()
    assert 0.3 < closed < 0.37
    inside = ((skewed_tuples(2_000, 2, 1.0) >= 0.45) & (skewed_tuples(2_000, 2, 1.0) <= 0.55)).all()
    assert inside


def test_narrow_queries_select_existing_nodes():
    climate = load_climate()
    work = narrow_climate_work(1_000, climate, 50)
    with_node = work.low[:, NODE] == work.high[:, NODE]
    assert 400 < with_node.sum() < 600
    assert np.isin(work.low[with_node, NODE], climate.values[:, NODE]).all()


def test_real_readings(monkeypatch):
    monkeypatch.delenv(VARIABLE)
    if data_folder("room_climate") is None:
        pytest.skip("no shared data here")
    climate = load_climate()
    assert climate.source.startswith("real")
    assert climate.values.shape == (540_364, len(CLIMATE))
    assert (climate.values.min(), climate.values.max()) == (0, 1)


def test_slow_contestants_get_fewer_tuples():
    work = paper_work(300, 4, 1.0, uniform_tuples(500, 4))
    assert time_matching(Chosen(work), work.tuples, limit=0.0).tuples < 500
    assert time_matching(Chosen(work), work.tuples, limit=60.0).tuples == 500


def test_targets_without_points_are_not_measured():
    assert {target.met for target in report.targets(Outcome({}))} == {None}


def test_quick_run_shows_tables_and_writes_files(tmp_path):
    pytest.importorskip("matplotlib")
    out, screen = tmp_path / "out", io.StringIO()
    sizes = run.Sizes(
        paper.Sizes((100, 200), (4, 8), 50, 100, (0.5, 1.0), 100, (0.0, 1.0), 100, (50, 100), (1, 8), 5, limit=0.01),
        joins.Sizes(queries=(50, 100), windows=(10, 20), batch=2, limit=0.01),
        contest.Sizes(queries=200, wide_tuples=20, narrow_tuples=50, checked_narrow=20, limit=0.02),
    )
    outcome = run.run(out, True, Console(file=screen, width=120), sizes=sizes)
    written = json.loads((out / "spatialjoin.json").read_text())
    assert written["about"]["data"].startswith("generated")
    assert written["about"]["checked_pairs"] > 0
    with (out / "spatialjoin.csv").open() as file:
        assert len(list(csv.DictReader(file))) == len(outcome.figures) == len(written["figures"])
    for picture in ("spatialjoin.png", "spatialjoin-joins.png", "spatialjoin-contest.png"):
        assert (out / picture).read_bytes().startswith(b"\x89PNG")
    shown, newer = screen.getvalue(), ("Figure 18", "SJ-Join vs IBS-JS")
    for words in ("Figure 15", "Figure 16", "Figure 17", "Table 3", "Targets", "DuckDB join", "SQLite R*Tree", *newer):
        assert words in shown
    assert f"{sizes.paper.queries[-1]:,} x 8" in shown
    contested = {p.contestant for p in outcome.figures if p.experiment in (contest.WIDE, contest.NARROW)}
    assert {outsider.name for outsider in OUTSIDERS} < contested

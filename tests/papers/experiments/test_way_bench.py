"""The end-to-end experiment on the job, at a small size: peers agree, and each has figures."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from fishweir.cli import app
from fishweir.papers.way import (
    documents,
    growth,
    join_documents,
    join_work,
    latency,
    registration,
    results,
    start,
    streams,
    work,
)
from fishweir.papers.way import part as part_module
from fishweir.papers.way.part import Setting
from fishweir.papers.way.processor import descendants
from fishweir.papers.way.run import run

SMALL = {
    "text": documents.Sizes(queries=(200,), documents=(1, 40), rounds=1),
    "boxes": documents.Sizes(queries=(200,), documents=(1, 40), rounds=1),
    "paths": documents.Sizes(queries=(100,), documents=(1, 20), rounds=1),
    "joins": join_documents.Sizes(queries=60, documents=(40,), filled=150, rounds=1),
    "joins-many": join_documents.Sizes(queries=200, documents=(40,), filled=150, rounds=1),
    "windows": join_documents.Sizes(queries=50, documents=(40,), filled=150, rounds=1),
    "growth": growth.Sizes(queries=(50, 2_400), documents=40, rounds=1, settling=1),
    "batches": growth.Span(queries=50, batches=5),
    "latency": latency.Sizes(queries=50, published=3, idle=0.1, load=40, longest=2.0),
}


@pytest.fixture(autouse=True)
def look_briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part_module, "LOOK", 0.2)


@pytest.fixture(autouse=True)
def homes_are_removed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))


def test_processes_of_others_are_left_out() -> None:
    """A process and the ones that it has started."""
    starts = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'print(flush=True); input()'])"
    before = descendants()
    with subprocess.Popen([sys.executable, "-c", starts], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdout.readline()
        assert len(descendants() - before) == 2
        assert descendants(without={child.pid}) <= before
        child.stdin.write(b"\n")


def test_peers_agree(spark, tmp_path: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("FISHWEIR_DATA", str(tmp_path))  # to read real items takes longer than all the rest
    monkeypatch.setattr(work, "ITEMS", 500)
    setting, figures = Setting(session=spark, sizes=SMALL), []
    for part in documents.PARTS:
        figures += run(part, tmp_path, setting, Console(quiet=True)).figures
    assert {(f.work, f.contestant) for f in figures} >= {
        ("text filters", "Fishweir"),
        ("text filters", "Python script, rarest word, 2 processes"),
        ("boxes", "Fishweir"),
        ("boxes", "SQLite R*Tree"),
        ("boxes", "DuckDB"),
        ("paths", "Fishweir"),
        ("paths", "lxml, each path alone"),
    }
    assert all(figure.wall_us > 0 for figure in figures)
    assert all(any(f.matches for f in figures if f.work == one.name) for one in work.WORKS)
    assert {path.suffix for path in tmp_path.glob("way-boxes.*")} == {".csv", ".json", ".png"}


def test_joins(spark, tmp_path: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    for name in ("VALUES", "KEYS"):  # so that a few documents have partners
        monkeypatch.setattr(join_work, name, 100)
    setting, figures = Setting(session=spark, sizes=SMALL), []
    for part in join_documents.PARTS:
        figures += run(part, tmp_path, setting, Console(quiet=True)).figures
    assert len(figures) == sum(3 + one.has_tuples for one in join_work.JOIN_WORKS)
    assert all(figure.matches > 0 for figure in figures)


def test_growth_and_latency(spark, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    setting = Setting(session=spark, sizes=SMALL)
    grown = [figure for part in growth.PARTS for figure in run(part, tmp_path, setting, Console(quiet=True)).figures]
    assert [figure.queries for figure in grown] == [50, 2_400, *[50] * growth.SPANS]
    assert all(figure.wall_ms_first_after_merge > 0 for figure in grown[:2])
    assert all(figure.wall_ms_one_more_query_longest >= figure.wall_ms_one_more_query > 0 for figure in grown[:2])
    taken = run(latency.PART, tmp_path, setting, Console(quiet=True))
    value = {(figure.measured, figure.contestant): figure.value for figure in taken.figures}
    assert value["publish to callback, median", "Fishweir"] > 0
    assert value["at half load, publish to callback, p99", "Fishweir"] > 0
    assert value["document to answer, median", "SQLite R*Tree"] > 0
    assert len(taken.targets) == 9


def test_many_streams(spark, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    sizes = {"streams": streams.Sizes(streams=(3,), absences=(3,), rounds=1, idle=0.1)}
    outcome = run(streams.PART, tmp_path, Setting(session=spark, sizes=sizes), Console(quiet=True))
    assert [(figure.of, figure.count) for figure in outcome.figures] == [("streams", 3), ("NOT FOLLOWED BY", 3)]
    assert all(figure.processor_ms_a_batch > 0 for figure in outcome.figures)
    assert len(outcome.targets) == 4


def test_start(spark, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    assert start.second_run(Setting(session=spark)) > 0
    assert start.first_result(tmp_path, fishweir=False) > start.processor_time(["-c", "pass"]) > 0
    figures = [
        start.Figure("first result, wall time", "Fishweir", 1.4),
        start.Figure("first result, wall time", "bare Spark", 1.0),
    ]
    assert [target.met for target in start.targets(figures)] == [False]


def test_results_are_read_in_each_way(tmp_path: Path) -> None:
    sizes = {"results": results.Sizes(100, documents=40, pairs=2_500, batches=10, rounds=0, selected=40, deliveries=1)}
    outcome = run(results.PART, tmp_path, Setting(sizes=sizes), Console(quiet=True))
    assert {f.taken for f in outcome.figures} >= {"to_arrow", "one by one", "append", "callback"}
    taken = {(f.results_of, f.taken): f.results for f in outcome.figures}
    assert taken["boxes", "to_arrow"] == taken["boxes", "one by one"] > 0
    assert taken["an SQL join", "to_arrow"] == taken["an SQL join", "one by one"] > 0


def test_registration(spark, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    sizes = {"registration": registration.Sizes(queries=40, rounds=2, among=60, more=1)}
    outcome = run(registration.PART, tmp_path, Setting(session=spark, sizes=sizes), Console(quiet=True))
    kinds = len(registration.LANGUAGES) + len(registration.OTHERS) + len(registration.PATHS)
    rates = 4 * kinds + 3 * len(registration.SUBSCRIPTIONS) + 1
    assert len([figure for figure in outcome.figures if figure.per_second]) == rates
    assert {"XSCL, NOT FOLLOWED BY", "SQL, published", "alternating forms"} <= {f.measured for f in outcome.figures}
    assert {"distinct paths, an address each", "subscriptions"} <= {f.measured for f in outcome.figures}
    assert {f.by: f.megabytes > 0 for f in outcome.figures if f.megabytes is not None}["driver"]
    assert max(f.seconds for f in outcome.figures if f.seconds is not None) > 0


def test_unknown_parts_are_refused() -> None:
    answer = CliRunner().invoke(app, ["bench", "way", "--only", "nothing"])
    assert answer.exit_code == 2
    assert "latency" in answer.output

"""The experiment itself: works as described, contestants that agree, files that are written. No times."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest
from rich.console import Console

from fishweir.papers.experiment.contestants import Disagreement
from fishweir.papers.experiment.data import VARIABLE, data_folder
from fishweir.papers.experiment.figures import Outcome
from fishweir.papers.mmqjp.experiment import paper, report, run
from fishweir.papers.mmqjp.experiment.contestants import (
    FAST,
    PLAIN,
    SEQUENTIAL,
    SEQUENTIAL_SQL,
    VIEWS,
    Entry,
    Relational,
    entries,
)
from fishweir.papers.mmqjp.experiment.measure import measure_items, measure_work
from fishweir.papers.mmqjp.experiment.work import LEAVES, load_items, rss_queries, three_level, two_level
from fishweir.papers.mmqjp.sequential import Sequential
from fishweir.papers.mmqjp.templates import QueryTemplates, up_to_exchange

pytest.importorskip("duckdb")


@pytest.fixture(autouse=True)
def generated(monkeypatch: pytest.MonkeyPatch, tmp_path):
    """Tests do not depend on the shared data."""
    monkeypatch.setenv(VARIABLE, str(tmp_path))


def templates_of(queries):
    templates = QueryTemplates()
    for i, (shape, constants) in enumerate(queries):
        templates.assign(i, shape, constants)
    return templates.relations


def test_two_level_queries_have_a_template_per_number_of_joins():
    assert len(templates_of(two_level(300, leaves=5).queries)) == 5
    assert len(templates_of(rss_queries(300))) == 5


def test_three_level_queries_have_the_paper_s_templates_up_to_exchange_of_sides():
    """With K = 2 and 3 there are 2 and 6; if sides are distinguished, 7 for K = 3."""
    found = [templates_of(three_level(2_000, joins).queries) for joins in (2, 3)]
    assert [len({up_to_exchange(template) for template in some}) for some in found] == [2, 6]
    assert [len(some) for some in found] == [2, 7]


def test_more_of_the_smaller_queries_with_zipf():
    sizes = [len(shape.conditions) for shape, _ in two_level(2_000, leaves=4, zipf=1.6).queries]
    assert np.all(np.diff(np.bincount(sizes)[1:]) < 0)


def test_items_are_generated_or_real(monkeypatch):
    assert load_items(30).source.startswith("30 generated")
    monkeypatch.delenv(VARIABLE)
    if data_folder("rss_items_2025") is None:
        pytest.skip("no shared data here")
    items = load_items(20)
    assert items.source.startswith("real data of the same shape")
    assert "224,101 items" in items.source
    assert [child.tag for child in items.arrivals[0][1].root] == list(LEAVES)


class Wrong(Sequential):
    def count(self, arrivals, keep=True):
        return super().count(arrivals, keep) + 1


def test_a_wrong_contestant_is_detected():
    entry = Entry("wrong", lambda share: Relational("wrong", Wrong(share), lambda: None))
    with pytest.raises(Disagreement, match="wrong finds"):
        measure_work("figure 8", 5, two_level(5), [entry])


@pytest.mark.parametrize(("patience", "documents"), [(0.0, 10), (1e9, 20)])
def test_a_slow_contestant_is_stopped_and_compared(patience, documents):
    points = measure_items("figure 16", rss_queries(10), load_items(20), 10, entries(2), True, 2, patience)
    assert {p.contestant for p in points} == {FAST, SEQUENTIAL, SEQUENTIAL_SQL, PLAIN, VIEWS}
    assert {(p.documents, p.stopped) for p in points} == {(documents, documents < 20)}
    assert len({p.results for p in points if not p.extrapolated}) == 1
    wrong = Entry("wrong", lambda share: Relational("wrong", Wrong(share), lambda: None))
    with pytest.raises(Disagreement, match="wrong finds"):
        measure_items("figure 16", rss_queries(10), load_items(20), 10, [*entries(2)[:1], wrong], True, 2, patience)


def test_targets_without_points_are_not_measured():
    assert {target.met for target in report.targets(Outcome({}))} == {None}


def test_quick_run_shows_tables_and_writes_files(tmp_path):
    pytest.importorskip("matplotlib")
    out, screen = tmp_path / "out", io.StringIO()
    sizes = paper.Sizes((5,), (3,), (2,), (0.8,), 5, (10,), 20, 10, 1, 10, 20, repetitions=1)
    outcome = run.run(out, True, Console(file=screen, width=120), sizes=sizes)
    written = json.loads((out / "mmqjp.json").read_text())
    assert "generated items" in written["about"]["data"]
    with (out / "mmqjp.csv").open() as file:
        assert len(list(csv.DictReader(file))) == len(outcome.figures) == len(written["figures"])
    assert (out / "mmqjp.png").read_bytes().startswith(b"\x89PNG")
    shown = screen.getvalue()
    for words in (*(f"Figure {n}" for n in range(8, 17)), "60 s had passed", "Targets", "Written"):
        assert words in shown
    assert {p.contestant for p in outcome.figures} == {FAST, SEQUENTIAL, SEQUENTIAL_SQL, PLAIN, VIEWS}
    assert all(
        p.extrapolated == (p.contestant == SEQUENTIAL_SQL or p.experiment in report.STREAMS)
        for p in outcome.figures
        if p.contestant in (SEQUENTIAL, SEQUENTIAL_SQL)
    )

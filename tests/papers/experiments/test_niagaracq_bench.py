"""The experiment itself: well-formed data, contestants that agree, files that are written. No times."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import pytest
from lxml import etree
from rich.console import Console

from fishweir.languages.script import parse_script
from fishweir.papers.experiment.contestants import COMPILED, Disagreement, Grouped, check_agreement, grouped_of
from fishweir.papers.experiment.data import VARIABLE, data_folder
from fishweir.papers.experiment.figures import Outcome
from fishweir.papers.niagaracq import kernel
from fishweir.papers.niagaracq import run as niagaracq
from fishweir.papers.niagaracq.quotes import (
    COMPANIES_DTD,
    DTD,
    TAGS,
    companies_document,
    load_market,
    parsed_rows,
    quotes_document,
)
from fishweir.papers.niagaracq.report import targets
from fishweir.papers.niagaracq.workloads import CASES, FIRED, TYPES, all_fire, make_workload


@pytest.fixture(autouse=True)
def generated(monkeypatch: pytest.MonkeyPatch, tmp_path):
    """Tests do not depend on the shared data."""
    monkeypatch.setenv(VARIABLE, str(tmp_path))


@pytest.fixture
def market():
    return load_market(symbols=600)


def test_quotes_document_is_valid(market):
    root = etree.fromstring(quotes_document(market.today))
    assert len(root) == len(market.today) == 600
    assert [child.tag for child in root[0]] == list(TAGS)
    assert etree.DTD(io.StringIO(DTD)).validate(root)


def test_companies_document_is_valid(market):
    root = etree.fromstring(companies_document(market.companies))
    assert [row.findtext("Symbol") for row in root] == [quote.symbol for quote in market.today]
    assert etree.DTD(io.StringIO(COMPANIES_DTD)).validate(root)


def test_real_quotes_are_valid(monkeypatch):
    monkeypatch.delenv(VARIABLE)
    if data_folder("quotes_us_daily") is None:
        pytest.skip("no shared data here")
    market = load_market()
    assert market.source.startswith("real")
    assert len({quote.symbol for quote in market.today}) == 5_000
    assert etree.DTD(io.StringIO(DTD)).validate(etree.fromstring(quotes_document(market.today)))
    assert 4_000 < len({company.symbol for company in market.companies}) == len(market.companies) <= 5_000
    assert etree.DTD(io.StringIO(COMPANIES_DTD)).validate(etree.fromstring(companies_document(market.companies)))


def test_generated_data_is_labelled(market):
    assert market.source.startswith("generated")


def test_a_round_is_the_next_day_of_the_same_symbols(market):
    changed = market.changed(50)
    assert [quote.symbol for quote in changed] == [quote.symbol for quote in market.today[:50]]
    assert all(now != before for now, before in zip(changed, market.today, strict=False))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("type", TYPES)
def test_contestants_agree(market, type, case):
    changed = market.changed(200)
    workload = make_workload(type, case, 300, market, changed)
    assert workload.size == 300
    rows = parsed_rows(changed)
    assert check_agreement(workload, rows, sample=30) > 0
    if case == "F=100":
        grouped = grouped_of(workload)
        assert grouped.counts(grouped.match(grouped.extract(rows))).fired == FIRED


def test_a_wrong_contestant_is_detected(market, monkeypatch):
    monkeypatch.setitem(COMPILED, "Type 2", lambda low: lambda rows: [row for row in rows if row[3] >= low])
    changed = market.changed(200)
    workload = make_workload("Type 2", "F=100", 300, market, changed)
    with pytest.raises(Disagreement, match="Type 2"):
        check_agreement(workload, parsed_rows(changed))


def test_quotes_without_a_company_join_nothing(market):
    changed = market.changed(200)
    few = replace(market, companies=market.companies[100:])
    workloads = [make_workload("Type 4", "F=N", 300, one, changed) for one in (market, few)]
    rows = parsed_rows(changed)
    all_pairs, some_pairs = (check_agreement(workload, rows, sample=30) for workload in workloads)
    assert 0 < some_pairs < all_pairs


def test_a_wrong_join_is_detected(market, monkeypatch):
    monkeypatch.setitem(
        COMPILED, "Type 4", lambda industry, _: lambda rows: [row for row in rows if row[4] == industry]
    )
    changed = market.changed(200)
    workload = make_workload("Type 4", "F=N", 300, replace(market, companies=market.companies[100:]), changed)
    with pytest.raises(Disagreement, match="Type 4"):
        check_agreement(workload, parsed_rows(changed))


def test_texts_contain_the_constants_of_the_kernel(market):
    changed = market.changed(200)
    for type in TYPES:
        for part in make_workload(type, "F=N", 50, market, changed).parts:
            parsed = [
                statement.constants[: len(part.columns)] for text in part.texts() for statement in parse_script(text)
            ]
            assert parsed == list(part.constants())


def test_all_fire_beyond_one_chunk(market):
    """More rows than the worker takes at once: the second chunk's rows keep their numbers."""
    rows = parsed_rows(market.changed(600)) * 2
    workload = all_fire(200, market.changed(100))
    assert check_agreement(workload, rows) == 400
    grouped = Grouped(workload)
    assert grouped.counts(grouped.match(grouped.extract(rows))).fired == 200


def test_not_run_is_marked_and_not_guessed(market):
    changed = market.changed(100)
    workload = make_workload("Type 1", "F=N", 200, market, changed)
    grouped, alone = kernel.compare(workload, parsed_rows(changed), expected=2 * kernel.TOO_LONG)
    assert alone.seconds is None
    assert "not run" in alone.note
    assert grouped.ratio is None


def test_targets_without_figures_are_not_measured():
    assert {target.met for target in targets(Outcome({}))} == {None}


def test_quick_run_writes_its_files(tmp_path):
    pytest.importorskip("matplotlib")
    out = tmp_path / "out"
    sizes = kernel.Sizes(300, 150, (100,), 5, (100,), (50, 100), changes_queries=100, budget=0.0)
    outcome = niagaracq.run(out, True, Console(file=io.StringIO(), width=120), engine=False, sizes=sizes)
    written = json.loads((out / "niagaracq.json").read_text())
    assert written["about"]["data"].startswith("generated")
    assert written["about"]["checked_pairs"] > 0
    with (out / "niagaracq.csv").open() as file:
        assert len(list(csv.DictReader(file))) == len(outcome.figures) == len(written["figures"])
    assert (out / "niagaracq.png").read_bytes().startswith(b"\x89PNG")
    assert {f.type for f in outcome.find(experiment="queries")} == set(TYPES)

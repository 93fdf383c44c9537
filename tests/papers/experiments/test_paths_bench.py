"""The experiment on paths: contestants that agree, labelled samples, files that are written. No times."""

from __future__ import annotations

import csv
import io
import json
from itertools import islice

import pytest
from rich.console import Console

from fishweir.algebra.documents import parse_document
from fishweir.papers.experiment.contestants import Disagreement
from fishweir.papers.experiment.data import VARIABLE, data_folder
from fishweir.papers.experiment.figures import Outcome
from fishweir.papers.paths import run as paths
from fishweir.papers.paths.contestants import FAST, Alone, Shared, SharedPlan, check_agreement, to_xscl
from fishweir.papers.paths.documents import ARCHIVE, PREFIXES, auction_site, clinical_document, load_sets
from fishweir.papers.paths.queries import KINDS, Draw
from fishweir.papers.paths.report import targets


@pytest.fixture(autouse=True)
def generated(monkeypatch: pytest.MonkeyPatch, tmp_path):
    """Tests do not depend on the shared data."""
    monkeypatch.setenv(VARIABLE, str(tmp_path))


@pytest.fixture
def roots():
    return [parse_document(clinical_document(seed)) for seed in range(3)] + [parse_document(auction_site(1, 3))]


def drawn(roots, kind, count=120):
    return list(islice(Draw(roots, PREFIXES, kind), count))


def test_generated_documents_are_labelled():
    sets = load_sets(quick=True)
    assert [documents.name for documents in sets] == ["XMark", "CDA"]
    assert all(documents.source == "generated" for documents in sets)
    assert all(parse_document(body) is not None for documents in sets for body in documents.bodies)


def test_real_documents_are_used_if_available(monkeypatch):
    monkeypatch.delenv(VARIABLE)
    folder = data_folder("xml_docs")
    if folder is None or not (folder / ARCHIVE).exists():
        pytest.skip("no shared data here")
    site, clinical = load_sets(quick=False)
    assert site.source.startswith("real")
    assert len(site.bodies) == 1
    assert len(clinical.bodies) > 200


@pytest.mark.parametrize("kind", KINDS)
def test_queries_are_of_their_kind_and_find_something(roots, kind):
    texts = drawn(roots, kind)
    assert texts == drawn(roots, kind), "the same in every run"
    assert ("[" in "".join(texts)) == (kind == "predicates")
    assert all(any(sign in text for text in texts) for sign in ("//", "*", "/@", "h:"))
    assert len(set(texts)) == len(texts)
    fast = FAST[kind](texts, PREFIXES)
    assert sum(map(bool, fast.lengths(fast.match(roots)).values())) > len(texts) / 2


def test_wildcards_and_descendants_are_combined(roots):
    assert any("//*" in text for text in drawn(roots, "plain", 400))


def test_paths_as_xscl():
    text = '//h:act[@xsi:type = "/a[b"]/*[code = "x"]/@id'
    expected = 'S//{urn:hl7-org:v3}act[@{http://www.w3.org/2001/XMLSchema-instance}type = "/a[b"]/*[{}code = "x"]/@{}id'
    assert to_xscl(text, PREFIXES) == expected


@pytest.mark.parametrize("kind", KINDS)
def test_contestants_agree(roots, kind):
    assert check_agreement(drawn(roots, kind), roots, PREFIXES, kind, (FAST[kind], Alone)) > 100


def test_paths_that_differ_only_in_spelling_are_one():
    shared = Shared(["/a[b][c]", "/a[c][b]", "/a[c][b]", "/a[b][b][c]", "/a"], PREFIXES)
    assert shared.distinct() == ["/a[b][c]", "/a"]
    planned = SharedPlan(["/a[b = 1][c = 2]", "/a[c = 2][b = 1]", "/a[c = 1][b = 2]"], PREFIXES)
    assert planned.distinct() == ["/a[b = 1][c = 2]", "/a[c = 1][b = 2]"]


class Forgetful(Alone):
    """Overlooks the last document."""

    def nodes(self, roots, texts):
        return super().nodes(roots[:-1], texts)


def test_a_wrong_contestant_is_detected(roots):
    with pytest.raises(Disagreement, match="CDA: /"):
        check_agreement(drawn(roots, "plain"), roots, PREFIXES, "CDA", (Shared, Forgetful))


@pytest.mark.parametrize(("kind", "fast"), FAST.items())
def test_a_wrong_count_stops_the_run(roots, monkeypatch, kind, fast):
    monkeypatch.setattr(fast, "lengths", lambda self, found: dict.fromkeys(texts, -1))
    texts = drawn(roots, kind)
    with pytest.raises(Disagreement, match="label: /"):
        paths.measure_alone(Alone(texts, PREFIXES), fast(texts, PREFIXES), roots, "label")


def test_a_sample_is_labelled(roots):
    texts = drawn(roots, "plain")
    alone, shared = Alone(texts, PREFIXES), Shared(texts, PREFIXES)
    whole = paths.measure_alone(alone, shared, roots, "")
    assert whole.note == ""
    assert 0 < whole.trimmed < whole.seconds
    part = paths.measure_alone(alone, shared, roots, "", most=0.0, sample=0.0)
    assert part.note == "extrapolated from 1 of 4 documents"


def test_targets_without_figures_are_not_measured():
    assert {target.met for target in targets(Outcome({}))} == {None}


def test_quick_run_prints_its_table_and_writes_its_files(tmp_path):
    pytest.importorskip("matplotlib")
    out, printed = tmp_path / "out", io.StringIO()
    outcome = paths.run(out, True, Console(file=printed, width=140))
    text = printed.getvalue()
    for words in ("plain paths", "paths with predicates", "lxml docs/s", "match only", "XMark: generated", "Targets"):
        assert words in text
    written = json.loads((out / "paths.json").read_text())
    assert written["about"]["checked_pairs"] > 0
    with (out / "paths.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == len(outcome.figures) == len(written["figures"]) == 2 * 2 * 2 * len(paths.QUICK_SIZES)
    assert {line["contestant"] for line in lines} == {Shared.name, Alone.name}
    assert all(int(line["distinct"]) > 0 for line in lines)
    assert (out / "paths.png").read_bytes().startswith(b"\x89PNG")

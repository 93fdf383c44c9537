"""The experiments of shedding, at a small size: all figures exist, and the choices fit."""

from __future__ import annotations

from pathlib import Path

from lxml import etree
from rich.console import Console

from fishweir import testing
from fishweir.algebra.construct import construct
from fishweir.algebra.nodes import CreateQuery, Shape
from fishweir.languages.script import parse_script
from fishweir.papers.shedding.run import ALGORITHMS, DEVIATIONS, RATES, run
from fishweir.papers.shedding.transactions import Q1, TOKENS, sized, transactions
from fishweir.shedding.patterns import shed_queries, to_tree
from fishweir.shedding.reduced import reduced_output


def test_transactions_follow_the_schema() -> None:
    root = etree.fromstring(transactions(5)[4])[0]
    assert [child.tag for child in root] == ["id", "name", "contact", "order", "survey", "billing"]
    assert [len(root.findall(path)) for path in ("contact/addr/zip", "order/items/brand")] >= [1, 1]
    element = etree.fromstring(sized([50, 100, 30, 20], 1)[0])
    tokens = sum(2 + bool(node.text) for node in element.iter()) - 2
    assert abs(tokens - TOKENS) <= 8


def test_shed_queries_construct_what_they_keep() -> None:
    (statement,) = parse_script(Q1)
    assert isinstance(statement, CreateQuery)
    assert isinstance(statement.shape, Shape)
    tree, root = to_tree(statement.shape), etree.fromstring(transactions(1)[0])[0]
    for kept in shed_queries(tree):
        text = construct(reduced_output(statement.shape, kept), {"a": (root, None)})
        tags = {child.tag for child in etree.fromstring(f"<r>{text}</r>")}
        assert tags == {tree.patterns[i].names[-1] for i in kept if tree.patterns[i].returned}


def test_all_figures(tmp_path: Path) -> None:
    outcome = run(tmp_path, True, Console(quiet=True), testing.open)
    assert len(outcome.find(figure="9")) == len(RATES) * len(ALGORITHMS)
    assert len(outcome.find(figure="10")) == len(DEVIATIONS) * len(ALGORITHMS)
    assert {target.name for target in outcome.targets if "no loss" in target.name and target.met}
    for rate in RATES:
        by = {name: outcome.find(figure="9", x=rate, algorithm=name)[0].value for name in ALGORITHMS}
        # Costs are measured and rounded to whole units for OptShed.
        assert by["OptShed"] >= 0.95 * by["FastShed"]
        assert by["OptShed"] >= 0.95 * by["Random"]
    ratios = [one.value for one in outcome.find(figure="cost")]
    assert len(ratios) > 100
    assert min(ratios) > 0
    for figure in ("burst", "patterns"):
        burst = {one.algorithm: one.value for one in outcome.find(figure=figure)}
        assert burst["capacity"] > 0
        assert burst["missing in the end"] == 0
    assert burst["documents left out"] == 0
    assert (tmp_path / "shedding.png").stat().st_size > 1_000

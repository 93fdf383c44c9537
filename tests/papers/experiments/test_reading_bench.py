"""The experiment on reading, at a small size: both ways find the same nodes, and all figures exist."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from fishweir.algebra.documents import elements, parse_document
from fishweir.papers.paths.news import PARTS, news, parted
from fishweir.papers.paths.reading import run


def test_documents_have_the_documented_shape() -> None:
    assert {"head", "body"} >= {child.tag for child in parse_document(news(1))}
    root = parse_document(parted(1))
    sizes = {len(list(elements(part))) for part in root}
    assert (len(root), len(sizes)) == (PARTS, 1)


def test_all_figures(tmp_path: Path) -> None:
    outcome = run(tmp_path, True, Console(quiet=True))
    shares = [point.n for point in outcome.find(part="skipping")]
    assert shares == sorted(shares)
    assert shares[0] == 0
    assert abs(shares[-1] - 0.8) < 0.05
    assert {point.contestant for point in outcome.find(part="reading")} == {"one pass", "libxml2 first"}
    assert [target.met is not None for target in outcome.targets] == [True, True]

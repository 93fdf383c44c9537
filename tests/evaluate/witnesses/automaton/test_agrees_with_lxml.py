"""The automaton agrees with lxml's XPath on patterns sampled from real documents."""

from __future__ import annotations

import re
from copy import deepcopy

import pytest
from lxml import etree

from fishweir.evaluate.witnesses.automaton.automaton import PathAutomaton
from fishweir.evaluate.witnesses.automaton.pattern import Pattern, steps_to_pattern
from fishweir.evaluate.witnesses.automaton.xpath import parse_xpath
from tests.evaluate.witnesses.automaton.support import (
    Sampler,
    found_nodes,
    lxml_nodes,
    real_documents,
    run_one,
    to_lxml,
)

SMALL = 30_000


def documents(folder: str, step: int) -> list[etree._Element]:
    chosen = [root for name, root in real_documents().items() if folder in name]
    chosen = [root for root in chosen if len(etree.tostring(root)) < SMALL]
    assert len(chosen) > step
    return chosen[::step]


@pytest.mark.parametrize(("folder", "step"), [("cda/", 9), ("invoices/", 12)])
def test_sampled_patterns_over_many_documents(folder: str, step: int) -> None:
    roots = documents(folder, step)
    patterns = [Sampler(seed, root).pattern() for seed, root in enumerate(roots * 4)]
    automaton = PathAutomaton()
    ids = [automaton.add(pattern) for pattern in patterns]
    batch = automaton.run(roots)
    rows, paths = batch.expand()
    matched = 0
    for pattern, path in dict(zip(patterns, ids, strict=True)).items():
        expected = [lxml_nodes(root, to_lxml(pattern)) for root in roots]
        assert [found_nodes(batch, path, i) for i in range(len(roots))] == expected, str(pattern)
        assert sorted(rows[paths == path].tolist()) == batch.nodes(path).rows.tolist()
        matched += sum(map(bool, expected))
    assert set(paths.tolist()) == set(batch.matched().tolist())
    assert matched > len(patterns)


@pytest.mark.parametrize("name", ["xmark", "mondial", "macbeth", "reed", "hamlet", "books", "xqft"])
def test_sampled_patterns_over_large_documents(name: str) -> None:
    (root,) = (deepcopy(root) for file, root in real_documents().items() if name in file)
    while len(list(root.iter())) > 1500 and len(root) > 1:  # only its first subtrees, so that lxml finishes in time
        root.remove(root[-1])
    sampler = Sampler(7, root)
    patterns = [sampler.pattern() for _ in range(40)]
    batch, ids = run_one(root, *patterns)
    for pattern, path in zip(patterns, ids, strict=True):
        assert found_nodes(batch, path) == lxml_nodes(root, to_lxml(pattern)), str(pattern)


def test_texts_with_prefixes() -> None:
    """Both get the same text and prefixes: the parser agrees with lxml."""
    roots = documents("invoices/", 20)
    checked = 0
    for seed, root in enumerate(roots):
        sampler = Sampler(seed, root)
        prefixes = {f"n{i}": uri for i, uri in enumerate(sorted({etree.QName(e).namespace or "" for e in root.iter()}))}
        prefix_of = {uri: prefix for prefix, uri in prefixes.items()}
        texts = [_prefixed(sampler.pattern(predicates=0.4), prefix_of) for _ in range(12)]
        automaton = PathAutomaton()
        ids = [automaton.add(parse_xpath(text, prefixes)) for text in texts]
        batch = automaton.run([root])
        for text, path in zip(texts, ids, strict=True):
            assert found_nodes(batch, path) == lxml_nodes(root, text, {p: u for p, u in prefixes.items() if u}), text
            checked += 1
    assert checked > 100


def _prefixed(pattern: Pattern, prefix_of: dict[str, str]) -> str:
    """The pattern's text with prefixes for namespaces; without numeric `!=`, for which Fishweir differs."""
    text = re.sub(r" != (?=-?\d)", " = ", str(pattern))
    return re.sub(r"\{([^{}]*)\}", lambda m: f"{prefix_of[m[1]]}:" if m[1] else "", text.replace("./@", "@"))


def test_any_namespace_matches_by_local_name() -> None:
    root = etree.fromstring('<a xmlns:p="urn:p" p:k="1"><p:b/><b/><c><p:b l="2"/></c></a>')
    batch, ids = run_one(root, *(parse_xpath(t, any_namespace=True) for t in ("//b", "//@k", "/a/c/b/@l")))
    assert [found_nodes(batch, i) for i in ids] == [["1", "2", "4"], ["0@k"], ["4@l"]]
    batch, ids = run_one(root, *(parse_xpath(t, {"p": "urn:p"}) for t in ("//b", "//p:b", "//@k", "//p:*", "//@p:k")))
    assert [found_nodes(batch, i) for i in ids] == [["2"], ["1", "4"], [], ["1", "4"], ["0@k"]]
    assert steps_to_pattern(()) == Pattern(())

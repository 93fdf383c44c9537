"""Chains compared with a naive enumerator, changes compared with a fresh automaton, counters, splits, values."""

from __future__ import annotations

import random

from hypothesis import given
from lxml import etree

from fishweir.algebra.documents import local_name, parse_document
from fishweir.evaluate.witnesses.automaton.automaton import PathAutomaton
from fishweir.evaluate.witnesses.automaton.pattern import (
    Compare,
    Exists,
    NameTest,
    Not,
    PathStep,
    Pattern,
    conjunction,
    disjunction,
)
from fishweir.evaluate.witnesses.automaton.xpath import parse_xpath
from tests import strategies as st
from tests.evaluate.witnesses.automaton.support import found_nodes, lxml_nodes, naive_chains, run_one, to_lxml
from tests.generators import NAMES, NUMBERS, TEXTS, documents

TESTS = st.sampled_from([NameTest(name, "") for name in NAMES] + [NameTest(None)])
KEYS = st.sampled_from([NameTest("k", ""), NameTest("l", ""), NameTest(None)])


@st.composite
def patterns(draw: st.DrawFn, least: int = 1, depth: int = 2) -> Pattern:
    steps = []
    for _ in range(draw(st.integers(least, 3))):
        predicate = draw(predicates(depth - 1)) if depth and draw(st.integers(0, 2)) == 0 else None
        steps.append(PathStep(draw(TESTS), draw(st.booleans()), False, predicate))
    if draw(st.integers(0, 3)) == 0:
        steps.append(PathStep(draw(KEYS), draw(st.booleans()), True))
    return Pattern(tuple(steps))


@st.composite
def predicates(draw: st.DrawFn, depth: int):  # type: ignore[no-untyped-def]
    kind = draw(st.sampled_from(["exists", "text", "number", *(["and", "or", "not"] if depth else [])]))
    if kind in ("and", "or"):
        parts = draw(st.lists(predicates(depth - 1), min_size=2, max_size=2))
        return conjunction(parts) if kind == "and" else disjunction(parts)
    if kind == "not":
        return Not(draw(predicates(depth - 1)))
    pattern = draw(patterns(0, depth))
    if kind == "exists":
        return Exists(pattern)
    if kind == "text":
        return Compare(pattern, draw(st.sampled_from(["=", "!="])), draw(st.sampled_from(TEXTS)))
    return Compare(pattern, draw(st.sampled_from(["=", "!=", "<", "<=", ">", ">="])), draw(st.sampled_from(NUMBERS)))


@st.examples(80)
@given(documents(), st.lists(patterns(), min_size=1, max_size=5), st.booleans())
def test_chains_and_nodes_equal_the_naive_ones(text: str, wanted: list[Pattern], comments: bool) -> None:
    root = parse_document(text.encode(), comments)
    batch, ids = run_one(root, *wanted)
    for pattern, path in zip(wanted, ids, strict=True):
        expected = naive_chains(root, pattern)
        found = batch.chains(path)
        ends = [batch.node_id(int(row)) for row in found.rows]
        lines = [(*map(str, line[:-1]), end) for line, end in zip(found.nodes.tolist(), ends, strict=True)]
        assert sorted(lines) == sorted(expected), str(pattern)
        assert sorted(set(found_nodes(batch, path))) == sorted({chain[-1] for chain in expected})
        assert found_nodes(batch, path) == lxml_nodes(root, to_lxml(pattern))


@st.examples(40)
@given(
    st.lists(documents(), min_size=1, max_size=3),
    st.lists(st.tuples(patterns(), st.integers(0, 3), st.booleans()), min_size=2, max_size=14),
)
def test_changes_at_run_time_equal_a_fresh_automaton(
    texts: list[str], changes: list[tuple[Pattern, int, bool]]
) -> None:
    roots = [parse_document(text.encode()) for text in texts]
    automaton, held, tokens = PathAutomaton(), [], {}
    for pattern, action, values in changes:
        if action == 0 and held:
            path, _, valued = held.pop(len(held) // 2)
            automaton.remove(path, valued)
        path = automaton.add(pattern, values)
        tokens = {p: n for p, n in tokens.items() if p in automaton.paths}
        held.append((path, pattern, values))
        batch = automaton.run(roots)
        fresh = PathAutomaton()
        same = {path: fresh.add(pattern, values) for path, pattern, values in held}
        expected = fresh.run(roots)
        for path, pattern, values in held:
            other = same[path]
            assert batch.chains(path).nodes.tolist() == expected.chains(other).nodes.tolist()
            assert batch.nodes(path).nodes.tolist() == expected.nodes(other).nodes.tolist()
            if values:
                nodes = batch.nodes(path)
                assert batch.texts(nodes) == expected.texts(expected.nodes(other))
            if not any(step.predicate for step in pattern.steps):
                tokens.setdefault(path, 0)
        for path in tokens:
            tokens[path] += len(batch.nodes(path))
            assert automaton.tokens(path) == tokens[path]
        reached = batch.reached
        lines = zip(reached.paths.tolist(), reached.nodes.tolist(), reached.documents.tolist(), strict=True)
        nodes = {path: batch.nodes(path) for path in tokens}
        assert list(lines) == sorted((p, len(n), len(set(n.documents.tolist()))) for p, n in nodes.items() if len(n))
        counted = sorted(zip(*[a.tolist() for a in batch.expand()], strict=True))
        assert counted == sorted((r, p) for p in automaton.paths for r in batch.nodes(p).rows.tolist())
    for path, _, values in held:
        automaton.remove(path, values)
    assert (len(automaton.paths), automaton.trie.live, automaton.states.valued) == (0, 1, {})


def test_many_changes_update_only_affected_states() -> None:
    root = etree.fromstring("<a><b><c/></b><d><c/></d></a>")
    automaton = PathAutomaton()
    first = automaton.add(parse_xpath("/a/b/c"))
    automaton.run([root])
    b = automaton.states.start["a"]["b"]  # type: ignore[index]
    second = automaton.add(parse_xpath("/a/d/c"))
    batch = automaton.run([root])
    assert automaton.states.start["a"]["b"] is b  # type: ignore[index]
    assert [found_nodes(batch, p) for p in (first, second)] == [["2"], ["4"]]
    third = automaton.add(parse_xpath("/a/b//c"))
    batch = automaton.run([root])
    assert automaton.states.start["a"]["b"] is not b  # type: ignore[index]
    assert [found_nodes(batch, p) for p in (first, second, third)] == [["2"], ["4"], ["2"]]


def test_bulk_changes_equal_a_fresh_automaton() -> None:
    rng = random.Random(3)
    names = [f"n{i}" for i in range(30)]
    root = etree.Element("r")
    for _ in range(300):
        etree.SubElement(rng.choice(list(root.iter())), rng.choice(names))
    texts = ["/r" + "".join(rng.choice(["/", "//"]) + rng.choice([*names, "*"]) for _ in range(3)) for _ in range(4000)]
    automaton = PathAutomaton()
    ids: dict[str, int] = {}
    for start in range(0, 4000, 1000):
        for text in dict.fromkeys(texts[start : start + 1000]):
            if text not in ids:
                ids[text] = automaton.add(parse_xpath(text))
        for text in rng.sample(list(ids), 300):
            automaton.remove(ids.pop(text))
        batch = automaton.run([root])
        for text in rng.sample(list(ids), 60):
            assert found_nodes(batch, ids[text]) == lxml_nodes(root, text), text


def test_counters_add_up() -> None:
    roots = [etree.fromstring("<a><b k='1'/><c><x><y/></x></c><b/></a>"), etree.fromstring("<z><a/></z>")]
    automaton = PathAutomaton()
    ids = [automaton.add(parse_xpath(text)) for text in ("/a", "/a/b", "/a/b/@k", "/a/b")]
    assert ids[1] == ids[3]
    for _ in range(3):
        batch = automaton.run(roots)
        assert (batch.elements, batch.skipped) == (8, 5)
    counters = automaton.counters()
    assert (counters.paths, counters.documents, counters.elements, counters.skipped) == (3, 6, 24, 15)
    assert [automaton.tokens(path) for path in ids[:3]] == [3, 6, 3]
    assert sum(counters.entered) == 12
    late = automaton.add(parse_xpath("//b"))
    automaton.run(roots)
    assert [automaton.tokens(path) for path in (*ids[:3], late)] == [4, 8, 4, 2]


def test_a_split_document_is_entered_at_any_level_of_its_context() -> None:
    root = etree.fromstring("<q s='1'><p>7</p></q>")
    automaton = PathAutomaton()
    texts = ("/all/quotes/q/p", "/quotes/q", "/q/@s", "/quotes", "/all//p", "/p")
    ids = [automaton.add(parse_xpath(text, any_namespace=True), values=True) for text in texts]
    batch = automaton.run([root], [("all", "quotes")])
    assert [batch.chains(path).nodes.tolist() for path in ids] == [
        [[-2, -1, 0, 1]],
        [[-1, 0]],
        [[0, 0]],
        [[-1]],
        [[-2, 1]],
        [],
    ]
    assert batch.texts(batch.nodes(ids[3])) == ["7"]
    assert local_name("{u}q") == "q"


def test_a_state_of_many_paths_is_one_entry() -> None:
    root = etree.fromstring("<a>" + "<b/>" * 50 + "</a>")
    automaton = PathAutomaton()
    texts = [f"{x}{y}" for x in ("/a", "//a", "/*", "//*") for y in ("/b", "//b", "/*", "//*")]
    ids = {automaton.add(parse_xpath(text)) for text in texts}
    found = automaton.run([root]).factorized
    assert len(found.path_offsets) == 3
    assert found.pairs == 50 * len(ids) == len(found.expand()[0])


def test_attributes_below_unnamed_elements_are_reached() -> None:
    batch, ids = run_one(etree.fromstring("<a><b><c k=''/></b></a>"), parse_xpath("/a//@k"))
    assert found_nodes(batch, ids[0]) == ["2@k"]


def test_many_paths_that_all_have_predicates() -> None:
    """More trie nodes than initially allocated, none of them at the end of a plain path."""
    names = [f"n{i}" for i in range(1500)]
    automaton = PathAutomaton()
    ids = [automaton.add(parse_xpath(f"/a/{name}[@k = '1']")) for name in names]
    batch = automaton.run([etree.fromstring("<a><n1499 k='1'/><n7 k='2'/><n8 k='1'/></a>")])
    assert batch.matched().tolist() == [ids[8], ids[1499]]

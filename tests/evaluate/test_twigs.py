"""Tables matched together agree with the oracle and with each table matched separately."""

from __future__ import annotations

import pytest
from hypothesis import given

from fishweir.algebra.documents import Document, parse_document
from fishweir.algebra.nodes import Source
from fishweir.evaluate.plan import plan as plans
from fishweir.evaluate.plan.plan import cached_paths, plan_of
from fishweir.evaluate.plan.segments import build_groups, planned_segment
from fishweir.evaluate.select import strategies
from fishweir.evaluate.select.twigs import is_twig
from tests import strategies as st
from tests.evaluate.support import plan_rows
from tests.evaluate.support import queries as parsed
from tests.evaluate.test_match import contexts, expected, matched, rows
from tests.generators import documents, shapes


@pytest.fixture(autouse=True)
def always(monkeypatch):
    """Uses twigs regardless of their number."""
    monkeypatch.setattr(strategies, "FEWEST", 1)


@st.examples(60)
@given(
    st.booleans().flatmap(lambda deep: st.lists(shapes(deep=deep), min_size=1, max_size=12)),
    st.lists(st.tuples(documents(), contexts), min_size=1, max_size=4),
)
def test_twigs_equal_oracle(queries, texts):
    docs = [Document(str(i), 0.0, parse_document(t.encode()), c) for i, (t, c) in enumerate(texts)]
    segments = [planned_segment("a", build_groups(rows(queries), {}), {})]
    assert matched(segments, docs) == expected(queries, docs)


TEXTS = (
    "S//a[b = 'x']", "S//a[b = 'x']/c", "S/r[a/b = 'x']//c[@k >= 2]", "S//*[. = 'x']", "S//a[b][c != 'y']//@k",
    "S/*/*[@k < 2]/*", "S//a[.//b = 'x' and c/d]", "S//a//a[b = 'x']/b", "S//a[@k = 1]/@k",
)  # fmt: skip
BODY = (
    b'<r><a k="1"><b>x</b><c k="3">y<d/></c><a k="2"><b>x</b><b>z</b><c>w<d>x</d></c></a></a>'
    b'<a k="one"><c k="2"/></a></r>'
)


def test_patterns_with_branches_on_both_sides():
    created = parsed(*(f"create query q{i} as {text}" for i, text in enumerate(TEXTS)))
    queries = [(query.shape, query.constants) for query in created]
    segment = planned_segment("a", build_groups(plan_rows(created, 0), {}), {})
    assert all(is_twig(table) for table in segment.groups)
    docs = [Document("1", 0.0, parse_document(BODY))]
    found = matched([segment], docs)
    assert found == expected(queries, docs)
    assert {number for number, _, _ in found} == set(range(len(TEXTS)))


def test_the_program_of_a_returning_segment_is_rebuilt(tmp_path):
    """Its paths then have different ids in the automaton."""
    first, second = (
        planned_segment(name, build_groups(plan_rows(parsed(f"create query q as S//{tag}[b = 'x']")), {}), {})
        for name, tag in (("first", "a"), ("second", "c"))
    )
    shared, root = cached_paths(tmp_path, (Source("S"),)), parse_document(b"<r><a><b>x</b></a><c><b>x</b></c></r>")
    old, new = plan_of([first], [Source("S")], shared), plan_of([second], [Source("S")], shared)
    for plan, position in ((old, 1), (new, 3), (old, 1), (new, 3)):
        walk = plan.start()
        walk.add(0, root)
        ((_, _, matches),) = plan.match(walk.tables())
        assert matches.nodes.tolist() == [[position]]


def test_statistics_cover_the_paths_that_plans_depend_on(monkeypatch):
    """Not the paths of twigs. If there are many paths, they are counted in turns."""
    created = parsed(*(f"create query q{i} as S//a[b{i} = 'x']" for i in range(10)))
    groups = build_groups(rows([(query.shape, query.constants) for query in created]), {})
    document = parse_document(f"<a>{''.join(f'<b{i}>x</b{i}>' for i in range(10))}</a>".encode())

    def planned():
        return planned_segment("a", groups, {})

    def counted(turn):
        plan = plan_of([planned()], [Source("S")])
        walk = plan.start()
        walk.add(0, document)
        return plan.count(walk.tables(), turn)

    assert not counted(0)
    monkeypatch.setattr(strategies, "FEWEST", 100)
    assert len(counted(0)) == 10
    monkeypatch.setattr(plans, "COUNTED", 4)
    turns = [counted(turn) for turn in range(3)]
    assert [len(turn) for turn in turns] == [4, 3, 3]
    assert len({path for turn in turns for path in turn}) == 10

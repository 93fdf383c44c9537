"""The shared plan fires exactly what the oracle finds, query by query and document by document."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given

import fishweir.papers.spatialjoin.regions  # noqa: F401 - registers the kernels of the paper
from fishweir.algebra.documents import ATTRIBUTE, Document, parse_document
from fishweir.algebra.nodes import Source
from fishweir.algebra.normal import to_normal
from fishweir.algebra.oracle import evaluate
from fishweir.evaluate.plan.plan import plan_of
from fishweir.evaluate.plan.segments import build_groups, planned_segment, read_segment, write_segment
from fishweir.evaluate.select.strategies import ByRegions
from tests import strategies as st
from tests.evaluate.support import expanded
from tests.evaluate.support import queries as parsed
from tests.generators import NAMES, documents, shapes


def expected(queries, docs):
    """(query, document, output nodes) by the oracle."""
    found = set()
    for number, (shape, constants) in enumerate(queries):
        nodes = dict(to_normal(shape).variables)
        for i, document in enumerate(docs):
            for binding in evaluate(shape, constants, document):
                ids = {nodes[name]: node.number for name, node in binding.items()}
                found.add((number, i, tuple(ids.values())))
    return found


def matched(segments, docs):
    """The same from the plan, with each query at most once per output."""
    plan = plan_of(segments, [Source("S")])
    walk = plan.start()
    for i, document in enumerate(docs):
        walk.add(i, document.root, document.context)
    by_id = {s.id: s for s in segments}
    found = []
    for segment, index, matches in plan.match(walk.tables()):
        found += expanded(by_id[segment].groups[index], matches)
    assert len(found) == len(set(found)), "a result is repeated"
    return set(found)


def rows(queries, first=0):
    for number, (shape, constants) in enumerate(queries, first):
        normal = to_normal(shape)
        yield number, normal.template, [constants[i] for i in normal.slots]


contexts = st.lists(st.sampled_from(NAMES), max_size=2).map(tuple)


@st.examples(80)
@given(
    st.booleans().flatmap(lambda deep: st.lists(shapes(deep=deep), min_size=1, max_size=12)),
    st.lists(st.tuples(documents(), contexts), min_size=1, max_size=4),
)
def test_plan_equals_oracle(queries, texts):
    docs = [Document(str(i), 0.0, parse_document(t.encode()), c) for i, (t, c) in enumerate(texts)]
    tables = build_groups(rows(queries), {})
    for requested in ((), (ByRegions(kernel="packed"),), (ByRegions(kernel="ibs"),)):
        segment = planned_segment("1", tables, {}, requested)
        assert matched([segment], docs) == expected(queries, docs)


@st.examples(30)
@given(queries=st.lists(shapes(), min_size=1, max_size=10), texts=st.lists(documents(), min_size=1, max_size=4))
def test_segments_survive_their_file(tmp_path_factory, queries, texts):
    folder: Path = tmp_path_factory.mktemp("plan")
    docs = [Document(str(i), 0.0, parse_document(t.encode())) for i, t in enumerate(texts)]
    half = len(queries) // 2
    parts = [queries[:half], queries[half:]]
    for i, part in enumerate(parts):
        tables = build_groups(rows(part, i * half), {})
        write_segment(folder, planned_segment(str(i), tables, {}, [ByRegions(kernel="grid")]))
    segments = [read_segment(folder, str(i)) for i in range(2)]
    assert matched(segments, docs) == expected(queries, docs)


def test_a_name_alone_means_the_attributes_of_all_namespaces():
    texts = ['<a xmlns:p="u" xmlns:q="v" p:k="2" k="3"/>', '<a xmlns:p="u" xmlns:q="v" q:k="3" p:k="2"/>']
    docs = [Document(str(i), 0.0, parse_document(t.encode())) for i, t in enumerate(texts)]
    made = parsed(*(f"create Q where <a k=$v></> in 'S', $v = {n} construct $v" for n in (2, 3)))
    queries = [(s.shape, s.constants) for s in made]
    second = ATTRIBUTE
    assert expected(queries, docs) == {(0, 0, (second,)), (1, 0, (0,)), (0, 1, (second,)), (1, 1, (0,))}
    assert matched([planned_segment("1", build_groups(rows(queries), {}), {})], docs) == expected(queries, docs)

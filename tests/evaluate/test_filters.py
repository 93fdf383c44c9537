"""The filters of a source: after any history of segments, the plan agrees with the oracle."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from fishweir.algebra.clauses import constants_of, to_normals
from fishweir.algebra.documents import Document, parse_document, values_at
from fishweir.algebra.feeds import Filter, Selection
from fishweir.algebra.formula import And, Atom, Not, Or
from fishweir.algebra.nodes import Slot, Source, Step
from fishweir.algebra.oracle import selects
from fishweir.errors import QueryError
from fishweir.evaluate.plan.planner import Planner
from fishweir.evaluate.plan.segments import (
    Segment,
    build_groups,
    merge_segments,
    planned_segment,
    read_segment,
    write_segment,
)
from fishweir.evaluate.select.filter_plan import merge_filters, replanned
from fishweir.evaluate.select.filters import FilterTable, match_filters
from fishweir.evaluate.statistics import PathStatistics, count_values, path_key
from fishweir.evaluate.witnesses.path_tables import PathTable
from tests import strategies as st
from tests.evaluate.test_selections import SOURCE, items, normalisable, selections

NONE_DEAD = np.empty(0, np.int64)


def rows_of(queries, first=0):
    return [
        (number, normal.template, constants_of(normal, constants))
        for number, (selection, constants) in enumerate(queries, first)
        for normal in to_normals(selection)
    ]


def witnesses(table: FilterTable, roots):
    """Values by path, gathered one document at a time."""
    found = {}
    for path in table.own_paths:
        values = [(i, value) for i, root in enumerate(roots) for value in values_at(root, path[1:])]
        documents = np.array([i for i, _ in values], np.int64)
        texts = pa.array([value for _, value in values], pa.large_string())
        found[path] = PathTable(documents, np.zeros((len(values), len(path)), np.int64), texts)
    return found


def fired(tables, roots):
    pairs = []
    for table in tables:
        matches = match_filters(table, witnesses(table, roots))
        for row in range(len(matches) if matches is not None else 0):
            spans = matches.slices[matches.slice_offsets[row] : matches.slice_offsets[row + 1]].reshape(-1, 2)
            numbers = [n for lo, hi in spans for n in table.members[lo:hi].tolist()]
            numbers += matches.members[matches.member_offsets[row] : matches.member_offsets[row + 1]].tolist()
            pairs += [(n, int(matches.documents[row])) for n in numbers]
    return pairs


def expected(queries, roots, dead=()):
    return {
        (n, i)
        for n, (selection, constants) in enumerate(queries)
        for i, root in enumerate(roots)
        if n not in dead and selects(selection, constants, SOURCE, Document(str(i), 0.0, root))
    }


@st.examples(40)
@given(
    st.lists(selections().filter(normalisable), min_size=1, max_size=8),
    st.lists(items(), min_size=1, max_size=5),
    st.integers(0, 8),
    st.sets(st.integers(0, 7), max_size=3),
)
def test_merged_plans_agree_with_the_oracle(tmp_path_factory, queries, texts, cut, dead):
    roots = [parse_document(text.encode()) for text in texts]
    folder = tmp_path_factory.mktemp("plan")
    halves = [rows_of(queries[:cut]), rows_of(queries[cut:], cut)]
    for i, rows in enumerate(halves):
        write_segment(folder, planned_segment(str(i), build_groups(rows, {}), {}))
    read = [read_segment(folder, str(i)) for i in range(2)]
    assert set(fired([t for s in read for t in s.groups], roots)) == expected(queries, roots)
    counted = {}
    for table in (t for s in read for t in s.groups):
        for path, values in witnesses(table, roots).items():
            key = path_key(SOURCE, "item" if len(path) == 1 else str(path[1]))
            counted[key] = count_values(values, path in table.worded)
    merged = merge_segments(read, np.array(sorted(dead), np.int64), counted)
    assert len(merged) <= 1, "one plan a source"
    pairs = fired(merged, roots)
    assert set(pairs) == expected(queries, roots, dead)


def keyword_query(form, *words, source=SOURCE):
    """`a&b|c&~d`: conjunctions of disjunctions of words given by position."""
    slots = tuple(Slot(i, "string") for i in range(len(words)))

    def literal(text):
        atom = Atom((), "contains", slots["abcdefgh".index(text.lstrip("~"))])
        return Not(atom) if text[0] == "~" else atom

    clauses = tuple(Or(tuple(literal(one) for one in clause.split("|"))) for clause in form.split("&"))
    return Selection((Filter(source, And(clauses)),), slots=slots), words


def test_equal_filters_end_at_one_node_and_answers_are_slices():
    queries = [keyword_query("a&b", "rock", "concert")] * 5 + [keyword_query("a&b", "concert", "rock")] * 5
    (table,) = build_groups(rows_of(queries), {})
    roots = [parse_document(b"<item>a rock concert</item>"), parse_document(b"<item>rock</item>")]
    assert len(table.layout) == 2
    matches = match_filters(table, witnesses(table, roots))
    assert (len(matches), matches.slices.tolist(), matches.members.tolist()) == (1, [0, 10], [])


def test_a_disjunction_is_one_unit_and_a_query_fires_once():
    queries = [keyword_query("a|b&~c", "rock", "jazz", "free"), keyword_query("a&b|c", "x", "jazz", "rock")]
    (table,) = build_groups(rows_of(queries), {})
    assert len(table.layout.units) - table.layout.units.atoms == 2, "`rock or jazz` and `not free`"
    roots = [parse_document(f"<item>{t}</item>".encode()) for t in ("rock and jazz", "free jazz", "x rock jazz", "x")]
    assert sorted(fired([table], roots)) == [(0, 0), (0, 2), (1, 2)]


def test_another_source_keeps_its_plan():
    other = Source("other")
    old = build_groups(rows_of([keyword_query("a&b", "rock", "x", source=s) for s in (SOURCE, other)]), {})
    new = build_groups(rows_of([keyword_query("a", "jazz")], 2), {})
    merged = merge_segments([Segment("1", old), Segment("2", new)], NONE_DEAD, {})
    kept = {t.source: t for t in merged}
    before = {t.source: t for t in old}
    assert kept[other] is before[other]
    assert sorted(kept[SOURCE].members.tolist()) == [0, 2]


def statistics(**counts: int):
    return {path_key(SOURCE, "item"): PathStatistics(1_000, (), ("x",), tuple(counts.items()), 1_000)}


FORMS = [("a&b", "rock", "concert"), ("a&b", "rock", "paris"), ("a&b", "jazz", "concert"), ("a&b", "jazz", "paris")]


def test_a_plan_follows_the_statistics():
    """Rare conditions become shared filters; a plan is kept if nothing has changed."""
    queries = [keyword_query(*form) for form in FORMS]
    rare_music = statistics(rock=10, jazz=10, concert=500, paris=500)
    rare_place = statistics(rock=500, jazz=500, concert=10, paris=10)
    (table,) = build_groups(rows_of(queries), rare_music)
    assert top_words(table) == {"rock", "jazz"}
    assert replanned(table, rare_music) is None
    again = replanned(table, rare_place)
    assert again is not None
    assert top_words(again) == {"concert", "paris"}
    roots = [parse_document(b"<item>jazz in paris</item>"), parse_document(b"<item>rock concert</item>")]
    assert fired([again], roots) == fired([table], roots) == [(3, 0), (0, 1)]


def top_words(table: FilterTable) -> set[str]:
    (group,) = table.groups
    top = [table.layout.units_of(node) for node in range(1, table.layout.first[1])]
    return {group.constants[unit].as_py() for units in top for unit in units}


class Given:
    """Queries by their numbers, none of which is dropped."""

    def __init__(self, queries) -> None:
        self.queries = queries

    def planned(self, after, upto):
        return [row for row in self.queries if after < row[0] <= upto]

    def dropped(self):
        return np.empty(0, np.int64)

    def gone(self, piece, version):
        return 0

    def written(self, after):
        return []


def test_the_planner_replans_when_statistics_drift(tmp_path: Path):
    queries = rows_of([keyword_query(*form) for form in FORMS], 1)
    planner = Planner(tmp_path, Given(queries))

    def refresh(known):
        planner.refresh(4, known)
        (table,) = read_segment(tmp_path, planner.segments[0]).groups
        return planner.pieces[0].revision, top_words(table) if known else None

    assert refresh({})[0] == 0
    first = statistics(rock=10, jazz=10, concert=500, paris=500)
    assert refresh(first) == (1, {"rock", "jazz"})
    assert refresh(first) == (1, {"rock", "jazz"})
    more = {k: PathStatistics(9_000, s.smallest, s.sample, s.words, 9_000) for k, s in first.items()}
    assert refresh(more)[0] == 1, "all words became rarer, and the plan is still the best"
    words = (("rock", 45_000), ("jazz", 45_000), ("concert", 90), ("paris", 90))
    drifted = {key: PathStatistics(90_000, (), ("x",), words, 90_000) for key in first}
    assert refresh(drifted) == (2, {"concert", "paris"})
    reopened = Planner(tmp_path, planner.registered)
    assert reopened.pieces == planner.pieces
    assert reopened.version == 4


def test_a_new_source_is_planned_independently_of_old_ones(tmp_path: Path):
    """Regardless of the counts of other sources."""
    other = {path_key(Source("old"), "item"): PathStatistics(10_000_000)}
    queries = rows_of([keyword_query(*form) for form in FORMS], 1)
    planner = Planner(tmp_path, Given(queries))
    for known, revision in ((other, 0), (other | statistics(rock=1, jazz=1, concert=500, paris=500), 1)):
        planner.refresh(4, known)
        assert planner.pieces[0].revision == revision


def test_predicates_that_explode_in_one_normal_form_use_the_other():
    slots = tuple(Slot(i, "string") for i in range(18))
    atoms = [Atom((), "contains", slot) for slot in slots]
    pairs = [(atoms[2 * i], atoms[2 * i + 1]) for i in range(9)]
    few = Selection((Filter(SOURCE, Or(tuple(And(pair) for pair in pairs))),), slots=slots)
    assert len(to_normals(few)) == 9, "512 clauses, but 9 conjunctions"
    words = tuple(f"w{i}" for i in range(18))
    (table,) = build_groups(rows_of([(few, words)]), {})
    roots = [parse_document(f"<item>{t}</item>".encode()) for t in ("w0 w1", "w1 w2", "w4 w5 w16 w17")]
    assert set(fired([table], roots)) == {(0, 0), (0, 2)}
    both = And((Or(tuple(And(pair) for pair in pairs)), *(Or(pair) for pair in pairs)))
    with pytest.raises(QueryError, match="more than 256 alternatives"):
        to_normals(Selection((Filter(SOURCE, both),), slots=slots))


def test_dropped_queries_leave_nothing_behind():
    queries = [keyword_query("a&b", "rock", "x"), keyword_query("a", "jazz")]
    (table,) = build_groups(rows_of(queries), {})
    left = merge_filters([table], np.array([0]), {})
    assert left is not None
    assert [g.constants.to_pylist() for g in left.groups] == [["jazz"]]
    assert merge_filters([table], np.array([0, 1]), {}) is None


def test_a_filter_of_an_attribute_reads_its_own_path():
    query = Selection((Filter(SOURCE, Atom((Step("a"),), "contains", Slot(0, "string"))),)), ("x",)
    (table,) = build_groups(rows_of([query]), {})
    roots = [parse_document(b"<item><a>x</a><b>y</b></item>"), parse_document(b"<item><a>y</a><b>x</b></item>")]
    assert fired([table], roots) == [(0, 0)]

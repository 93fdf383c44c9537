"""A source has one filter plan regardless of its readers: it matches the filters of feeds and the sides of annotation
joins once, after any history of segments."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given

from fishweir import testing
from fishweir.algebra.clauses import constants_of, to_normals
from fishweir.algebra.feeds import Selection
from fishweir.algebra.nodes import Source
from fishweir.algebra.oracle import selects
from fishweir.evaluate.plan.plan import plan_of
from fishweir.evaluate.plan.segments import build_groups, merge_segments, planned_segment
from fishweir.evaluate.select import filter_kind
from fishweir.evaluate.select.filter_plan import replanned
from fishweir.evaluate.statistics import count_values, path_key
from tests import strategies as st
from tests.evaluate.join.annotation_support import SOURCES, expected, found_by, through_files
from tests.evaluate.join.test_annotations import _Query, items, queries
from tests.evaluate.support import expanded


@st.composite
def plain(draw):
    query = _Query(draw)
    return Selection(query.filters()), tuple(query.constants)


def built(some, first=0):
    rows = [
        (number, normal.template, constants_of(normal, constants))
        for number, (selection, constants) in enumerate(some, first)
        for normal in to_normals(selection)
    ]
    return planned_segment(f"from {first}", build_groups(rows, {}), {})


def merged(segments, dead):
    return planned_segment("merged", merge_segments(segments, np.array(sorted(dead), np.int64), {}), {})


def filters_in(segment):
    return [group for group in segment.groups if group.kind == "filters"]


def annotates(segment):
    return any(group.kind == "joins" for group in segment.groups)


def walked(segment, name, arrived):
    plan = plan_of([segment], [Source(name)])
    walk, own = plan.start(), [one for one in arrived if one.source == Source(name)]
    for i, one in enumerate(own):
        walk.add(i, one.document.root)
    return plan, walk.tables(), own


def selected_by(segment, arrived):
    """(query, item) of feeds without joins."""
    found = set()
    for name in SOURCES:
        plan, tables, own = walked(segment, name, arrived)
        for _, place, matches in plan.match(tables):
            pairs = expanded(segment.groups[place], matches)
            found |= {(number, own[document].document.id) for number, document, _ in pairs}
    return found


def check(segment, some, arrived, dead=()):
    assert max(Counter(table.source for table in filters_in(segment)).values(), default=1) == 1, "one plan a source"
    assert selected_by(segment, arrived) == {
        (number, one.document.id)
        for number, (selection, constants) in enumerate(some)
        if number not in dead and not selection.joins
        for one in arrived
        if selects(selection, constants, one.source, one.document)
    }
    joins = {number for number, (selection, _) in enumerate(some) if selection.joins}
    by_oracle = expected([query if query[0].joins else _NOTHING for query in some], arrived)
    found = found_by(segment, arrived) if annotates(segment) else []
    assert found == [row for row in by_oracle if row[0] in joins and row[0] not in dead]


_NOTHING = Selection(()), ()


@st.examples(40)
@given(
    st.lists(st.one_of(plain(), queries()), min_size=2, max_size=7),
    items(),
    st.integers(0, 7),
    st.sets(st.integers(0, 6), max_size=3),
)
def test_merged_plans_agree_with_the_oracles(tmp_path_factory, some, arrived, cut, dead):
    folder = tmp_path_factory.mktemp("plan")
    check(built(some), some, arrived)
    halves = [through_files(folder, half) for half in (built(some[:cut]), built(some[cut:], cut)) if half.groups]
    whole = merged(halves, dead)
    check(through_files(folder, whole), some, arrived, dead)
    read = {side for group in whole.groups if group.kind == "joins" for side in group.matched_sides.tolist()}
    held = {~member for table in filters_in(whole) for member in table.members.tolist() if member < 0}
    assert held <= read, "a side is dropped with the last query that reads it"
    assert sum(table.size for table in filters_in(whole)) == sum(
        int((np.asarray(table.members) >= 0).sum()) for table in filters_in(whole)
    )


@st.examples(20)
@given(st.lists(st.one_of(plain(), queries()), min_size=2, max_size=7), items())
def test_rebuilt_plans_keep_their_sides(some, arrived):
    segment = built(some)
    groups = list(segment.groups)
    for place, table in enumerate(groups):
        if table.kind == "filters":
            _, tables, _ = walked(segment, table.source.name, arrived)
            keys = {path_key(table.source, "item" if len(path) == 1 else str(path[1])): path for path in tables}
            counted = {key: count_values(tables[path], path in table.worded) for key, path in keys.items()}
            groups[place] = replanned(table, counted) or table
    check(planned_segment("anew", groups, {}), some, arrived)


SCRIPT = """
    create stream News;
    create stream Blog;
    create feed Rock from News as $n where $n[title contains 'rock'];
    create feed Rocking from Blog as $b join last 3 days on (News as $w) with $b[title similar window.title]
        where $w[title contains 'rock'];
    create feed Live from News as $n join last 5 items on Blog with $n[title similar window.title]
        where $n[title contains 'rock' and title contains 'live'];
"""


def item(title: str) -> str:
    return f"<item><title>{title}</title></item>"


def test_a_source_that_filters_and_joins_read_is_matched_by_one_plan(
    weir: testing.Weir, monkeypatch: pytest.MonkeyPatch
) -> None:
    matched = []
    by_plan = filter_kind.match_filters
    monkeypatch.setattr(filter_kind, "match_filters", lambda *of: matched.append(of[0].source) or by_plan(*of))
    weir.execute(SCRIPT)
    weir.publish("News", [item("rock live"), item("jazz live")], [0.0, 1.0])
    weir.publish("Blog", [item("rock live"), item("live jazz")], [2.0, 3.0])
    weir.step()
    assert sorted(matched, key=str) == [Source("Blog"), Source("News")], "each once"
    found = {name: [result.documents[0] for result in weir.results(name)] for name in ("Rock", "Rocking", "Live")}
    assert found == {"Rock": ["News-1"], "Rocking": ["Blog-1"], "Live": []}
    weir.publish("News", [item("rock live")], [4.0])
    weir.step()
    assert [result.documents[0] for result in weir.results("Live")] == ["News-3"]
    assert [weir.status(name).results for name in ("Rock", "Rocking", "Live")] == [2, 1, 1]


def test_explain_shows_the_sides_of_a_plan(weir: testing.Weir) -> None:
    weir.execute(SCRIPT)
    text = weir.explain()
    assert text.count("filters   of News") == text.count("filters   of Blog") == 1
    assert "conjunctions: 2, queries: 1, sides of joins: 2" in text
    assert 'title contains "rock", shared by 3' in weir.explain("Rock"), "with the window and the items to annotate"
    weir.drop("Rocking")
    weir.drop("Live")
    weir.publish("News", [item("rock live")], [4.0])
    weir.step()
    assert "filters   of Blog" not in weir.explain()
    assert "sides of joins" not in weir.explain()

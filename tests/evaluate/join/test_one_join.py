"""Joins of two streams, of more and of feeds are one kind of table; rules choose the operator that evaluates it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fishweir.algebra.clauses import constants_of, to_normals
from fishweir.algebra.feeds import Selection
from fishweir.algebra.views import Publication, definitions, resolve
from fishweir.evaluate.join.annotations.annotation_joins import AnnotationJoins
from fishweir.evaluate.join.join_tables import JoinTable
from fishweir.evaluate.join.operators import EdgeSetJoins, JoinsByRows, MultiwayJoins
from fishweir.evaluate.plan.segments import (
    build_groups,
    merge_segments,
    planned_segment,
    read_segment,
    write_segment,
)
from fishweir.languages.script import parse_script
from tests.evaluate.join.many_support import query_of

PLAIN = "S//b->x[.//y->y] JOIN{{y=w, {}}} S//b->v[.//w->w]"
TWO = "select * from R [range {}] as k, S [range 3] as l where k.a < l.a and k.b > {}"
THREE = "select * from R [range {}] as k, S [range 3] as l, T [rows 2] as m where k.a = l.a and l.b = m.b and k.c = {}"
FEED = "create feed f from R join last {} hours on S with [a = window.a and b similar(0.{}) window.b] where [c = 'x']"
TEXTS = [
    *(PLAIN.format(5), TWO.format(5, 1), THREE.format(5, 1), FEED.format(5, 1)),
    *(PLAIN.format(7), TWO.format(1, 2), THREE.format(9, 8), FEED.format(2, 7)),
]


def feed_of(text):
    (statement,) = parse_script(text, 0.0)
    published = {"f": Publication(statement.query, statement.constants)}
    whole = resolve("f", definitions(published, lambda name: name in ("R", "S")))
    return Selection(whole.filters, joins=whole.joins), whole.constants


def joins_in(segment):
    """The others are the filters that match the sides of joins."""
    return [group for group in segment.groups if group.kind == "joins"]


def segment_of(numbers):
    rows = []
    for number in numbers:
        shape, constants = (feed_of if number % 4 == 3 else query_of)(TEXTS[number])
        rows += [(number, n.template, constants_of(n, constants)) for n in to_normals(shape)]
    return planned_segment("x", build_groups(rows, {}), {})


def test_rules_choose_by_sides_and_edges() -> None:
    segment = segment_of(range(len(TEXTS)))
    assert {type(group) for group in joins_in(segment)} == {JoinTable}
    assert [len(group.template.sides) for group in joins_in(segment)] == [2, 2, 3, 2]
    assert [group.size for group in joins_in(segment)] == [2] * 4, "queries differ in constants, windows among them"
    assert [bundle.strategy for bundle in segment.bundles][-4:] == ["edge-sets", "rows", "mjoin", "windows"]
    operators = [EdgeSetJoins, JoinsByRows, MultiwayJoins, AnnotationJoins]
    assert [type(one) for one in segment.operators["joins"]] == operators


def test_all_tables_are_merged_written_and_read(tmp_path: Path) -> None:
    halves = [segment_of(reversed(range(4))), segment_of(range(4, 8))]
    merged = planned_segment("x", merge_segments(halves, np.arange(4, 8), {}), {})
    assert sorted(group.members.tolist() for group in joins_in(merged)) == [[0], [1], [2], [3]]
    whole = planned_segment("x", merge_segments(halves, np.empty(0, np.int64), {}), {})
    write_segment(tmp_path, whole)
    read = read_segment(tmp_path, "x")
    at_once = {group.template: group for group in joins_in(segment_of(range(8)))}
    for table in joins_in(read):
        same = at_once[table.template]
        assert (table.keys, table.merge_key) == (same.keys, same.merge_key), "whatever the segment"
        assert table.members.tolist() == same.members.tolist()
        assert [own.tolist() for own in table.reaches] == [own.tolist() for own in same.reaches]
        assert all(table.paths([source]) == same.paths([source]) for source in table.sources)
        assert [len(list(table.waiting())) > 0, table.header()] == [True, same.header()]


def test_each_query_has_its_own_window_length() -> None:
    (table,) = (table for table in joins_in(segment_of(range(8))) if table.template.collects)
    assert [own.tolist() for own in table.reaches] == [[-1.0, -1.0], [5 * 3600.0, 2 * 3600.0]]
    (waits,) = table.waiting()
    assert (str(waits[0]), str(waits[1]), waits[2], waits[3].tolist()) == ("S", "R", False, [18000.0, 7200.0])

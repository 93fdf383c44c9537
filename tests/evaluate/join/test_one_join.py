"""Joins of two streams and of more are one kind of table; rules say which operator evaluates it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fishweir.algebra.clauses import constants_of, to_normals
from fishweir.evaluate.join.join_tables import JoinTable
from fishweir.evaluate.join.operators import EdgeSetJoins, JoinsByRows, MultiwayJoins
from fishweir.evaluate.plan.segments import (
    build_groups,
    merge_segments,
    planned_segment,
    read_segment,
    write_segment,
)
from tests.evaluate.join.many_support import query_of

PLAIN = "S//b->x[.//y->y] JOIN{{y=w, {}}} S//b->v[.//w->w]"
TWO = "select * from R [range {}] as k, S [range 3] as l where k.a < l.a and k.b > {}"
THREE = "select * from R [range {}] as k, S [range 3] as l, T [rows 2] as m where k.a = l.a and l.b = m.b and k.c = {}"
TEXTS = [PLAIN.format(5), TWO.format(5, 1), THREE.format(5, 1), PLAIN.format(7), TWO.format(1, 2), THREE.format(9, 8)]


def segment_of(numbers):
    rows = []
    for number in numbers:
        shape, constants = query_of(TEXTS[number])
        rows += [(number, n.template, constants_of(n, constants)) for n in to_normals(shape)]
    return planned_segment("x", build_groups(rows, {}), {})


def test_rules_choose_by_sides_and_edges() -> None:
    segment = segment_of(range(len(TEXTS)))
    assert {type(group) for group in segment.groups} == {JoinTable}
    assert [len(group.template.sides) for group in segment.groups] == [2, 2, 3]
    assert [bundle.strategy for bundle in segment.bundles] == ["edge-sets", "rows", "mjoin"]
    assert [type(o) for o in segment.operators["joins"]] == [EdgeSetJoins, JoinsByRows, MultiwayJoins]


def test_all_are_merged_written_and_read_alike(tmp_path: Path) -> None:
    halves = [segment_of(reversed(range(3))), segment_of(range(3, 6))]
    merged = planned_segment("x", merge_segments(halves, np.array([3, 4, 5]), {}), {})
    assert sorted(group.members.tolist() for group in merged.groups) == [[0], [1], [2]]
    whole = planned_segment("x", merge_segments(halves, np.empty(0, np.int64), {}), {})
    write_segment(tmp_path, whole)
    read = read_segment(tmp_path, "x")
    at_once = {group.template: group for group in segment_of(range(6)).groups}
    for table in read.groups:
        same = at_once[table.template]
        assert (table.keys, table.merge_key) == (same.keys, same.merge_key), "whatever the segment"
        assert table.members.tolist() == same.members.tolist()
        assert [own.tolist() for own in table.reaches] == [own.tolist() for own in same.reaches]
        assert all(table.paths([source]) == same.paths([source]) for source in table.sources)

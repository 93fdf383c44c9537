"""The planner: few segments, small writes, and a plan that agrees with the oracle after any history."""

from __future__ import annotations

import math
import random
from bisect import bisect_right
from pathlib import Path

import numpy as np
import pytest

from fishweir.algebra.nodes import Constant, CreateQuery
from fishweir.algebra.normal import Template, to_normal
from fishweir.algebra.oracle import evaluate
from fishweir.evaluate.arrays import Ints
from fishweir.evaluate.plan.manifest import SegmentEntry
from fishweir.evaluate.plan.planner import SMALL, Planner
from fishweir.evaluate.plan.rebuild import FinishedWork, Rebuilder, Work, perform, write_piece
from fishweir.evaluate.plan.segments import Segment, build_groups, read_segment, segment_path
from fishweir.evaluate.select.strategies import ByRegions
from fishweir.evaluate.statistics import PathStatistics, Statistics, path_key
from fishweir.papers.spatialjoin import regions  # noqa: F401  registers the paper's kernels
from fishweir.sealed import read_json
from tests.evaluate.support import SOURCE, document, evaluated, queries

SHAPES = [
    "where <r><k>$k</><v>$v</></> in 's', $k = 'k{a}' construct $v",
    "where <r><k>$k</><v>$v</></> in 's', $k = 'k{a}', $v > {b} construct $v",
    "where <r><v>$v</></> in 's', $v >= {a}, $v < {b} construct $v",
    "where <r><v>$v</></> element_as $r in 's', $v != {a} construct $r",
    "where <r><k/></> element_as $r in 's' construct $r",
]


class FakeCatalog:
    """An in-memory catalog: queries by number, with the changes that added and dropped them."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.version = folder, 0
        self.queries: list[CreateQuery] = []
        self.added: list[int] = []
        self.dead: dict[int, int] = {}
        self.reads: list[tuple[int, int]] = []
        self.pieces: list[SegmentEntry] = []

    def add(self, query: CreateQuery) -> int:
        self.version += 1
        self.queries.append(query)
        self.added.append(self.version)
        return len(self.queries)

    def drop(self, number: int) -> None:
        self.version += 1
        self.dead[number] = self.version

    def planned(self, after: int, upto: int) -> list[tuple[int, Template, list[Constant]]]:
        self.reads.append((after, upto))
        found = []
        for number in self.numbers(after, upto):
            query = self.queries[number - 1]
            normal = to_normal(query.shape)
            found.append((number, normal.template, [query.constants[i] for i in normal.slots]))
        return found

    def numbers(self, after: int, upto: int) -> list[int]:
        first, last = bisect_right(self.added, after), bisect_right(self.added, upto)
        return [number for number in range(first + 1, last + 1) if number not in self.dead]

    def dropped(self) -> Ints:
        return np.array(list(self.dead), np.int64)

    def gone(self, piece: SegmentEntry, version: int) -> int:
        dead = [n for n, change in self.dead.items() if change > piece.built]
        return sum(piece.after < self.added[n - 1] <= piece.upto for n in dead)

    def written(self, after: int) -> list[SegmentEntry]:
        return [piece for piece in self.pieces if piece.after >= after]

    def planner(self, strategy: str | None = None, rebuilder: Rebuilder | None = None) -> Planner:
        return Planner(self.folder, self, [ByRegions(kernel=strategy)] if strategy else [], rebuilder)

    def refresh(self, planner: Planner, statistics: Statistics | None = None) -> None:
        planner.refresh(self.version, statistics or {})


def drawn(pick: random.Random) -> CreateQuery:
    text = pick.choice(SHAPES).format(a=pick.randint(0, 9), b=pick.randint(0, 9))
    return queries(text)[0]


def segments(planner: Planner) -> list[Segment]:
    return [read_segment(planner.folder, id) for id in planner.segments]


@pytest.fixture
def catalog(tmp_path: Path) -> FakeCatalog:
    return FakeCatalog(tmp_path / "plan")


def test_two_thousand_single_registrations(catalog: FakeCatalog) -> None:
    planner = catalog.planner()
    (query,) = queries(SHAPES[0].format(a=1))
    most = 0
    for _ in range(2_000):
        catalog.add(query)
        catalog.refresh(planner)
        most = max(most, len(planner.segments))
    assert most <= math.log2(2_000)
    assert sum(piece.size for piece in planner.pieces) == 2_000
    numbers = [n for s in segments(planner) for t in s.groups for n in t.numbers.tolist()]
    assert sorted(numbers) == list(range(1, 2_001))


def test_one_more_query_writes_a_small_file(catalog: FakeCatalog) -> None:
    planner, pick = catalog.planner(), random.Random(3)
    for _ in range(5_000):
        catalog.add(drawn(pick))
    catalog.refresh(planner)
    (large,) = planner.segments
    catalog.add(drawn(pick))
    catalog.reads.clear()
    catalog.refresh(planner)
    assert catalog.reads == [(5_000, 5_001)], "the others are not read again"
    first, second = planner.segments
    assert first == large
    sizes = [segment_path(planner.folder, id).stat().st_size for id in (first, second)]
    assert sizes[1] < 5_000 < 100_000 < sizes[0]


def test_dropping_most_rewrites_the_segment(catalog: FakeCatalog) -> None:
    planner, pick = catalog.planner(), random.Random(4)
    for _ in range(1_000):
        catalog.add(drawn(pick))
    catalog.refresh(planner)
    before = planner.segments
    for number in range(1, 401):
        catalog.drop(number)
    catalog.refresh(planner)
    assert planner.segments == before, "less than half are dropped: expanding sets omits them"
    for number in range(401, 901):
        catalog.drop(number)
    catalog.refresh(planner)
    assert planner.segments != before
    left = [n for s in segments(planner) for t in s.groups for n in t.numbers.tolist()]
    assert sorted(left) == list(range(901, 1_001))
    assert sum(piece.size for piece in planner.pieces) == 100


def test_dropping_all_leaves_no_segment(catalog: FakeCatalog) -> None:
    planner = catalog.planner()
    catalog.add(drawn(random.Random(5)))
    catalog.refresh(planner)
    catalog.drop(1)
    catalog.refresh(planner)
    assert planner.segments == ()
    catalog.add(drawn(random.Random(5)))
    catalog.refresh(planner)
    assert len(planner.segments) == 1


def test_a_restart_reads_the_list(catalog: FakeCatalog) -> None:
    planner, pick = catalog.planner(), random.Random(6)
    for _ in range(600):
        catalog.add(drawn(pick))
    catalog.refresh(planner)
    again = catalog.planner()
    assert (again.pieces, again.version) == (planner.pieces, 600)
    assert read_json(catalog.folder / "current.json")["pieces"][0]["size"] == 600
    catalog.reads.clear()
    catalog.refresh(again)
    assert catalog.reads == [], "at the same version there is nothing to do"


def test_the_tail_contains_the_unplanned_queries(catalog: FakeCatalog) -> None:
    planner, pick = catalog.planner(), random.Random(7)
    catalog.add(drawn(pick))
    catalog.refresh(planner)
    catalog.add(drawn(pick))
    (tail,) = planner.tail(catalog.version, {})
    assert [n for t in tail.groups for n in t.numbers.tolist()] == [2]
    assert planner.version == 1


@pytest.mark.parametrize("size", [3, SMALL + 50])
def test_earlier_queries_are_not_regrouped(catalog: FakeCatalog, size: int) -> None:
    """Even if their segment is merged with the new one."""
    planner = catalog.planner()
    text = "where <r><k>$k</><v>$v</></> in 's', $k = 'a', $v > {low}, $v < {high} construct $v"
    for i in range(size):
        catalog.add(queries(text.format(low=i, high=i + 1))[0])
    catalog.refresh(planner)
    rare: Statistics = {
        path_key(SOURCE, "r.k"): PathStatistics(1000, (1, 2), ("a", "b") * 50),
        path_key(SOURCE, "r.v"): PathStatistics(1000, tuple(range(200)), tuple(map(str, range(200)))),
    }
    catalog.add(queries(text.format(low=5, high=6))[0])
    catalog.refresh(planner, rare)
    groups = {t.anchor.signature(t.template): t.size for s in segments(planner) for t in s.groups}
    assert groups == {"r.k = constant in s": size, "r.v > number and r.v < number in s": 1}


@pytest.mark.parametrize("strategy", [None, "grid", "sj-batch"])
@pytest.mark.parametrize("seed", range(6))
def test_any_history_agrees_with_the_oracle(
    catalog: FakeCatalog, seed: int, strategy: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fishweir.evaluate.plan.planner.SMALL", 4)
    pick, planner = random.Random(seed), catalog.planner(strategy)
    texts = [f"<r><k>k{pick.randint(0, 9)}</k><v>{pick.randint(0, 9)}</v></r>" for _ in range(12)]
    for _ in range(8):
        for _ in range(pick.randint(0, 15)):
            catalog.add(drawn(pick))
        for number in pick.sample(range(1, len(catalog.queries) + 1), min(len(catalog.queries), pick.randint(0, 9))):
            if number not in catalog.dead:
                catalog.drop(number)
        if pick.random() < 0.3:
            planner = catalog.planner(strategy)
        catalog.refresh(planner)
        found = [one for one in evaluated(segments(planner), texts) if one[0] not in catalog.dead]
        assert found == sorted(expected(catalog, texts))


def expected(catalog: FakeCatalog, texts: list[str]) -> list[tuple[int, int, tuple[int, ...]]]:
    return [
        (number, i, tuple(int(node.id) for node in binding.values()))
        for number in catalog.numbers(0, catalog.version)
        for i, text in enumerate(texts)
        for binding in evaluate(
            catalog.queries[number - 1].shape, catalog.queries[number - 1].constants, document(text)
        )
    ]


class Slow:
    """A rebuilder that is busy until the test ends its work."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.work: Work | None = None
        self.done: FinishedWork | None = None

    @property
    def busy(self) -> bool:
        return self.work is not None

    def begin(self, work: Work) -> None:
        self.work = work

    def finish(self, failed: str = "") -> None:
        assert self.work is not None
        self.done = FinishedWork(self.work, None if failed else perform(self.folder, self.work, ()), failed)

    def take(self) -> FinishedWork | None:
        done, self.done = self.done, None
        self.work = None if done else self.work
        return done

    def close(self) -> None:
        """Does nothing: no work is running."""


def test_segments_written_in_the_background_are_adopted_when_ready(catalog: FakeCatalog) -> None:
    slow, pick = Slow(catalog.folder), random.Random(8)
    planner = catalog.planner(rebuilder=slow)
    for _ in range(3):
        for _ in range(SMALL):
            catalog.add(drawn(pick))
        catalog.refresh(planner)
    assert [piece.size for piece in planner.pieces] == [SMALL] * 3, "two of them are being merged"
    catalog.drop(1)
    catalog.add(drawn(pick))
    catalog.refresh(planner)
    assert [piece.size for piece in planner.pieces] == [SMALL, SMALL, SMALL, 1]
    slow.finish()
    catalog.refresh(planner)
    assert [piece.size for piece in planner.pieces] == [2 * SMALL, SMALL, 1], "the dropped one is still in it"
    numbers = [n for s in segments(planner) for t in s.groups for n in t.numbers.tolist()]
    assert sorted(numbers) == list(range(1, 3 * SMALL + 2))


def test_failed_work_is_retried_and_then_left_until_something_changes(catalog: FakeCatalog) -> None:
    slow, pick = Slow(catalog.folder), random.Random(9)
    planner = catalog.planner(rebuilder=slow)
    for _ in range(2):
        for _ in range(SMALL):
            catalog.add(drawn(pick))
        catalog.refresh(planner)
    for _ in range(3):
        assert slow.busy
        slow.finish("no space left")
        catalog.refresh(planner)
    assert not slow.busy
    catalog.add(drawn(pick))
    catalog.refresh(planner)
    assert slow.busy


def test_segments_of_registrations_are_adopted_unchanged(catalog: FakeCatalog) -> None:
    planner, pick = catalog.planner(rebuilder=Slow(catalog.folder)), random.Random(10)
    catalog.add(drawn(pick))
    for _ in range(500):
        catalog.add(drawn(pick))
    groups = build_groups(catalog.planned(1, 501), {})
    catalog.pieces.append(write_piece(catalog.folder, SegmentEntry(1, 501, 1, 0, plan="bulk"), groups, {}, ()))
    catalog.pieces.append(SegmentEntry(501, 502, 501, 1, plan="elsewhere"))
    catalog.add(drawn(pick))
    catalog.reads.clear()
    catalog.refresh(planner)
    assert catalog.reads == [(0, 1), (501, 502)], "what is before it, and what was written for another home"
    assert [piece.size for piece in planner.pieces] == [1, 500, 1]


def test_segments_of_registrations_are_inspected_in_the_background(catalog: FakeCatalog) -> None:
    pick = random.Random(11)
    for _ in range(300):
        catalog.add(drawn(pick))
    catalog.refresh(catalog.planner())
    slow = Slow(catalog.folder)
    again = catalog.planner(rebuilder=slow)
    (piece,) = again.pieces
    path = segment_path(catalog.folder, piece.id)
    path.rename(path.with_suffix(".aside"))
    catalog.refresh(again)  # would raise if it read the segment
    assert slow.work is not None
    assert slow.work.inspects
    path.with_suffix(".aside").rename(path)
    slow.finish()
    catalog.refresh(again)
    assert not slow.busy, "nothing in it depends on statistics"
    assert again.pieces == (piece,)


def test_a_single_query_does_not_prevent_merging_large_segments(catalog: FakeCatalog) -> None:
    slow, pick, size = Slow(catalog.folder), random.Random(12), SMALL + 50
    planner = catalog.planner(rebuilder=slow)
    for _ in range(size):
        catalog.add(drawn(pick))
    catalog.refresh(planner)
    assert not slow.busy
    for _ in range(size):
        catalog.add(drawn(pick))
    groups = build_groups(catalog.planned(size, 2 * size), {})
    entry = SegmentEntry(size, 2 * size, size, 0, plan="bulk")
    catalog.pieces.append(write_piece(catalog.folder, entry, groups, {}, ()))
    catalog.add(drawn(pick))
    catalog.refresh(planner)
    assert [piece.size for piece in planner.pieces] == [size, size, 1]
    assert slow.work is not None
    assert [piece.size for piece in slow.work.pieces] == [size, size]
    slow.finish()
    catalog.refresh(planner)
    assert [piece.size for piece in planner.pieces] == [2 * size, 1]

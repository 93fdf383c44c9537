"""Annotation joins equal the oracle: windows by time and count, late items, equal times, unions, all comparisons."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import assume, given

from fishweir.algebra.column_joins import in_block
from fishweir.algebra.feeds import Annotation, Filter, Selection
from fishweir.algebra.formula import And, Atom, Not, Or, to_dnf
from fishweir.algebra.nodes import SideWindow, Slot, Source, Step
from fishweir.evaluate.join.annotations.item_views import IN_WINDOWS
from fishweir.evaluate.watermarks import Watermarks
from tests import strategies as st
from tests.evaluate.join.annotation_support import (
    SOURCES,
    annotations_in,
    arrivals,
    expected,
    found_by,
    merged,
    segment_of,
    still_needed,
    through_files,
)

TITLE, LINK, ITEM = (Step("title"),), (Step("link"),), ()
WORDS = ["rock", "Muse", "live"]
LINKS = [
    "http://a.org/x", "http://www.a.org/x/y", "see https://b.a.org/ or http://a.org/x?q=1", "a.org", "a.org/x", "3",
]  # fmt: skip


def pair(left, op, right, threshold=None):
    """A comparison of an item with one of the window."""
    return Atom(in_block(0, left), op, in_block(1, right), threshold=threshold)


@st.composite
def items(draw):
    """Items drawn by a seed, so that many match."""
    pick, found = random.Random(draw(st.integers(0, 999))), []
    for _ in range(draw(st.sampled_from([16, 8, 3]))):
        titles = [" ".join(pick.choices(WORDS, k=pick.randint(0, 3))) for _ in range(pick.choice([1, 1, 1, 0, 2]))]
        body = "".join(f"<title>{title}</title>" for title in titles)
        body += f"<link>{pick.choice(LINKS)}</link>" if pick.random() < 0.6 else ""
        body += f"<price>{pick.randint(1, 3)}</price>" if pick.random() < 0.6 else ""
        found.append((pick.choice(SOURCES), f"<item>{body}</item>", float(pick.choice([0, 1, 1, 2, 3, 5]))))
    cuts = sorted(draw(st.sets(st.integers(1, len(found)), max_size=4)))
    return arrivals(found, cuts)


class _Query:
    """Constants in the order their slots are drawn."""

    def __init__(self, draw):
        self.draw, self.constants = draw, []

    def slot(self, value):
        self.constants.append(value)
        return Slot(len(self.constants) - 1, "number" if isinstance(value, float) else "string")

    def formula(self):
        kind = self.draw(st.sampled_from(["all", "all", "all", "word", "not", "or"]))
        if kind == "all":
            return And()
        atom = Atom(self.draw(st.sampled_from([TITLE, ITEM])), "contains", self.slot(self.draw(st.sampled_from(WORDS))))
        if kind == "or":
            return Or((atom, Atom(LINK, "exists")))
        return Not(atom) if kind == "not" else atom

    def filters(self, joins=()):
        """Feeds of a union, some of them the same source."""
        names = self.draw(st.permutations(SOURCES).map(lambda some: some + some[:1]))
        names = names[: self.draw(st.sampled_from([3, 2, 4, 1]))]
        under = st.sampled_from([tuple(joins)] * 3 + [tuple(joins)[:1], tuple(joins)[1:], ()])
        return tuple(Filter(Source(name), self.formula(), self.draw(under)) for name in names)

    def condition(self):
        op = self.draw(
            st.sampled_from(
                [
                    "=",
                    "=",
                    "similar",
                    "similar",
                    "similar",
                    "!=",
                    "<",
                    "<=",
                    ">",
                    ">=",
                    "contains",
                    "references",
                    "extends",
                    "shares-link",
                ]
            )
        )
        if op == "similar":
            share = self.draw(st.sampled_from([None, 0.0, 0.3, 2 / 3, 1.0, 1.5]))
            paths = self.draw(st.sampled_from([(TITLE, TITLE), (ITEM, TITLE), (TITLE, ITEM)]))
            return pair(paths[0], op, paths[1], None if share is None else self.slot(share))
        if op in ("<", "<=", ">", ">="):
            return pair((Step("price"),), op, (Step("price"),))
        if op in ("references", "extends", "shares-link"):
            return pair(self.draw(st.sampled_from([LINK, ITEM])), op, LINK)
        path = self.draw(st.sampled_from([TITLE, LINK, (Step("price"),)]))
        return pair(path, op, path)

    def join(self):
        rows, length = self.draw(
            st.sampled_from([(False, 1.0), (False, 2.0), (False, 100.0), (True, 1.0), (True, 2.0), (True, 50.0)])
        )
        window = SideWindow(self.slot(length), rows)
        shared = (Filter(Source("B"), And()), Filter(Source("C"), Atom(LINK, "exists")))
        condition = self.linked(not rows)
        return Annotation(window, shared if self.draw(st.booleans()) else self.filters(), "x", condition)

    def linked(self, by_time):
        """One comparison or several; with `or` and `not`, and conditions on one of the two items alone, in some."""
        if self.draw(st.booleans()):
            return And(tuple(self.condition() for _ in range(self.draw(st.sampled_from([1, 1, 2])))))
        parts = []
        for _ in range(self.draw(st.sampled_from([2, 2, 3]))):
            part = self.condition()
            kind = self.draw(st.sampled_from(["pair", "pair", "item", "other", "both"]))
            if kind != "pair" and (by_time or kind == "item"):
                block = 0 if kind == "item" else 1
                word = self.slot(self.draw(st.sampled_from(WORDS)))
                own = Atom(in_block(block, TITLE), "contains", word)
                part = And((part, own)) if kind == "both" else own
            parts.append(Not(part) if self.draw(st.integers(0, 3)) == 0 else part)
        found = Or(tuple(parts)) if self.draw(st.booleans()) else And((parts[0], Or(tuple(parts[1:]))))
        assume(to_dnf(found))
        return found


@st.composite
def queries(draw):
    query = _Query(draw)
    joins = tuple(query.join() for _ in range(draw(st.sampled_from([1, 1, 2]))))
    filters = query.filters(range(len(joins)))
    return Selection(filters, joins=joins), tuple(query.constants)


@st.examples(60)
@given(st.lists(queries(), min_size=1, max_size=5), items(), st.sampled_from([1, 3]))
def test_equal_to_the_oracle(some, arrived, parts):
    assert found_by(segment_of(some), arrived, parts) == expected(some, arrived)


@st.examples(40)
@given(st.lists(queries(), min_size=2, max_size=5), items(), st.sampled_from([0.0, 2.0, 5.0]))
def test_merged_tables_runs_and_files(tmp_path_factory, some, arrived, late):
    """Runs merged after each micro-batch, without what left the windows; items that are not too late miss nothing."""
    folder = tmp_path_factory.mktemp("files")
    alone = merged([segment_of(some)], range(len(some) - 1))
    whole = merged([through_files(folder, segment_of(some[:-1])), alone])

    def merge(stage, runs):
        return [stage.merged(runs, still_needed(stage, runs, late))]

    found = found_by(through_files(folder, whole), arrived, merge=merge, folder=folder)
    assert _in_time(found, arrived, late) == _in_time(expected(some, arrived), arrived, late)


def _in_time(found, arrived, late):
    """Results of items that are at most so much older than the newest of the micro-batches before theirs."""
    chosen = set()
    for one in arrived:
        before = [other.document.timestamp for other in arrived if other.arrived < one.arrived]
        if one.document.timestamp >= max(before, default=0.0) - late:
            chosen.add(one.document.id)
    return [row for row in found if row[1] in chosen]


def test_windows_over_the_same_items_are_shared():
    """An item is in one window regardless of the queries that join it. The window is dropped with the last query."""
    window, similar = (Filter(Source("B"), And()),), pair(TITLE, "similar", TITLE, Slot(1, "number"))
    some = [
        (
            Selection(
                (Filter(Source("A"), Atom(TITLE, "contains", Slot(0, "string")), (0,)),),
                joins=(Annotation(SideWindow(Slot(2, "number"), rows), window, "x", similar),),
            ),
            (word, share, length),
        )
        for word in WORDS
        for share in (0.3, 0.9)
        for rows, length in ((False, 2.0), (True, 1.0), (True, 3.0))
    ]
    titles = ["rock live", "Muse live", "rock", "Muse rock live", "live"]
    long = [("AB"[i % 2], f"<item><title>{titles[i % 5]}</title></item>", float(i)) for i in range(30)]
    arrived = arrivals(long, [9, 18])
    held = []

    def merge(stage, runs):
        left = stage.merged(runs, still_needed(stage, runs))
        held.append(np.diff(left.rows.member_starts)[left.rows.of_class(IN_WINDOWS)].tolist())
        return [left]

    found = found_by(segment_of(some), arrived, merge=merge)
    assert found == expected(some, arrived)
    assert found
    assert {count for counts in held for count in counts} == {1}
    segment = segment_of(some)
    for dead in range(len(some)):
        left = [row for row in found if row[0] >= dead]
        assert found_by(segment, arrived) == left
        assert len(np.unique(np.concatenate([table.collected[0] for table in annotations_in(segment)]))) == 1
        segment = merged([segment], [dead])
    assert not segment.groups


def test_items_outside_all_windows_are_dropped():
    """A window of seconds and one of items, each over a long run: the retained state does not grow."""
    equal = pair(TITLE, "=", TITLE)
    joins = (
        Annotation(SideWindow(Slot(0, "number")), (Filter(Source("B"), And()),), "x", equal),
        Annotation(SideWindow(Slot(1, "number"), rows=True), (Filter(Source("C"), And()),), "x", equal),
    )
    query = Selection((Filter(Source("A"), And(), (0, 1)),), joins=joins), (10_000.0, 4.0)
    long = [(SOURCES[i % 3], "<item><title>x</title></item>", 1000.0 * i) for i in range(300)]
    arrived = arrivals(long, range(0, 300, 9))
    sizes = []

    def merge(stage, runs):
        left = stage.merged(runs, still_needed(stage, runs))
        sizes.append(len(left))
        return [left]

    assert found_by(segment_of([query]), arrived, merge=merge) == expected([query], arrived)
    assert max(sizes) <= 4 + 4


def test_a_title_without_words_is_contained_in_none():
    contains = pair(TITLE, "contains", TITLE)
    joins = (Annotation(SideWindow(Slot(0, "number")), (Filter(Source("B"), And()),), "x", contains),)
    query = Selection((Filter(Source("A"), And(), (0,)),), joins=joins), (9.0,)
    titles = [("B", "", 0.0), ("B", "...", 0.0), ("B", "rock", 0.0), ("A", "a rock concert", 1.0), ("A", "", 1.0)]
    arrived = arrivals([(source, f"<item><title>{title}</title></item>", at) for source, title, at in titles], [5])
    found = found_by(segment_of([query]), arrived)
    assert found == expected([query], arrived)
    assert len(found) == 1


def test_items_wait_for_the_streams_of_their_own_queries():
    """A slow stream delays only the windows of its own queries."""
    equal = pair(TITLE, "=", TITLE)

    def joined(item, window, length, rows=False):
        join = Annotation(SideWindow(Slot(0, "number"), rows), (Filter(Source(window), And()),), "x", equal)
        return Selection((Filter(Source(item), And(), (0,)),), joins=(join,)), (length,)

    some = [joined("A", "B", 10.0), joined("C", "A", 10.0), joined("A", "A", 2.0, rows=True)]
    titles = [(SOURCES[i % 2], "<item><title>x</title></item>", float(i)) for i in range(100)]
    kept = {}

    def merge(stage, runs):
        sources = {i: (Source(name),) for i, name in enumerate(SOURCES)}
        for slow in (0.0, 40.0, 100.0):
            needed = stage.needed(runs, Watermarks(sources, {0: 100.0, 1: 100.0, 2: slow}))
            left = stage.merged(runs, needed)
            kept[slow] = [sorted(left.times[left.streams == stream].tolist()) for stream in (0, 1)]
            assert needed.used == {0: 100.0, 2: slow}, "nothing waits for B"
        return runs

    found_by(segment_of(some), arrivals(titles, []), merge=merge)
    newest = [96.0, 98.0]
    assert kept[0.0] == [[float(i) for i in range(0, 100, 2)], [91.0, 93.0, 95.0, 97.0, 99.0]]
    assert kept[40.0][0] == [float(i) for i in range(30, 100, 2)]
    assert kept[100.0] == [[90.0, 92.0, 94.0, *newest], [91.0, 93.0, 95.0, 97.0, 99.0]]

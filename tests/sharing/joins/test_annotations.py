"""Annotation joins equal the oracle: windows by time and count, late items, equal times, unions, all comparisons."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fishweir.algebra.feeds import Annotation, FeedWindow, Filter, JoinCondition, Selection
from fishweir.algebra.formula import And, Atom, Not, Or
from fishweir.algebra.nodes import Slot, Source, Step
from fishweir.sharing.joins.annotation_tables import merge_annotations
from tests.sharing.joins.annotation_support import SOURCES, arrivals, expected, found_by, table_of, through_files

TITLE, LINK, ITEM = (Step("title"),), (Step("link"),), ()
WORDS = ["rock", "Muse", "live", "jazz"]
LINKS = ["http://a.org/x", "http://www.a.org/x/y", "see https://b.a.org/ and http://a.org/x?q=1", "a.org", "a.org/x", "3"]
texts = st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join)


@st.composite
def items(draw, size=9):
    found = []
    for _ in range(draw(st.integers(1, size))):
        titles = "".join(f"<title>{draw(texts)}</title>" for _ in range(draw(st.sampled_from([1, 1, 1, 0, 2]))))
        link = f"<link>{draw(st.sampled_from(LINKS)).replace('&', '&amp;')}</link>" if draw(st.booleans()) else ""
        price = f"<price>{draw(st.integers(1, 3))}</price>" if draw(st.booleans()) else ""
        time = draw(st.sampled_from([0.0, 1.0, 1.0, 2.0, 3.0, 5.0]))
        found.append((draw(st.sampled_from(SOURCES)), f"<item>{titles}{link}{price}</item>", time))
    cuts = sorted(draw(st.sets(st.integers(1, len(found)), max_size=3)))
    return arrivals(found, cuts)


class _Query:
    """Constants in the order their slots are drawn."""

    def __init__(self, draw):
        self.draw, self.constants = draw, []

    def slot(self, value):
        self.constants.append(value)
        return Slot(len(self.constants) - 1, "number" if isinstance(value, float) else "string")

    def formula(self):
        kind = self.draw(st.sampled_from(["all", "all", "word", "not", "or"]))
        if kind == "all":
            return And()
        atom = Atom(self.draw(st.sampled_from([TITLE, ITEM])), "contains", self.slot(self.draw(st.sampled_from(WORDS))))
        if kind == "or":
            return Or((atom, Atom(LINK, "exists")))
        return Not(atom) if kind == "not" else atom

    def filters(self, joins=()):
        """Feeds of a union, some of them the same source."""
        names = self.draw(st.lists(st.sampled_from(SOURCES), min_size=1, max_size=3))
        under = st.lists(st.sampled_from(joins), unique=True).map(sorted).map(tuple) if joins else st.just(())
        return tuple(Filter(Source(name), self.formula(), self.draw(under)) for name in names)

    def condition(self):
        op = self.draw(st.sampled_from([
            "=", "=", "similar", "similar", "similar", "!=", "<", "<=", ">", ">=", "contains", "references", "extends",
            "shares-link",
        ]))  # fmt: skip
        if op == "similar":
            share = self.draw(st.sampled_from([None, 0.0, 0.3, 2 / 3, 1.0, 1.5]))
            paths = self.draw(st.sampled_from([(TITLE, TITLE), (ITEM, TITLE), (TITLE, ITEM)]))
            return JoinCondition(paths[0], op, paths[1], None if share is None else self.slot(share))
        if op in ("<", "<=", ">", ">="):
            return JoinCondition((Step("price"),), op, (Step("price"),))
        if op in ("references", "extends", "shares-link"):
            return JoinCondition(self.draw(st.sampled_from([LINK, ITEM])), op, LINK)
        path = self.draw(st.sampled_from([TITLE, LINK, (Step("price"),)]))
        return JoinCondition(path, op, path)

    def join(self):
        window = self.draw(st.sampled_from([
            FeedWindow(1.0, None), FeedWindow(2.0, None), FeedWindow(100.0, None), FeedWindow(None, 1),
            FeedWindow(None, 2), FeedWindow(None, 50),
        ]))  # fmt: skip
        conditions = tuple(self.condition() for _ in range(self.draw(st.sampled_from([1, 1, 2]))))
        return Annotation(window, self.filters(), "x", conditions)


@st.composite
def queries(draw):
    query = _Query(draw)
    joins = tuple(query.join() for _ in range(draw(st.sampled_from([1, 1, 2]))))
    filters = query.filters(range(len(joins)))
    return Selection(filters, None, (), "roses", joins), tuple(query.constants)


@settings(max_examples=250, deadline=None)
@given(st.lists(queries(), min_size=1, max_size=5), items(), st.sampled_from([1, 3]))
def test_equal_to_the_oracle(some, arrived, parts):
    assert found_by([table_of(some)], arrived, parts) == expected(some, arrived)


@settings(max_examples=60, deadline=None)
@given(st.lists(queries(), min_size=2, max_size=5), items(), st.booleans())
def test_merged_tables_runs_and_files(tmp_path_factory, some, arrived, expire):
    """Runs merged after each micro-batch; what left a window is left out, and nobody in order misses it."""
    folder = tmp_path_factory.mktemp("files")
    if expire:
        in_order = sorted(arrived, key=lambda one: (one.document.timestamp, one.stream, one.number))
        batches = sorted(one.batch for one in arrived)
        arrived = [
            type(one)(one.source, one.stream, i, batch, one.document)
            for i, (one, batch) in enumerate(zip(in_order, batches, strict=True), 1)
        ]
    first, last = table_of(some[:-1]), table_of(some)
    dead = np.arange(len(some) - 1)
    alone = merge_annotations([last], dead, {})
    merged = merge_annotations([through_files(folder, first), through_files(folder, alone)], np.empty(0, np.int64), {})

    def merge(stage, runs):
        newest = max(run.newest for run in runs)
        return [stage.merged(runs, newest if expire else None)]

    found = found_by([through_files(folder, merged)], arrived, merge=merge, folder=folder)
    names = {f"{one.source.name}-{one.number}": one.document.id for one in arrived}
    named = [
        (n, names[i], tuple((j, tuple(names[s] for s in some)) for j, some in a)) for n, i, a in found
    ]
    assert sorted(named) == expected(some, arrived)


def test_what_no_window_holds_is_left_out():
    """A window of seconds and one of items, each over a long run: what is retained does not grow."""
    last = (Annotation(FeedWindow(10.0, None), (Filter(Source("B"), And()),), "x", (JoinCondition(TITLE, "=", TITLE),)),
            Annotation(FeedWindow(None, 4), (Filter(Source("C"), And()),), "x", (JoinCondition(TITLE, "=", TITLE),)))  # fmt: skip
    query = Selection((Filter(Source("A"), And(), (0, 1)),), None, (), "roses", last), ()
    long = [(SOURCES[i % 3], "<item><title>x</title></item>", float(i)) for i in range(300)]
    arrived = arrivals(long, range(0, 300, 10))
    sizes = []

    def merge(stage, runs):
        merged = stage.merged(runs, max(run.newest for run in runs))
        sizes.append(len(merged))
        return [merged]

    assert found_by([table_of([query])], arrived, merge=merge) == expected([query], arrived)
    assert max(sizes) <= 4 + 4

"""Joins by order, bands, `!=` or no comparison at all, with selections on both sides, equal the oracle."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given

from fishweir.evaluate.join.edges import EARLIER, LATER
from fishweir.evaluate.join.rows import probing, row_views, stretches
from fishweir.evaluate.join.rows.row_joins import row_joins
from fishweir.languages.script import parse_script
from tests import strategies as st
from tests.evaluate.join.runs_support import expected, joined, parsed, tables_of, what_is_needed

CELLS = ("0", "1", "1.0", "2", "2.5", "-1", "x", None)
"""Numbers, equal ones in two spellings, a word and NULL."""
BETWEEN = [
    "l.a < r.a", "l.a <= r.b", "l.b > r.a", "l.a >= r.a", "l.a != r.a",
    "r.a < l.b and l.b < r.b", "l.a < r.a and l.b > r.b and l.a != r.b",
    "l.a = r.a and l.b < r.b", "l.b = r.b and l.a != r.a", "l.b = r.b",
]  # fmt: skip
SELECTED = ["{0}.a > {1}", "{0}.a <= {1}", "{0}.b = '{1}'", "{0}.a > {1} and {0}.b < {1}", "{0}.b is not null"]
WINDOWS = ["range 0", "range 2", "range 5", "range unbounded", "rows 1", "rows 3", "rows 100"]


@st.composite
def queries(draw: st.DrawFn, windows=tuple(WINDOWS)):
    sources = draw(st.sampled_from([("R", "S"), ("S", "R"), ("R", "R")]))
    between = draw(st.sampled_from(["", *BETWEEN]))
    text = " , ".join(f"{s} [{draw(st.sampled_from(windows))}] as {n}" for s, n in zip(sources, "lr", strict=True))
    own = [
        draw(st.sampled_from(SELECTED)).format(side, draw(st.sampled_from([0, 1, 2])))
        for side in "lr"
        if draw(st.booleans()) or (not between and side == "l")
    ]
    (statement,) = parse_script(f"select * from {text} where {' and '.join(filter(None, [between, *own]))}")
    return statement.shape, statement.constants


def tuples(draw: random.Random, size: int, late: float = 0.0) -> list[tuple[str, str, float]]:
    """Times mostly ascend, with many equal ones."""
    found, clock = [], 0.0
    for _ in range(size):
        clock += draw.choice([0.0, 0.0, 1.0, 3.0])
        time = max(0.0, clock - (draw.choice([1.0, 2.0, 6.0]) if draw.random() < late else 0.0))
        cells = [f"<{c}>{v}</{c}>" for c in "ab" for v in [draw.choice(CELLS)] if v is not None]
        found.append((draw.choice("RS"), f"<t>{''.join(cells)}</t>", time))
    return found


def by_arrival(some, batches):
    """The pairs of each batch, by the oracle over all documents so far: windows of rows count the documents that have
    arrived."""
    found, known = [], []
    for batch in batches:
        known += batch
        new = {document.id for _, document in batch}
        found += [row for row in expected(some, known) if row[1] in new or row[2] in new]
    return sorted(found)


def cut(docs, places):
    ends = [0, *sorted(places), len(docs)]
    return [docs[a:b] for a, b in pairwise(ends) if a < b]


@st.examples(60)
@given(
    st.lists(queries(), min_size=1, max_size=6),
    st.integers(0, 1 << 30),
    st.sets(st.integers(1, 13), max_size=4),
    st.sampled_from([1, 3]),
    st.sampled_from([0, 64, 1 << 40]),
)
def test_late_tuples_and_several_runs(some, seed, places, parts, dense):
    """`dense` has sets of queries always as bitmaps, by their size, or always as lists."""
    docs = parsed(tuples(random.Random(seed), 14, late=0.3))
    batches = cut(docs, places)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_views, "QUERIES_A_LISTED", (1 << 40) - dense if dense != 64 else 64)
        assert joined(some, batches, parts) == by_arrival(some, batches)


@st.examples(40)
@given(st.lists(queries(), min_size=2, max_size=5), st.integers(0, 1 << 30))
def test_merged_runs_and_separate_segments(some, seed):
    """Each query in a separate segment; runs are merged repeatedly, without documents outside all windows."""
    docs = parsed(sorted(tuples(random.Random(seed), 14), key=lambda row: row[2]))
    batches, at = [], 0
    while at < len(docs):
        end = at + 3
        while end < len(docs) and docs[end][1].timestamp == docs[end - 1][1].timestamp:
            end += 1
        batches.append(docs[at:end])
        at = end

    def merge(stage, runs):
        return [stage.merged(runs, what_is_needed(stage, runs))]

    assert joined(some, batches, merge=merge, apart=True) == expected(some, docs)


def many(between: str, window: str, count: int, seed: int):
    """Queries of several shapes with one join signature, each with its own selections and windows."""
    draw = random.Random(seed)
    texts = []
    for _ in range(count):
        own = []
        for side in "lr":
            low, high = sorted(draw.sample(range(40), 2))
            own += draw.choice(
                [
                    [f"{side}.a > {low}"],
                    [f"{side}.a <= {high}"],
                    [f"{side}.a >= {low} and {side}.a < {high} and {side}.b != 'u{low}'"],
                ]
            )
        windows = [window.format(draw.randrange(1, 25)) for _ in "lr"]
        sides = f"R [{windows[0]}] as l, S [{windows[1]}] as r"
        texts.append(f"select * from {sides} where {' and '.join(filter(None, [between, *own]))};")
    return [(s.shape, s.constants) for s in parse_script("".join(texts))]


@pytest.mark.parametrize(("window", "dense"), [("range {}", False), ("rows {}", True)])
@pytest.mark.parametrize("between", ["", "l.a < r.a", "l.b != r.b", "l.b = r.b", "r.a <= l.a and l.a <= r.c"])
def test_many_queries_of_one_signature(between, window, dense, monkeypatch):
    """More queries than a word has bits; late documents are joined by windows of the other order."""
    monkeypatch.setattr(row_views, "QUERIES_A_LISTED", 1 << 40 if dense else 0)
    monkeypatch.setattr(probing, "MEMBERS_AT_ONCE", 20)
    some = many(between, window, 70, 5)
    assert len(row_joins(tables_of(some))) == 1
    draw = random.Random(7)
    rows = []
    for i in range(24):
        a, late = draw.randrange(40), draw.choice([0, 0, 0, 7])
        cells = f"<a>{a}</a><b>u{draw.randrange(6)}</b><c>{a + draw.randrange(9)}</c>"
        rows.append((draw.choice("RS"), f"<t>{cells}</t>", float(max(0, i - late))))
    batches = cut(parsed(rows), [9, 20])
    found = joined(some, batches, parts=2)
    assert found == by_arrival(some, batches)
    assert len(found) > 50


def test_the_window_is_an_axis():
    """Queries are in the order of their windows, for either order in time."""
    (join,) = row_joins(tables_of(many("l.a < r.a", "range {}", 40, 3)))
    for kind in (LATER, EARLIER):
        places = join.places(kind)
        assert (places.reaches[kind][1:] <= places.reaches[kind][:-1]).all()
        assert places.of(places.numbers).tolist() == list(range(40))
        assert places.of(places.numbers + 1_000).tolist() == [-1] * 40
    assert not join.even


@pytest.mark.parametrize(
    ("where", "window", "most"),
    [
        ("l.a < r.a and l.a > 0 and r.a > 0", "range unbounded", 60),
        ("l.a > r.a and l.a >= r.c and l.a > 0 and r.a > 0", "range unbounded", 2_000),
        ("l.a != r.a and l.a > 0 and r.a > 0", "range 4", 110),
        ("l.a != r.a and l.a > 0 and r.a > 0", "rows 3", 110),
        ("l.b = r.b and l.a > 0 and r.a > 0", "range 4", 110),
    ],
)
def test_few_rows_are_examined(where, window, most, monkeypatch):
    """Of 20 new rows and 100 retained: those that the least edge leaves, or that a window reaches."""
    seen, fewest = [], stretches.fewest

    def counted(probe):
        found = fewest(probe)
        seen.append(found[1].total)
        return found

    monkeypatch.setattr("fishweir.evaluate.join.rows.partners.fewest", counted)
    (statement,) = parse_script(f"select * from R [{window}] as l, S [{window}] as r where {where}")
    left = [("R", f"<t><a>{1_000 + i}</a><b>u</b></t>", float(i)) for i in range(100)]
    right = [("S", f"<t><a>{990 + i}</a><b>u</b><c>1099</c></t>", 100.0 + i / 20) for i in range(20)]
    some, docs = [(statement.shape, statement.constants)], parsed([*left, *right])
    assert joined(some, [docs[:100], docs[100:]]) == expected(some, docs)
    assert 0 < sum(seen) <= most

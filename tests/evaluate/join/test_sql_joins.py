"""Joins by SQL equal the oracle: windows of seconds and of rows, conditions on either side and between, or, NULL."""

from __future__ import annotations

import pytest
from hypothesis import given

from fishweir.languages.script import parse_script
from tests import strategies as st
from tests.evaluate.join.runs_support import expected, joined, parsed, what_is_needed

COLUMNS = ("a", "b", "c")
values = st.none() | st.sampled_from(["0", "1", "2", "2.5", "x"])
windows = st.sampled_from(["range 0", "range 2", "range 5 seconds", "range unbounded", "rows 1", "rows 2", "rows 3"])
operators = st.sampled_from(["=", "=", "<", "<=", ">", ">=", "!="])
columns = st.sampled_from(COLUMNS)


@st.composite
def conditions(draw: st.DrawFn, depth: int = 2) -> str:
    if depth and draw(st.booleans()):
        parts = draw(st.lists(conditions(depth - 1), min_size=1, max_size=3))
        joined_ = draw(st.sampled_from([" and ", " and ", " or "])).join(f"({part})" for part in parts)
        return draw(st.sampled_from(["", "not "])) + f"({joined_})"
    one, two = draw(st.sampled_from([("l", "r"), ("r", "l")]))
    kind = draw(st.sampled_from(["between", "between", "between", "constant", "range", "null", "in", "own", "like"]))
    left = f"{one}.{draw(columns)}"
    match kind:
        case "between":
            return f"{left} {draw(operators)} {two}.{draw(columns)}"
        case "constant":
            return f"{left} {draw(operators)} {draw(st.sampled_from(['1', '2', repr('x')]))}"
        case "range":
            return f"0 < {left} <= {draw(st.sampled_from(['1', '2']))}"
        case "null":
            return f"{left} is {draw(st.sampled_from(['', 'not ']))}null"
        case "in":
            return f"{left} in (1, 2)"
        case "own":
            return f"{left} {draw(operators)} {one}.{draw(columns)}"
    return f"{left} like '2%'"


@st.composite
def queries(draw: st.DrawFn):
    sources = draw(st.sampled_from([("R", "S"), ("S", "R"), ("R", "R")]))
    text = " , ".join(f"{s} [{draw(windows)}] as {n}" for s, n in zip(sources, "lr", strict=True))
    (statement,) = parse_script(f"select * from {text} where {draw(conditions())}")
    return statement.shape, statement.constants


@st.composite
def streams(draw: st.DrawFn, size: int = 9):
    """Tuples in the order of their times, and where they are cut into batches."""
    times = sorted(draw(st.lists(st.sampled_from([0.0, 1.0, 2.0, 3.0, 5.0, 8.0]), min_size=2, max_size=size)))
    rows = []
    for time in times:
        cells = [f"<{c}>{v}</{c}>" for c in COLUMNS for v in [draw(values)] if v is not None]
        rows.append((draw(st.sampled_from("RS")), f"<t>{''.join(cells)}</t>", time))
    return rows, sorted(draw(st.sets(st.integers(1, len(rows)), max_size=3)))


def batches_of(docs, cuts):
    """Cuts only where the time changes: a window of rows cannot count documents of later batches."""
    found, before = [], 0
    for cut in [*cuts, len(docs)]:
        while cut < len(docs) and docs[cut][1].timestamp == docs[cut - 1][1].timestamp:
            cut += 1
        if cut > before:
            found.append(docs[before:cut])
            before = cut
    return found


@st.examples(80)
@given(st.lists(queries(), min_size=1, max_size=5), streams(), st.sampled_from([1, 3]), st.booleans())
def test_runs_equal_oracle(some, stream, parts, above):
    docs = parsed(stream[0])
    assert joined(some, batches_of(docs, stream[1]), parts, above=above) == expected(some, docs)


@st.examples(40)
@given(st.lists(queries(), min_size=1, max_size=4), streams(12))
def test_dropped_state_is_not_needed(some, stream):
    docs = parsed(stream[0])

    def merge(stage, runs):
        needed = what_is_needed(stage, runs)
        return [stage.merged(runs, needed)]

    assert joined(some, batches_of(docs, stream[1]), merge=merge) == expected(some, docs)


def test_rows_bound_the_state():
    (statement,) = parse_script("select * from R [rows 2] as l, R [rows 3] as r where l.a = r.a")
    docs = parsed([("R", "<t><a>1</a></t>", float(i)) for i in range(50)])
    sizes = []

    def merge(stage, runs):
        merged = stage.merged(runs, what_is_needed(stage, runs))
        sizes.append(len(merged))
        return [merged]

    some = [(statement.shape, statement.constants)]
    assert joined(some, [docs[i : i + 5] for i in range(0, 50, 5)], merge=merge) == expected(some, docs)
    assert max(sizes) == 3


@st.examples(40)
@given(st.lists(queries(), min_size=1, max_size=4), streams(10), st.booleans())
def test_superseded_rows_join_no_later_documents(some, stream, merged):
    """R is a file that changes in place, `a` the key of its rows."""
    docs = parsed(stream[0])

    def keyed(document):
        return document.root.findtext("a") or ""

    def merge(stage, runs):
        return [stage.merged(runs)] if merged else runs

    order = {document.id: i for i, (_, document) in enumerate(docs)}
    versions = [(keyed(document), order[document.id]) for source, document in docs if source == "R"]

    def in_force(one, other):
        if one[0] != "R":
            return True
        key = keyed(docs[order[one]][1])
        after = [at for k, at in versions if k == key and at > order[one]]
        return not after or order[other] < min(after)

    wanted = [row for row in expected(some, docs) if in_force(row[1], row[2]) and in_force(row[2], row[1])]
    assert joined(some, batches_of(docs, stream[1]), merge=merge, keyed=keyed) == wanted


@pytest.mark.parametrize("above", [False, True])
@pytest.mark.parametrize(
    "where",
    [
        "l.b = r.b and (l.a = 1 and r.a = 1 or l.a = 2 and r.a = 2)",
        "l.b = r.b and (l.a > 1 and r.a > 1 or l.a > 0 and r.a > 2)",
        "l.b = r.b and l.a != 1",
        "l.b = r.b and l.b = 'y' and l.a != 1 and r.a != 2",
        "l.a < 2 and r.a >= 2 and r.b != 'z'",
    ],
)
def test_conditions_on_both_sides(where, above):
    """All pairs of some values, including words that are not numbers and NULL."""
    cells = [(a, b) for a in ("0", "1", "2", "2.5", "x", None) for b in ("y", "z")]
    texts = [f"<t>{f'<a>{a}</a>' if a else ''}<b>{b}</b></t>" for a, b in cells]
    docs = parsed([(source, text, float(i)) for i, text in enumerate(texts) for source in "RS"])
    (statement,) = parse_script(f"select * from R [range unbounded] as l, S [range unbounded] as r where {where}")
    some = [(statement.shape, statement.constants)]
    found = joined(some, [docs[:7], docs[7:]], above=above)
    assert found == expected(some, docs)
    assert found

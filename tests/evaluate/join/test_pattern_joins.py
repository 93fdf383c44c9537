"""Joins of three and more tree patterns equal the oracle: bindings, windows, sequences, late documents."""

from __future__ import annotations

from itertools import count, pairwise

from hypothesis import given

from fishweir.algebra.nodes import OPERATORS, Block, Comparison, Shape, SideWindow, Slot, Source, VariableOutput
from tests import strategies as st
from tests.evaluate.join.many_support import Home, expected, query_of
from tests.evaluate.join.runs_support import expected as expected_pairs
from tests.evaluate.join.runs_support import joined, parsed
from tests.evaluate.join.support import VALUES, numbered, patterns, trees

TIMES = [0.0, 1.0, 1.5, 2.0, 3.0]


@st.composite
def queries(draw: st.DrawFn):
    """Three patterns or four, each joined with one before it, mostly; some with constants, some without windows."""
    sides, names = [], []
    for name in "klmn"[: draw(st.sampled_from([3, 3, 3, 4]))]:
        sides.append(numbered(draw(patterns()), name, count()))
        names.append([node.variables[0] for node in sides[-1].walk()])
    ops = st.sampled_from(["=", "=", "=", "=", "!=", "<", ">="])
    conditions = []
    for side in range(1, len(sides)):
        for _ in range(draw(st.sampled_from([0, 1, 1, 1, 2]))):
            ends = draw(st.sampled_from(names[draw(st.integers(0, side - 1))])), draw(st.sampled_from(names[side]))
            conditions.append(Comparison(ends[0], draw(ops), ends[1]))
    slots, constants = [], []
    windows = []
    for _ in sides:
        rows = draw(st.integers(0, 4)) == 0
        if not rows and draw(st.integers(0, 3)) == 0:
            windows.append(SideWindow())
            continue
        slots.append(Slot(len(slots), "number"))
        constants.append(draw(st.sampled_from([1.0, 2.0, 3.0] if rows else [1.0, 1.5, 2.0, float("inf")])))
        windows.append(SideWindow(slots[-1], rows))
    if draw(st.booleans()):
        slots.append(Slot(len(slots), draw(st.sampled_from(["string", "number"]))))
        own = draw(st.sampled_from(draw(st.sampled_from(names))))
        conditions.append(Comparison(own, draw(st.sampled_from(OPERATORS)), slots[-1]))
        constants.append(draw(st.sampled_from([1.0, 2.0] if slots[-1].type == "number" else VALUES)))
    blocks = tuple(Block(Source(draw(st.sampled_from("RS"))), side) for side in sides)
    output = tuple(VariableOutput(draw(st.sampled_from(own))) for own in names if draw(st.booleans()))
    shape = Shape(blocks, tuple(conditions), output, tuple(slots), tuple(windows), draw(st.booleans()))
    return shape, tuple(constants)


@st.composite
def streams(draw: st.DrawFn):
    """Documents in any order of their times, cut into batches."""
    rows = draw(st.lists(st.tuples(st.sampled_from("RS"), trees(3), st.sampled_from(TIMES)), min_size=3, max_size=5))
    cuts = sorted(draw(st.sets(st.integers(1, len(rows) - 1), max_size=2)))
    documents = parsed(rows)
    return [documents[a:b] for a, b in pairwise([0, *cuts, len(rows)])]


@st.examples(40)
@given(st.lists(queries(), min_size=1, max_size=3), streams(), st.sampled_from([1, 3]), st.booleans(), st.booleans())
def test_patterns_equal_oracle(some, batches, parts, apart, merged):
    merge = (lambda stage, runs: [stage.merged(runs)]) if merged else None
    home = Home(some, apart=apart, merge=merge)
    for batch in batches:
        home.take(batch, parts=parts)
    assert home.results() == expected(some, batches)


@st.composite
def sequences(draw: st.DrawFn):
    """Two patterns without a comparison between them; each side may be part of the output or not."""
    sides = [numbered(draw(patterns()), name, count()) for name in "kl"]
    names = [[node.variables[0] for node in side.walk()] for side in sides]
    slot, strict = Slot(0, "number"), draw(st.booleans())
    windows = SideWindow(slot), SideWindow() if strict else SideWindow(slot)
    output = tuple(VariableOutput(draw(st.sampled_from(own))) for own in names if draw(st.booleans()))
    slots, conditions, constants = [slot], [], [draw(st.sampled_from([1.0, 1.5, float("inf")]))]
    if draw(st.booleans()):
        slots.append(Slot(1, "string"))
        conditions.append(Comparison(draw(st.sampled_from(names[draw(st.integers(0, 1))])), "=", slots[1]))
        constants.append(draw(st.sampled_from(VALUES)))
    blocks = tuple(Block(Source(draw(st.sampled_from("RS"))), side) for side in sides)
    return Shape(blocks, tuple(conditions), output, tuple(slots), windows, strict), tuple(constants)


@st.examples(40)
@given(st.lists(sequences(), min_size=1, max_size=3), streams(), st.booleans())
def test_pure_sequences_equal_oracle(some, batches, apart):
    documents = [document for batch in batches for document in batch]
    assert joined(some, batches, apart=apart) == expected_pairs(some, documents)


def of_three(constant):
    return query_of(f"""create q where <a><k>$x</><v>$v</></> in "R", <b><k>$x</><w>$w</></> in "S",
        <c><w>$w</><t>$t</></> in "T", $t > {constant} construct <r>$v</>""")


DOCUMENTS = [
    ("R", "<a><k>1</k><v>p</v><v>q</v></a>", 0.0),
    ("S", "<b><k>1</k><w>8</w><w>9</w></b>", 1.0),
    ("T", "<c><w>9</w><t>3</t><t>7</t></c>", 2.0),
]


def test_constants_and_rows_of_several_segments():
    """Each query in a separate segment, then all in one: a binding is one result, whichever node satisfies a
    constant."""
    some = [of_three(constant) for constant in (1, 5, 8)]
    for apart in (True, False):
        home, docs = Home(some, apart=apart), parsed(DOCUMENTS)
        home.take(docs[:2])
        home.merge_tables()
        home.take(docs[2:])
        found = expected(some, [docs])
        assert home.results() == found
        assert sorted(row[0] for row in found) == [0, 0, 1, 1]

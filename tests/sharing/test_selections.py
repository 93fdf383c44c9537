"""Selections by formula, over documents and over tuples, fire exactly where the oracle says."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from fishweir.algebra.clauses import constants_of, to_normals
from fishweir.algebra.documents import Document, item_text, parse_document, tuple_to_document
from fishweir.algebra.feeds import Filter, Selection
from fishweir.algebra.formula import And, Atom, Not, Or
from fishweir.algebra.nodes import Slot, Source, Step
from fishweir.algebra.normal import ANY_ROOT
from fishweir.algebra.oracle import selects
from fishweir.errors import QueryError
from fishweir.sharing.plan import plan_of
from fishweir.sharing.segments import Segment, build_tables
from fishweir.sharing.witnesses import Extraction, tuple_tables

SOURCE = Source("S")
TEXTS = ["", "rock", "Rock concert", "a rock, a concert", "2", "2.5", "10", "see http://a.org/x", "http://b.a.org",
         "2025-03-04T05:00:00Z", "2024-12-31", "x"]  # fmt: skip
WORDS = ["rock", "concert", "Rock concert", "x", "2"]
LINKS = ["a.org", "http://a.org/x", "http://a.org"]
LIKES = ["%rock%", "r_ck", "%", "x"]
NAMES = ["a", "b", "@k"]


@st.composite
def selections(draw, names=NAMES, language="roses"):
    slots, constants = [], []

    def slot(kind, value):
        slots.append(Slot(len(slots), kind))
        constants.append(value)
        return slots[-1]

    def atom(choice):
        name, kind = choice
        path = () if name == "" else (Step(name.lstrip("@"), "attribute" if name[0] == "@" else "child"),)
        match kind:
            case "contains":
                return Atom(path, kind, slot("string", draw(st.sampled_from(WORDS))))
            case "similar":
                least = slot("number", draw(st.sampled_from([0.3, 1.0]))) if draw(st.booleans()) else None
                return Atom(path, kind, slot("string", draw(st.sampled_from(TEXTS))), threshold=least)
            case "like":
                return Atom(path, kind, slot("string", draw(st.sampled_from(LIKES))))
            case "references" | "extends" | "shares-link":
                return Atom(path, kind, slot("string", draw(st.sampled_from(LINKS))))
            case "exists":
                return Atom(path, kind)
            case "year" | "month" | "time":
                value = draw(st.sampled_from([2025.0, 12.0, 1735603200.0]))
                return Atom(path, draw(st.sampled_from(["=", "<", ">="])), slot("number", value), kind)
        text = kind == "text"
        value = draw(st.sampled_from(TEXTS if text else [2.0, 2.5, 10.0, 0.0]))
        op = draw(st.sampled_from(["=", "!=", "<", "<=", ">", ">="]))
        return Atom(path, op, slot("string" if text else "number", value))

    kinds = ["contains", "similar", "like", "references", "extends", "shares-link", "exists", "year", "month", "time",
             "text", "number", "number"]  # fmt: skip
    atoms = st.tuples(st.sampled_from([*names, ""]), st.sampled_from(kinds)).map(atom)
    formula = draw(
        st.recursive(
            atoms,
            lambda inner: st.one_of(
                st.lists(inner, max_size=3).map(lambda parts: And(tuple(parts))),
                st.lists(inner, max_size=3).map(lambda parts: Or(tuple(parts))),
                inner.map(Not),
            ),
            max_leaves=4,
        )
    )
    return Selection((Filter(SOURCE, formula),), None, tuple(slots), language), tuple(constants)


def fired(queries, witnesses_of):
    """(query, document) by the plan; a query may fire by several of its conjunctions."""
    rows = [
        (number, normal.template, constants_of(normal, constants))
        for number, (selection, constants) in enumerate(queries)
        for normal in to_normals(selection)
    ]
    segment = Segment("1", build_tables(rows, {}))
    plan = plan_of([segment], [SOURCE])
    found = set()
    for _, index, matches in plan.match(witnesses_of(plan)):
        members = segment.tables[index].members
        for row in range(len(matches)):
            spans = matches.slices[matches.slice_offsets[row] : matches.slice_offsets[row + 1]].reshape(-1, 2)
            numbers = [int(n) for lo, hi in spans for n in members[lo:hi]]
            numbers += matches.members[matches.member_offsets[row] : matches.member_offsets[row + 1]].tolist()
            found |= {(n, int(matches.documents[row])) for n in numbers}
    return found


def normalisable(query):
    try:
        to_normals(query[0])
    except QueryError:
        return False
    return True


@st.composite
def items(draw):
    attribute = draw(st.sampled_from(["", f' k="{draw(st.sampled_from(TEXTS))}"']))
    children = draw(st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), st.sampled_from(TEXTS)), max_size=4))
    inner = "".join(f"<{name}>{text}</{name}>" for name, text in children)
    return f"<item{attribute}>{inner}</item>"


@settings(max_examples=150)
@given(st.lists(selections().filter(normalisable), min_size=1, max_size=8), st.lists(items(), min_size=1, max_size=5))
def test_documents(queries, texts):
    docs = [Document(str(i), 0.0, parse_document(text.encode())) for i, text in enumerate(texts)]

    def witnesses(plan):
        extraction = Extraction(plan.trie)
        for i, document in enumerate(docs):
            extraction.add(i, document.root)
        return extraction.tables()

    expected = {
        (n, i)
        for n, (selection, constants) in enumerate(queries)
        for i, document in enumerate(docs)
        if selects(selection, constants, SOURCE, document)
    }
    assert fired(queries, witnesses) == expected


numbers = st.one_of(st.none(), st.sampled_from([0.0, 2.0, 2.5, 10.0]))
strings = st.one_of(st.none(), st.sampled_from(TEXTS))


@settings(max_examples=100)
@given(
    st.lists(selections(["a", "b"], "sql").filter(normalisable), min_size=1, max_size=8),
    st.lists(st.tuples(numbers, strings), min_size=1, max_size=6),
)
def test_tuples(queries, rows):
    columns = {"a": pa.array([a for a, _ in rows], pa.float64()), "b": pa.array([b for _, b in rows], pa.string())}
    docs = [Document(str(i), 0.0, tuple_to_document("S", {"a": a, "b": b})) for i, (a, b) in enumerate(rows)]
    expected = {
        (n, i)
        for n, (selection, constants) in enumerate(queries)
        for i, document in enumerate(docs)
        if selects(selection, constants, SOURCE, document)
    }
    assert fired(queries, lambda plan: tuple_tables("S", columns, plan.paths)) == expected


def test_the_whole_of_a_tuple_has_no_space_for_what_is_not_there():
    rows = [(None, None), (2.0, None), (None, "x"), (2.0, "x"), (None, ""), (2.0, "")]
    columns = {"a": pa.array([a for a, _ in rows], pa.float64()), "b": pa.array([b for _, b in rows], pa.string())}
    found = tuple_tables("S", columns, [(ANY_ROOT,)])[(ANY_ROOT,)].texts.to_pylist()
    assert found == [item_text(tuple_to_document("S", {"a": a, "b": b})) for a, b in rows]
    assert found == ["", "2", "x", "2 x", "", "2"]

"""Selections by formula, over documents and over tuples, agree with the oracle."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given

from fishweir.algebra.clauses import constants_of, to_normals
from fishweir.algebra.documents import Document, parse_document, tuple_to_document
from fishweir.algebra.feeds import Filter, Selection
from fishweir.algebra.formula import And, Atom, Not, Or
from fishweir.algebra.nodes import Slot, Source, Step
from fishweir.algebra.oracle import selects
from fishweir.errors import QueryError
from fishweir.evaluate.plan.plan import plan_of
from fishweir.evaluate.plan.segments import build_groups, planned_segment
from fishweir.evaluate.select.boxes import KERNELS
from fishweir.evaluate.select.strategies import ByRegions
from fishweir.evaluate.witnesses.path_tables import tuple_tables
from fishweir.papers.spatialjoin import regions  # noqa: F401  registers the paper's kernels
from tests import strategies as st

SOURCE = Source("S")
TEXTS = ["", "rock", "Rock concert", "a rock, a concert", "2", "2.5", "10", "see http://a.org/x", "http://b.a.org",
         "2025-03-04T05:00:00Z", "2024-12-31", "x"]  # fmt: skip
WORDS = ["rock", "concert", "Rock concert", "x", "2"]
LINKS = ["a.org", "http://a.org/x", "http://a.org"]
LIKES = ["%rock%", "r_ck", "%", "x", "Rock%", "roc"]
NAMES = ["a", "b", "@k"]


@st.composite
def selections(draw, names=NAMES, columns=False):
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
            case "like" | "ilike" | "substring" | "starts-with":
                return Atom(path, kind, slot("string", draw(st.sampled_from(LIKES))))
            case "references" | "extends" | "shares-link":
                return Atom(path, kind, slot("string", draw(st.sampled_from(LINKS))))
            case "exists":
                return Atom(path, kind)
            case "other":
                other = draw(st.sampled_from(names)).lstrip("@")
                op = draw(st.sampled_from(["=", "!=", "<", ">="]))
                right = (Step(other, "attribute" if other == "k" else "child"),)
                return Atom(path, op, right, draw(st.sampled_from(["value", "text"])))
            case "year" | "month" | "time":
                value = draw(st.sampled_from([2025.0, 12.0, 1735603200.0]))
                return Atom(path, draw(st.sampled_from(["=", "<", ">="])), slot("number", value), kind)
        text = kind == "text"
        value = draw(st.sampled_from(TEXTS if text else [2.0, 2.5, 10.0, 0.0]))
        op = draw(st.sampled_from(["=", "!=", "<", "<=", ">", ">="]))
        return Atom(path, op, slot("string" if text else "number", value))

    kinds = [
        "contains",
        "similar",
        "like",
        "ilike",
        "substring",
        "starts-with",
        "references",
        "extends",
        "shares-link",
        "exists",
        "year",
        "month",
        "time",
        "text",
        "number",
        "number",
        "other",
    ]
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
    return Selection((Filter(SOURCE, formula),), None, tuple(slots), columns), tuple(constants)


def fired(queries, witnesses_of, strategy=None):
    """(query, document) by the plan; a query may fire by several of its conjunctions."""
    rows = [
        (number, normal.template, constants_of(normal, constants))
        for number, (selection, constants) in enumerate(queries)
        for normal in to_normals(selection)
    ]
    tables = build_groups(rows, {})
    segment = planned_segment("1", tables, {}, [ByRegions(kernel=strategy)] if strategy else [])
    plan = plan_of([segment], [SOURCE])
    found = set()
    for _, index, matches in plan.match(witnesses_of(plan)):
        members = segment.groups[index].members
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
def boxes(draw, names):
    """Conjunctions with sides on several attributes and sometimes other conditions, alone or as alternatives."""
    slots, constants = [], []

    def slot(kind, values):
        slots.append(Slot(len(slots), kind))
        constants.append(draw(st.sampled_from(values)))
        return slots[-1]

    def atom():
        path = (Step(draw(st.sampled_from(names))),)
        op = draw(st.sampled_from(["<", "<=", "=", ">=", ">"]))
        others = ["text", "year", "unequal", "other", "words"]
        match draw(st.sampled_from(["number"] * 3 + ["text"] + others)):
            case "text":
                return Atom(path, op, slot("string", TEXTS))
            case "year":
                return Atom(path, op, slot("number", [2024.0, 2025.0]), "year")
            case "unequal":
                return Atom(path, "!=", slot("number", [2.0, 10.0]))
            case "other":
                right = (Step(draw(st.sampled_from(names))),)
                return Atom(
                    path, draw(st.sampled_from(["=", ">", "<="])), right, draw(st.sampled_from(["value", "text"]))
                )
            case "words":
                return Not(Atom(path, "contains", slot("string", WORDS)))
        return Atom(path, op, slot("number", [-1.0, 0.0, 2.0, 2.5, 10.0, float("inf")]))

    def conjunction():
        return And(tuple(atom() for _ in range(draw(st.integers(1, 5)))))

    alternatives = tuple(conjunction() for _ in range(draw(st.sampled_from([1, 1, 2]))))
    return Selection((Filter(SOURCE, Or(alternatives)),), None, tuple(slots), True), tuple(constants)


@st.composite
def items(draw):
    attribute = draw(st.sampled_from(["", f' k="{draw(st.sampled_from(TEXTS))}"']))
    children = draw(st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), st.sampled_from(TEXTS)), max_size=4))
    inner = "".join(f"<{name}>{text}</{name}>" for name, text in children)
    return f"<item{attribute}>{inner}</item>"


documents = st.lists(items(), min_size=1, max_size=5)


@pytest.mark.parametrize("columns", [False, True])
@st.examples(60)
@given(st.data(), documents)
def test_documents(columns, data, texts):
    """Elements occur several times: a feed's condition accepts any of them, a column of SQL is the first."""
    queries = data.draw(st.lists(selections(columns=columns).filter(normalisable), min_size=1, max_size=8))
    agree_on_documents(queries, texts, [None])


@st.examples(60)
@given(
    st.lists(boxes(["a", "b", "c"]), min_size=1, max_size=8),
    documents,
)
def test_boxes_on_documents(queries, texts):
    """A column has one value, the first; test_match covers patterns that bind several times."""
    agree_on_documents(queries, texts, KERNELS)


def agree_on_documents(queries, texts, strategies):
    docs = [Document(str(i), 0.0, parse_document(text.encode())) for i, text in enumerate(texts)]

    def witnesses(plan):
        walk = plan.start()
        for i, document in enumerate(docs):
            walk.add(i, document.root)
        return walk.tables()

    expected = {
        (n, i)
        for n, (selection, constants) in enumerate(queries)
        for i, document in enumerate(docs)
        if selects(selection, constants, SOURCE, document)
    }
    for strategy in strategies:
        assert fired(queries, witnesses, strategy) == expected, strategy


numbers = st.one_of(st.none(), st.sampled_from([0.0, 2.0, 2.5, 10.0]))
strings = st.one_of(st.none(), st.sampled_from(TEXTS))


@st.examples(60)
@given(
    st.lists(selections(["a", "b"], columns=True).filter(normalisable), min_size=1, max_size=8),
    st.lists(st.tuples(numbers, strings), min_size=1, max_size=6),
)
def test_tuples(queries, rows):
    agree_on_tuples(queries, rows, [None])


@st.examples(60)
@given(
    st.lists(boxes(["a", "b", "c"]), min_size=1, max_size=8),
    st.lists(st.tuples(numbers, strings, numbers), min_size=1, max_size=8),
)
def test_boxes_on_tuples(queries, rows):
    for block in (1, 1 << 22):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("fishweir.evaluate.select.region_match.PAIRS", block)
            agree_on_tuples(queries, rows, KERNELS)


def agree_on_tuples(queries, rows, strategies):
    kinds = dict([("a", pa.float64()), ("b", pa.string()), ("c", pa.float64())][: len(rows[0])])
    columns = {name: pa.array([row[i] for row in rows], kind) for i, (name, kind) in enumerate(kinds.items())}
    tuples = [tuple_to_document("S", dict(zip(kinds, row, strict=True))) for row in rows]
    docs = [Document(str(i), 0.0, root) for i, root in enumerate(tuples)]
    expected = {
        (n, i)
        for n, (selection, constants) in enumerate(queries)
        for i, document in enumerate(docs)
        if selects(selection, constants, SOURCE, document)
    }
    for strategy in strategies:
        found = fired(queries, lambda plan: tuple_tables("S", columns, plan.paths), strategy)
        assert found == expected, strategy

"""Witnesses: nodes above a split, attributes, and tuples, which are flat documents."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from hypothesis import given

from fishweir.algebra.documents import Document, parse_document, tuple_to_document
from fishweir.algebra.nodes import OPERATORS, Source, Step
from fishweir.algebra.oracle import evaluate
from fishweir.evaluate.plan.plan import plan_of
from fishweir.evaluate.plan.segments import Segment, build_groups, planned_segment
from fishweir.evaluate.witnesses.path_tables import tuple_tables
from fishweir.evaluate.witnesses.shared_paths import SharedPaths
from tests import strategies as st
from tests.evaluate.support import expanded, plan_rows, queries

SYMBOL = (Step("Quotes"), Step("Quote"), Step("Symbol"))
ID = (Step("Quotes"), Step("Quote"), Step("id", "attribute"))


def extracted(text: str, *paths: tuple[Step, ...], context: tuple[str, ...] = (), valued: bool = True):  # type: ignore[no-untyped-def]
    shared = SharedPaths()
    shared.hold({"1": dict.fromkeys(paths, valued)})
    walk = shared.start()
    walk.add(3, parse_document(text.encode()), context)
    return {
        path: [(n, v) for n, v in zip(table.nodes.tolist(), table.texts.to_pylist(), strict=True)]
        for path, table in walk.tables().items()
    }


def test_chains_of_preorder_ids() -> None:
    quotes = "<Quote><Symbol>A</Symbol><Symbol>B</Symbol></Quote><Quote><z/><Symbol>C</Symbol></Quote>"
    text = f"<Quotes><x><y/></x>{quotes}</Quotes>"
    found = extracted(text, SYMBOL)
    assert found == {SYMBOL: [([0, 3, 4], "A"), ([0, 3, 5], "B"), ([0, 6, 8], "C")]}


def test_chains_of_attributes_repeat_their_element() -> None:
    text = '<Quotes><Quote id="7" x="8"/><Quote xmlns:p="u" p:id="9"/></Quotes>'
    assert extracted(text, ID) == {ID: [([0, 1, 1], "7"), ([0, 2, 2], "9")]}


def test_values_are_read_only_if_needed() -> None:
    text = "<Quotes><Quote><Symbol>A</Symbol></Quote></Quotes>"
    assert extracted(text, SYMBOL, valued=False) == {SYMBOL: [([0, 1, 2], "")]}
    assert extracted(text, SYMBOL[:2], SYMBOL) == {SYMBOL[:2]: [([0, 1], "A")], SYMBOL: [([0, 1, 2], "A")]}


def test_contexts_above_a_split() -> None:
    """Elements above a split have negative ids; their value is that of the document element."""
    quote = "<Quote><Symbol>A</Symbol></Quote>"
    assert extracted(quote, SYMBOL, context=("Quotes",)) == {SYMBOL: [([-1, 0, 1], "A")]}
    assert extracted(quote, SYMBOL, context=("Market", "Quotes")) == {SYMBOL: [([-1, 0, 1], "A")]}
    assert extracted(quote, SYMBOL, context=("Other",)) == {}
    assert extracted(quote, SYMBOL) == {}
    assert extracted(quote, SYMBOL[:1], context=("Quotes",)) == {SYMBOL[:1]: [([-1], "A")]}


def test_a_name_that_repeats_in_the_context_matches_at_each_level() -> None:
    path = (Step("a"), Step("a"))
    assert extracted("<a><a/></a>", path, context=("a", "a")) == {
        path: [([-2, -1], ""), ([-1, 0], ""), ([0, 1], "")],
    }


# Tuples must match in the same way as columns and as flat documents.

TIMES = [datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, 0, 0, 0, 5, tzinfo=UTC)]
KINDS = {
    "i": (pa.int64(), st.sampled_from([0, 1, 2, -1, 10, 2**53 + 1, -(2**63)])),
    "d": (pa.float64(), st.sampled_from([0.0, -0.0, 1.0, 2.5, 1e22, 1e-7, float("inf"), float("nan")])),
    "s": (pa.string(), st.sampled_from(["", "1", "x", "2.50", " 1 ", "é<&", "true"])),
    "b": (pa.bool_(), st.booleans()),
    "t": (pa.timestamp("us", "UTC"), st.sampled_from(TIMES)),
}
CONSTANTS = ["0", "1", "2.5", "10", "9007199254740992", "1e22", "'1'", "'x'", "'true'", "'0'", "'1e+22'", "'inf'",
             "'2026-01-01T00:00:00+00:00'", "'2026'", "''"]  # fmt: skip

rows = st.lists(st.tuples(*(st.none() | value for _, value in KINDS.values())), min_size=1, max_size=6).map(
    lambda drawn: [dict(zip(KINDS, row, strict=True)) for row in drawn]
)


@st.composite
def texts(draw: st.DrawFn) -> str:
    """A query over R with conditions on its columns, or on the whole tuple."""
    names = draw(st.lists(st.sampled_from(list(KINDS)), max_size=3, unique=True))
    inner = "".join(f"<{name}>$v{name}</>" for name in names)
    variables = [f"$v{name}" for name in names] + ["$r"]
    conditions = draw(
        st.lists(
            st.builds(
                "{} {} {}".format,
                st.sampled_from(variables),
                st.sampled_from(OPERATORS),
                st.sampled_from(CONSTANTS + variables),
            ),
            max_size=3,
        )
    )
    where = "".join(f", {condition}" for condition in conditions)
    return f"where <R>{inner}</> element_as $r in 'R'{where} construct {', '.join(variables)}"


def matched(segment: Segment, tables) -> list[tuple[int, int, tuple[int, ...]]]:  # type: ignore[no-untyped-def]
    return sorted(
        one
        for _, index, matches in plan_of([segment], [Source("R")]).match(tables)
        for one in expanded(segment.groups[index], matches)
    )


@st.examples(40)
@given(st.lists(texts(), min_size=1, max_size=5), rows)
def test_columns_match_as_flat_documents_do(given: list[str], tuples: list[dict[str, object]]) -> None:
    created = queries(*given)
    segment = planned_segment("1", build_groups(plan_rows(created), {}), {})
    plan = plan_of([segment], [Source("R")])
    columns = {name: pa.array([row[name] for row in tuples], kind) for name, (kind, _) in KINDS.items()}
    walk, expected = plan.start(), []
    for i, row in enumerate(tuples):
        root = tuple_to_document("R", row)
        walk.add(i, root)
        for number, query in enumerate(created, 1):
            found = evaluate(query.shape, query.constants, Document("d", 0.0, root))
            expected += [(number, i, tuple(int(node.id) for node in b.values())) for b in found]
    assert matched(segment, tuple_tables("R", columns, plan.paths)) == sorted(expected)
    assert matched(segment, walk.tables()) == sorted(expected)


def test_the_whole_tuple_is_the_text_of_its_columns() -> None:
    columns = {"i": pa.array([1, None]), "s": pa.array(["a", "b"]), "d": pa.array([None, 2.0])}
    table = tuple_tables("R", columns, [(Step("R"),)])[(Step("R"),)]
    assert table.texts.to_pylist() == ["1a", "b2"]


@pytest.mark.parametrize("kind", [kind for kind, _ in KINDS.values()])
def test_a_column_of_nulls_has_no_witnesses(kind: pa.DataType) -> None:
    path = (Step("R"), Step("x"))
    table = tuple_tables("R", {"x": pa.array([None, None], kind)}, [path])[path]
    assert (len(table), len(table.hashes), len(table.numbers)) == (0, 0, 0)


def test_infinite_values_are_not_numbers() -> None:
    """Neither are the texts `inf` and `nan`."""
    path = (Step("R"), Step("x"))
    table = tuple_tables("R", {"x": pa.array([float("inf"), float("-inf"), float("nan"), 1.0])}, [path])[path]
    assert [str(number) for number in table.numbers] == ["nan", "nan", "nan", "1.0"]
    assert table.texts.to_pylist() == ["inf", "-inf", "nan", "1"]


def test_unmatched_paths_have_no_witnesses() -> None:
    columns = {"x": pa.array([1])}
    paths = [
        (Step("S"), Step("x")),
        (Step("R"), Step("y")),
        (Step("R"), Step("x", "attribute")),
        (Step("R"), Step("x"), Step("z")),
    ]
    assert tuple_tables("R", columns, paths) == {}


def test_paths_are_released_when_no_segment_uses_them() -> None:
    """Segments that share a path may be removed together, and another segment may have the same id."""
    one, two = ((Step("a"), Step(name)) for name in "bc")
    shared = SharedPaths()
    shared.hold({"1": {one: True}, "2": {one: True, two: False}})
    shared.hold({"1": {two: True}})
    assert set(shared.ids) == {two}
    shared.hold({"1": {one: True}, "2": {one: False}})
    shared.hold({})
    assert (shared.ids, shared.keys) == ({}, {})

"""Grouping: the paper's worked examples, and statistics that override the order of the operators."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from fishweir.evaluate.plan.plan import plan_of
from fishweir.evaluate.plan.segments import build_groups, planned_segment
from fishweir.evaluate.select.constant_tables import Table
from fishweir.evaluate.statistics import PathStatistics, Statistics, count_values, path_key
from fishweir.evaluate.witnesses.path_tables import PathTable
from tests.evaluate.support import SOURCE, evaluated, plan_rows, queries

QUOTES = "http://www.cs.wisc.edu/db/quotes.xml"
INTEL = f"Where <Quotes> <Quote> <Symbol>INTC</> </> </> element_as $g in “{QUOTES}” construct $g"
MICROSOFT, AOL = INTEL.replace("INTC", "MSFT"), INTEL.replace("INTC", "AOL")
RISEN = "Where <Quotes><Quote><Change_Ratio>$c</></> element_as $g </> In “s”, $c > 0.05 Construct $g"
BELOW_100 = """Where <Quotes><Quote><Symbol>”INTC”</><Current_Price>$p</></> element_as $g </>
    in “s”, $p < 100 Construct $g"""
BOTH = "where <r><k>$k</><v>$v</></> in 's', $k = 'a', $v > 10, $v < 20 construct $v"


def tables(*texts: str, statistics: Statistics | None = None) -> tuple[Table, ...]:
    return build_groups(plan_rows(queries(*texts)), statistics or {})


def group(table: Table) -> str:
    return table.anchor.signature(table.template)


def left_over(table: Table) -> list[tuple[str, str]]:
    found = [table.template.constants[i] for i in table.residual]
    return [(str(table.template.nodes[c.node].step), c.op) for c in found]


def counted(texts: list[str]) -> PathStatistics:
    nodes = np.zeros((len(texts), 2), np.int64)
    return count_values(PathTable(np.arange(len(texts)), nodes, pa.array(texts, pa.large_string())))


def statistics_of(**paths: list[str]) -> Statistics:
    return {path_key(SOURCE, f"r.{name}"): counted(texts) for name, texts in paths.items()}


def test_figure_3_1_is_one_group() -> None:
    (table,) = tables(INTEL, MICROSOFT)
    assert group(table) == f"Quotes.Quote.Symbol = constant in {QUOTES}"
    assert (table.size, len(table.anchor_constants), table.residual) == (2, 2, ())


def test_figure_3_6_joins_the_group() -> None:
    (table,) = tables(INTEL, MICROSOFT, AOL)
    assert (table.size, len(table.anchor_constants)) == (3, 3)


def test_equal_constants_share_one_output() -> None:
    (table,) = tables(INTEL, MICROSOFT, INTEL, INTEL.replace("$g", "$again"))
    assert (table.size, len(table.anchor_constants)) == (4, 2)
    document = "<Quotes><Quote><Symbol>INTC</Symbol></Quote></Quotes>"
    segment = planned_segment("1", (table,), {})
    assert evaluated([segment], [document], QUOTES) == [(1, 0, (0,)), (3, 0, (0,)), (4, 0, (0,))]
    plan = plan_of([segment], [table.template.source])
    assert len(plan.plan.segments[0].groups) == 1


def test_figure_3_9_is_grouped_by_the_range() -> None:
    (table,) = tables(RISEN, RISEN.replace("0.05", "0.1"))
    assert group(table) == "Quotes.Quote.Change_Ratio > number in s"
    assert table.size == 2


def test_figure_3_10_is_grouped_by_the_symbol() -> None:
    (table,) = tables(BELOW_100)
    assert group(table) == "Quotes.Quote.Symbol = constant in s"
    assert left_over(table) == [("Current_Price", "<")]


@pytest.mark.parametrize(
    ("conditions", "signature"),
    [
        ("$v > 1, $v < 9", "r.v > number and r.v < number in s"),
        ("$v >= 1, $k > 'a', $v <= 9", "r.v >= number and r.v <= number in s"),
        ("$v != 1, $k < 'a'", "r.k < constant in s"),
        ("$v != 1", "r.v != number in s"),
        ("$k > 'a', $k < 'b'", "r.k < constant in s"),
        ("$v = 1, $v > 0, $v < 5", "r.v = number in s"),
        ("$k = $v", "exists r.k in s"),
    ],
)
def test_without_statistics_the_operator_decides(conditions: str, signature: str) -> None:
    (table,) = tables(f"where <r><k>$k</><v>$v</></> in 's', {conditions} construct $v")
    assert group(table) == signature


def test_different_outputs_and_sources_are_different_tables() -> None:
    one = "where <r><v>$v</></> in 's', $v > 1 construct $v"
    other_output = "where <r><v>$v</></> element_as $r in 's', $v > 1 construct $r"
    other_source = one.replace("'s'", "'t'")
    found = tables(one, other_output, other_source)
    assert [group(t) for t in found] == ["r.v > number in s", "r.v > number in s", "r.v > number in t"]


def test_statistics_overturn_the_operators() -> None:
    """Two symbols in the stream, and hardly a value in the range: the range is the better group."""
    spread = [str(i) for i in range(1000)]
    assert group(tables(BOTH)[0]) == "r.k = constant in s"
    rare = statistics_of(k=["a", "b"] * 500, v=spread)
    (table,) = tables(BOTH, statistics=rare)
    assert group(table) == "r.v > number and r.v < number in s"
    assert left_over(table) == [("k", "=")]
    common = statistics_of(k=spread, v=["15"] * 900 + ["30"] * 100)
    assert group(tables(BOTH, statistics=common)[0]) == "r.k = constant in s"


def test_one_sided_ranges_are_estimated_by_their_constants() -> None:
    text = "where <r><k>$k</><v>$v</></> in 's', $k > {}, $v > {} construct $v"
    known = statistics_of(k=[str(i) for i in range(100)], v=[str(i) for i in range(100)])
    assert group(tables(text.format(98, 2), statistics=known)[0]) == "r.k > number in s"
    assert group(tables(text.format(2, 98), statistics=known)[0]) == "r.v > number in s"


def test_the_group_does_not_change_the_matches() -> None:
    documents = [f"<r><k>{k}</k><v>{v}</v></r>" for k in "ab" for v in (5, 15, 25)]
    rare = statistics_of(k=["a", "b"] * 500, v=[str(i) for i in range(1000)])
    plain, overturned = (planned_segment("1", tables(BOTH, statistics=s), s) for s in ({}, rare))
    assert group(plain.groups[0]) != group(overturned.groups[0])
    assert evaluated([plain], documents) == evaluated([overturned], documents) == [(1, 1, (2,))]


def test_many_queries_for_words_have_their_rarest_words_as_anchors(monkeypatch) -> None:
    monkeypatch.setattr("fishweir.evaluate.select.anchors.MANY", 3)
    pairs = [("fish", "weir"), ("fish", "trap"), ("net", "fish")]
    both = [f"s/r[t contains '{a}' and t contains '{b}']" for a, b in pairs]
    found = tables(*both)
    assert sorted(table.size for table in found) == [1, 2]
    assert {constant for table in found for (constant,) in table.anchor_constants} == {"weir", "trap", "net"}
    known = PathStatistics(count=10, words=(("fish", 1), ("weir", 9), ("trap", 9), ("net", 9)), worded=10)
    by_count = tables(*both, statistics={path_key(SOURCE, "r.t"): known})
    assert {constant for table in by_count for (constant,) in table.anchor_constants} == {"fish"}

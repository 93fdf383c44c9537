"""Section 4.4.1: queries Q1 to Q3 against the documents of figures 1 and 2, table 4 relation by relation."""

from __future__ import annotations

import pytest

from fishweir.algebra.documents import Document, parse_document
from fishweir.algebra.nodes import Source
from fishweir.papers.mmqjp.conjunctive import CURRENT, STATE, conjunctive_query
from fishweir.papers.mmqjp.mmqjp import Mmqjp
from tests.evaluate.join.support import Q1, Q2, Q3

pytest.importorskip("duckdb")
from fishweir.papers.mmqjp.duckdb_engine import DuckDBEngine

D1 = """<book><publisher>Wrox</publisher><author>Danny Ayers</author><author>Andrew Watt</author>
<title>Beginning RSS and Atom Programming</title><category>Scripting &amp; Programming</category>
<category>Web Site Development</category><isbn>0764579169</isbn></book>"""
D2 = """<blog><url>http://dannyayers.com/</url><author>Danny Ayers</author>
<title>Beginning RSS and Atom Programming</title><category>Book Announcement</category>
<category>Scripting &amp; Programming</category><description>Just heard ...</description></blog>"""
NAMES = {
    "x1": "S//book", "x2": "S//book//author", "x3": "S//book//title", "x7": "S//book//category",
    "x4": "S//blog", "x5": "S//blog//author", "x6": "S//blog//title", "x8": "S//blog//category",
}  # fmt: skip
T1, T2, T3 = 100.0, 200.0, 300.0


@pytest.fixture
def strategy():
    made = Mmqjp(DuckDBEngine())
    made.register([(Q1, (T1,)), (Q2, (T2,)), (Q3, (T3,))])
    return made


def arrival(text, time):
    return Source("S"), Document("d", time, parse_document(text.encode()))


def relation(strategy, query):
    """Rows with the paper's names of variables, and a dash for values that nothing reads."""
    numbers = {str(variable): number for variable, number in strategy.templates.variables.items()}
    names = {numbers[name]: short for short, name in NAMES.items()}
    found = strategy.engine.run(query)
    rows = []
    for row in found.to_pylist():
        rows.append(tuple(names[v] if k.startswith("var") else "–" if v is None else v for k, v in row.items()))
    return sorted(rows)


def test_table_4(strategy):
    assert relation(strategy, "select * from RT1") == [
        (0, "x1", "x2", "x3", "x4", "x5", "x6", T1),
        (1, "x1", "x2", "x7", "x4", "x5", "x8", T2),
        (2, "x4", "x5", "x6", "x4", "x5", "x6", T3),
    ]
    assert strategy.process([arrival(D1, 1.0)]) == []
    assert relation(strategy, "select docid, node, strVal from Rdoc") == [
        (0, 0, "–"),
        (0, 2, "Danny Ayers"),
        (0, 3, "Andrew Watt"),
        (0, 4, "Beginning RSS and Atom Programming"),
        (0, 5, "Scripting & Programming"),
        (0, 6, "Web Site Development"),
    ]
    assert relation(strategy, "select * from Rbin") == [
        (0, "x1", "x2", 0, 2),
        (0, "x1", "x2", 0, 3),
        (0, "x1", "x3", 0, 4),
        (0, "x1", "x7", 0, 5),
        (0, "x1", "x7", 0, 6),
    ]
    assert relation(strategy, "select * from RdocTS") == [(0, 1.0)]
    (found,) = strategy.process([arrival(D2, 51.0)])
    assert relation(strategy, "select node, strVal from RdocW") == [
        (0, "–"),
        (2, "Danny Ayers"),
        (3, "Beginning RSS and Atom Programming"),
        (4, "Book Announcement"),
        (5, "Scripting & Programming"),
    ]
    assert relation(strategy, "select var1, var2, node1, node2 from RbinW") == [
        ("x4", "x5", 0, 2),
        ("x4", "x6", 0, 3),
        ("x4", "x8", 0, 4),
        ("x4", "x8", 0, 5),
    ]
    assert relation(strategy, "select timestamp from RdocTSW") == [(51.0,)]
    out = [(0, 0, 1, 0, 2, 4, 0, 2, 3, T1), (1, 0, 1, 0, 2, 5, 0, 2, 5, T2)]
    assert found.rows.column_names == ["qid", "docid1", "docid2", *(f"node{i}" for i in range(1, 7)), "wl"]
    assert sorted(tuple(row.values()) for row in found.rows.to_pylist()) == out


def test_algorithm_3_selects_pairs_within_the_window(strategy):
    """RoutT has both rows, whatever the times; only Q2's window reaches that far."""
    strategy.process([arrival(D1, 1.0)])
    (found,) = strategy.process([arrival(D2, 1.0 + T2)])
    assert found.rows["qid"].to_pylist() == [1]
    strategy = Mmqjp(DuckDBEngine())
    strategy.register([(Q1, (T1,)), (Q2, (T2,))])
    strategy.process([arrival(D1, 1.0)])
    strategy.engine.create("RbinW", strategy.finder.find([arrival(D2, 900.0)], 1).bin)
    strategy.engine.create("RdocW", strategy.finder.find([arrival(D2, 900.0)], 1).doc)
    ((template, rt),) = [(t, r.name) for t, r in strategy.templates.relations.items()]
    assert len(strategy.engine.run(conjunctive_query(template, rt, STATE, CURRENT))) == 2
    assert strategy.process([arrival(D2, 900.0)]) == []


def test_the_conjunctive_query_reads_as_in_figure_7(strategy):
    ((template, rt),) = [(t, r.name) for t, r in strategy.templates.relations.items()]
    text = conjunctive_query(template, rt, STATE, CURRENT)
    tables = text.partition(" from ")[2].partition(" where ")[0].split(", ")
    kinds = [table.split()[0] for table in tables]
    assert {kind: kinds.count(kind) for kind in kinds} == {"RT1": 1, "Rbin": 2, "RbinW": 2, "Rdoc": 2, "RdocW": 2}

"""Reading results: columns equal results one by one, and reading one query does not open the files of others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from fishweir import testing
from fishweir.pipeline.commits import Commit, ResultsTable
from fishweir.pipeline.fired_index import MOST, intervals, merged
from fishweir.pipeline.result_columns import to_table
from tests import strategies as st

STATEMENTS = """
    create stream B;
    create stream R (k int, s string, d double, b boolean);
    create stream T (k int, v string);
    create query every as select * from R;
    create query some as select s, k from R where k > 1;
    create query either as select k from R where k > 1 or s = 'x';
    create query texts as select title from B where title contains 'weir';
    create query pairs as select R.s, T.*, R.d from R [range 100 seconds], T [range 100 seconds] where R.k = T.k;
    create query once as B//book->x1[.//author->x2][.//title->x3]
        FOLLOWED BY{x2=x5 AND x3=x6, 1000} B//blog->x4[.//author->x5][.//title->x6];
    create query both as select <both of=$x2><in>{x3}{x6}</in></both> from B//book->x1[.//author->x2][.//title->x3]
        JOIN{x2=x5, 1000} B//blog->x4[.//author->x5][.//title->x6];
    create query one as B//book->x1[.//author->x2][.//@id->x3];
    create query loans as select <book title=$t>{d}</book> from B//book[title->t][due->d]?;
    create feed items from B as $b where $b[title contains 'weir 1'];
    create query made as for $b in stream('B')/book, $a in $b/author return <r>{$a, $b/title}</r>;
"""


def book(i: int) -> str:
    authors = f"<author>a{i % 3}</author>" + "<author>b</author>" * (i % 2)
    due = "<due>1</due>" if i % 3 else ""
    return f"<book id='{i}'><!-- note -->{authors}<title>weir <b>{i % 4}</b></title>{due}</book>"


def fill(weir: testing.Weir) -> None:
    weir.execute(STATEMENTS)
    blogs = [f"<blog><author>a{i % 3}</author><title>weir {i % 4}</title></blog>" for i in range(6)]
    weir.publish("B", [*map(book, range(6)), *blogs], timestamps=[float(i) for i in range(12)])
    rows: list[dict[str, Any]] = [
        {"k": 1, "s": 'a, "b"\n', "d": 1.0, "b": True},
        {"k": 2, "s": None, "d": 1e300, "b": None},
        {"k": 2, "s": "ü", "d": -0.5, "b": False},
        {"k": None, "s": "x", "d": None, "b": None},
    ]
    weir.publish("R", rows, ids=["own", "r2", "r3", "r4"], timestamps=[1.0, 2.0, 3.0, 4.0])
    weir.publish("T", [{"k": 2, "v": "x"}, {"k": 2, "v": None}], timestamps=[2.5, 1.5])
    weir.run(until_idle=True)


def test_columns_match_results_one_by_one(weir: testing.Weir) -> None:
    fill(weir)
    found, wanted = weir.results().to_arrow(), to_table(weir.results())
    assert found.to_pylist() == wanted.to_pylist()
    assert set(found["query"].to_pylist()) == set(weir.catalog.names())
    found.validate(full=True)


SPLIT = """
    <rss xmlns="http://a.org/rss" xmlns:dc="http://b.org/dc"><channel>
    <item guid='1'><title>one <![CDATA[<b>&</b>]]></title><dc:author/><x></x></item>
    <item dc:guid="&#x20AC;"><title>two &gt; one</title><dc:author>a &amp; b</dc:author><?do it?></item>
    <item><title/><dc:author>c<!-- d --></dc:author><title>three</title></item></channel></rss>
"""


def test_documents_of_all_kinds_in_columns(weir: testing.Weir, tmp_path: Path) -> None:
    """Namespaces of ancestors, CDATA, references, comments, splits; also documents that only libxml2 can read."""
    (tmp_path / "feed.xml").write_text(SPLIT)
    weir.execute("""
        create stream S;
        create stream F from 'feed.xml' split on item;
        create feed all from (S | F) as $s where $s[title contains 'one' or contains 'three' or contains 'four'];
        create query titles as select title, author, a.b from F where title contains 'one';
        create query star as select * from F where title contains 'two';
        create query parts as select <r g=$g t=$t>{t}{a}<in>{$a}</in></r>
            from F//item->i[.//title->t][.//author->a][@guid->g]?;
        create query above as select <r>{i}</r> from F//channel->c/item->i;
        create query nested as S//a->x[.//b->y];
        create query mixed as select S.b, F.title from S [range 1000 days], F [range 1000 days] where S.b = F.author;
        create query joined as S//a->x1[.//b->x2] JOIN{x2=x4, INF} F//item->x3[.//author->x4];
    """)
    bodies = [
        "<a><b>c</b><b>a &amp; b</b><title>one</title></a>",
        "<a><b><b>c</b></b><b/><title>four</title></a>",
        "<!DOCTYPE a [<!ENTITY e 'c'>]><a><b>&e;</b><title>three</title></a>",
        "<a xmlns:p='urn:p'><p:b p:q='1'>c</p:b><p:title>one<?pi?></p:title></a>",
    ]
    weir.publish("S", bodies)
    weir.run(until_idle=True)
    found, wanted = weir.results().to_arrow(), to_table(weir.results())
    assert found.to_pylist() == wanted.to_pylist()
    assert set(found["query"].to_pylist()) == set(weir.catalog.names())


def test_files_of_others_are_not_opened(weir: testing.Weir, monkeypatch: pytest.MonkeyPatch) -> None:
    weir.execute("create stream R (x int)")
    weir.register_many(
        "create query $name as select x from R where x = $x", [{"name": f"q{i}", "x": i} for i in range(50)]
    )
    for x in (3, 7, 3, 9):
        weir.publish("R", [{"x": x}])
        weir.run(until_idle=True)
    read: list[int] = []
    read_rows = ResultsTable.rows

    def noted(table: ResultsTable, commit: Commit) -> Any:
        read.append(commit.batch)
        return read_rows(table, commit)

    monkeypatch.setattr(ResultsTable, "rows", noted)
    assert [result.output for result in weir.results("q3")] == [{"x": 3}, {"x": 3}]
    assert weir.status("q7").fired == 1  # type: ignore[union-attr]
    assert not list(weir.results("q4"))
    assert read == [0, 2, 1]


SLICES = st.lists(st.tuples(st.integers(0, 200), st.integers(1, 5)), min_size=1, max_size=60)


@st.examples(50)
@given(SLICES, SLICES)
def test_the_index_is_complete(one: list[tuple[int, int]], other: list[tuple[int, int]]) -> None:
    def index(slices: list[tuple[int, int]]) -> dict[str, list[int]]:
        lo = np.array([start for start, _ in slices])
        return {"listed": intervals(lo, lo + np.array([length for _, length in slices]))}

    ends = (merged(index(one), index(other)) or {})["listed"]
    covered = {place for lo, hi in zip(ends[::2], ends[1::2], strict=True) for place in range(lo, hi)}
    assert {place for start, length in [*one, *other] for place in range(start, start + length)} <= covered
    assert len(ends) <= 2 * MOST
    assert ends == sorted(ends)

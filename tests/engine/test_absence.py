"""`A NOT FOLLOWED BY{p, T} B`: a document is a result once its window has passed without a match, and only then."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given

from fishweir import testing
from fishweir.engine.weir import Weir
from fishweir.errors import QueryError
from tests import strategies as st

LATE = 4
SAME_KEY = "S//a->x[k->u] NOT FOLLOWED BY{u = v, 5} S//b[k->v]"


def document(kind: str, time: float, key: int) -> str:
    return f"<{kind}><t>{time}</t><k>{key}</k></{kind}>"


def declare(weir: Weir, late: float = LATE) -> None:
    weir.execute(f"create stream S timestamp /*/t late by {late}")


def found(weir: Weir, name: str) -> list[tuple[list[str], float]]:
    return sorted((result.documents, result.timestamp) for result in weir.results(name))


def test_fires_when_the_watermark_has_passed_the_window(weir: Weir) -> None:
    declare(weir, late=2)
    weir.execute(f"create query gone as {SAME_KEY}")
    weir.publish("S", [document("a", 10, 1), document("a", 11, 2), document("b", 13, 1)])
    weir.run(until_idle=True)
    weir.publish("S", [document("c", 18, 0)])
    weir.run(until_idle=True)
    assert found(weir, "gone") == []  # a b of time 16 may still come
    weir.publish("S", [document("c", 18.5, 0)])
    weir.run(until_idle=True)
    (result,) = weir.results("gone")
    assert (result.documents, result.timestamp, result.output) == (["S-2"], 16.0, document("a", 11, 2))
    assert result.bindings["x"] == {"document": "S-2", "node": 0, "value": "112"}


@pytest.mark.parametrize(("time", "fires"), [(10, True), (10.5, False), (15, False), (15.5, True)])
def test_only_documents_within_the_window_count(weir: Weir, time: float, fires: bool) -> None:
    declare(weir)
    weir.execute(f"create query gone as {SAME_KEY}")
    weir.publish("S", [document("b", time, 1), document("a", 10, 1), document("c", 100, 0)])
    weir.run(until_idle=True)
    assert found(weir, "gone") == ([(["S-2"], 15.0)] if fires else [])


def test_without_a_comparison_anything_that_follows_counts(weir: Weir) -> None:
    declare(weir)
    weir.execute("create query quiet as select <alarm>$k</alarm> from S//a/k->k NOT FOLLOWED BY{1 minute} S//a")
    weir.publish("S", [document("a", time, time) for time in (10, 50, 200, 220)])
    weir.publish("S", [document("c", 400, 0)])
    weir.run(until_idle=True)
    assert [result.output for result in weir.results("quiet")] == [
        "<alarm><k>50</k></alarm>",
        "<alarm><k>220</k></alarm>",
    ]


def test_a_prompt_stream_needs_no_later_item(tmp_path: Path) -> None:
    clock = testing.Clock(1000.0)
    with testing.open(tmp_path / "home", clock=clock) as weir:
        weir.execute("create stream beats (host string)")
        weir.execute("create query down as beats->x NOT FOLLOWED BY{x/host = y/host, 30 seconds} beats->y")
        weir.publish("beats", [{"host": "a"}, {"host": "b"}])
        weir.run(until_idle=True)
        clock.advance(20)
        weir.publish("beats", [{"host": "a"}])
        weir.run(until_idle=True)
        clock.advance(12)
        weir.run(until_idle=True)
        assert found(weir, "down") == [(["beats-2"], 1030.0)]
        clock.advance(60)
        weir.run(until_idle=True)
        assert found(weir, "down") == [(["beats-2"], 1030.0), (["beats-3"], 1050.0)]


def test_an_idle_stream_delays_results_only_until_it_counts_as_idle(tmp_path: Path) -> None:
    """B is never prompt and becomes idle: only once it counts as idle, no more documents are expected from it."""
    clock = testing.Clock(10_000.0)
    with testing.open(tmp_path / "home", clock=clock, idle_after=500.0) as weir:
        weir.execute("create stream A (k int, t double) timestamp t; create stream B (k int, t double) timestamp t")
        weir.execute("create query gone as A->x NOT FOLLOWED BY{x/k = y/k, 100} B->y")
        weir.publish("B", [{"k": n, "t": 9_000.0 + 10 * n} for n in range(90)])
        weir.publish("A", [{"k": 1_000, "t": 9_950.0}])
        weir.run(until_idle=True)
        clock.advance(400)
        weir.run(until_idle=True)
        assert found(weir, "gone") == []
        clock.advance(3_000)
        weir.run(until_idle=True)
        assert found(weir, "gone") == [(["A-1"], 10_050.0)]


def test_explain_shows_what_must_not_follow(weir: Weir) -> None:
    declare(weir)
    weir.execute(f"create query gone as {SAME_KEY}")
    shown = weir.explain("gone")
    assert "documents whose window of 5 seconds has passed" in shown
    assert SAME_KEY in shown


def test_chains_before_and_behind(weir: Weir) -> None:
    declare(weir)
    weir.execute("""
        create query after as S//a->x NOT FOLLOWED BY{x/k = y/k, 5} S//b->y FOLLOWED BY{x/k = z/k, 20} S//c->z;
        create query before as S//a->x FOLLOWED BY{x/k = y/k, 5} S//b->y NOT FOLLOWED BY{y/k = z/k, 5} S//c->z;
    """)
    rows = [("a", 1, 1), ("a", 1, 2), ("b", 3, 2), ("c", 5, 1), ("c", 12, 1), ("c", 30, 3), ("c", 40, 4), ("d", 90, 0)]
    for row in rows:
        weir.publish("S", [document(*row)])
        weir.run(until_idle=True)
    outputs = {name: [result.output for result in weir.results(name)] for name in ("after", "before")}
    assert outputs["after"] == [f"<result>{document('a', 1, 1)}{document('c', 12, 1)}</result>"]
    assert outputs["before"] == [f"<result>{document('a', 1, 2)}{document('b', 3, 2)}</result>"]


def test_dropping_the_query_drops_its_auxiliary_queries(weir: Weir) -> None:
    declare(weir)
    weir.execute(f"create query one as {SAME_KEY}; create query two as {SAME_KEY} do append 'x.jsonl'")
    weir.drop("one")
    weir.publish("S", [document("a", 1, 1), document("c", 50, 0)])
    weir.run(until_idle=True)
    assert found(weir, "two") == [(["S-1"], 6.0)]
    weir.drop("two")
    assert list(weir.catalog.streams()) == ["S"]


def test_what_only_the_matches_read_is_dropped_too(weir: Weir) -> None:
    declare(weir)
    weir.execute("S//a->x NOT FOLLOWED BY{x/k = y/k, 5} (S//b->y FOLLOWED BY{y/k = z/k, 5} S//c->z)")
    assert len(weir.catalog.streams()) == 2
    weir.drop("q1")
    assert list(weir.catalog.streams()) == ["S"]
    assert weir.catalog.count_active(0, weir.catalog.version()) == 0


def test_many_queries_share_what_they_read_until_the_last_is_dropped(weir: Weir) -> None:
    declare(weir)
    inner = [f"S//a->x[k = {i}] FOLLOWED BY{{x/k = y/k, 5}} S//b->y" for i in range(3)]
    queries = [f"create query q{n}{i} as {inner[i]} NOT FOLLOWED BY{{{n}}} S//c" for i in range(3) for n in (1, 2)]
    weir.execute(";".join(queries))
    assert len(weir.catalog.streams()) == 1 + 3  # the documents that wait need no stream
    version = weir.catalog.version()
    weir.drop_many(["q10", "q20", "q11"])
    assert len(weir.catalog.streams()) == 1 + 2  # the first of the inner joins has no readers left
    assert weir.catalog.version() - version < 10
    weir.drop_many(["q21", "q12", "q22"])
    assert list(weir.catalog.streams()) == ["S"]
    assert weir.catalog.count_active(0, weir.catalog.version()) == 0


def test_a_window_without_end_is_refused(weir: Weir) -> None:
    declare(weir)
    with pytest.raises(QueryError, match="NOT FOLLOWED BY needs a window that ends"):
        weir.execute("S//a NOT FOLLOWED BY{INF} S//b")


Row = tuple[str, int, int]
rows = st.lists(st.tuples(st.sampled_from("ababc"), st.integers(0, 25), st.integers(0, 2)), max_size=14)


@st.examples(25)
@given(rows, st.lists(st.integers(1, 4), min_size=1, max_size=6), st.sets(st.integers(0, 13)))
def test_equal_to_the_definition_however_it_arrives(some: list[Row], cuts: list[int], restarts: set[int]) -> None:
    """Each item is at most LATE behind the newest before it. Batches are cut at random, and the home is reopened."""
    arrived, front = list[Row](), 0
    for kind, time, key in some:
        arrived.append((kind, max(time, front - LATE), key))
        front = max(front, arrived[-1][1])
    expected = sorted(
        ([f"S-{n}"], time + 5.0)
        for n, (kind, time, key) in enumerate(arrived, 1)
        if kind == "a" and not any(o == "b" and k == key and 0 < t - time <= 5 for o, t, k in arrived)
    )
    with TemporaryDirectory() as folder:
        weir = testing.open(f"{folder}/home")
        declare(weir)
        weir.execute(f"create query gone as {SAME_KEY}")
        start = 0
        for cut in cuts * len(arrived):
            if start >= len(arrived):
                break
            weir.publish("S", [document(*row) for row in arrived[start : start + cut]])
            weir.step()
            if start in restarts:
                weir.close()
                weir = testing.open(f"{folder}/home")
            start += cut
        weir.publish("S", [document("c", 1000, 0)])
        weir.run(until_idle=True)
        assert found(weir, "gone") == expected
        weir.close()

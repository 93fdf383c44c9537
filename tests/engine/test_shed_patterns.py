"""Patterns omitted under overload: results are constructed from the others, and list the omitted ones."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass

import pytest

from fishweir import QueryError, Result, testing
from fishweir.catalog.preference_counts import preferences
from fishweir.engine.status import EngineStatus
from fishweir.shedding.overload import Overload

Q1 = """for $a in stream("transactions")/list/transaction where $a/order/price > 100
return $a//name, $a/contact/tel, $a/contact/addr"""


@dataclass
class Slow(Overload):
    """An overload in which each document takes a tenth of a second, and its outputs take as long."""

    def took(self, documents: int, seconds: float, shed: int = 0, part: float = 1.0) -> None:
        self._costs.append(0.1)

    def constructed(self, documents: int, seconds: float, part: float = 1.0, published: bool = False) -> None:
        self._constructing.append(0.1)


def overloaded(weir: testing.Weir) -> None:
    """40 documents fit into two fifths of the target, 20 with their outputs."""
    weir.overload = Slow(10.0)
    weir.overload.took(1, 1.0)
    weir.overload.constructed(1, 1.0)


def transactions(count: int, after: int = 0) -> list[str]:
    address = "<addr><zip>1</zip><St>2</St><city>3</city></addr>" * 3
    return [
        f"<list><transaction><name>n{i}</name><contact><tel>{i}</tel>{address}</contact>"
        f"<order><price>{200 if i % 2 else 5}</price></order></transaction></list>"
        for i in range(after + 1, after + count + 1)
    ]


@pytest.fixture
def taken(weir: testing.Weir) -> list[Result]:
    """The results that `do keep` delivers."""
    found: list[Result] = []
    weir.action("keep", found.append)
    return found


def test_patterns_worth_least_per_cost_are_left_out_during_a_burst(
    weir: testing.Weir, taken: list[Result], caplog: pytest.LogCaptureFixture
) -> None:
    weir.execute(f"""
        create stream transactions;
        create query Q1 as {Q1} pref v(name) = 0.5, v(tel) = 0.3, v(price) = 0.19, v(addr) = 0.01 do keep;
        create query plain as {Q1.replace("> 100", "< 100")}
    """)
    overloaded(weir)
    weir.publish("transactions", transactions(30))
    with caplog.at_level(logging.WARNING, "fishweir.shedding"):
        weir.step()
    assert "shedding starts: 30 entries are waiting, leaving out" in caplog.text
    assert "addr" in caplog.text
    results = list(weir.results("Q1"))
    assert len(results) == 15, "no document is left out: plain has no preference"
    cut = [result for result in results if result.left_out]
    assert cut
    for result in cut:
        assert "list/transaction/contact/addr" in result.left_out
        assert "<addr>" not in str(result.output)
        assert json.loads(result.to_json())["left_out"] == list(result.left_out)
    assert [str(one.output) for one in taken] == [str(one.output) for one in results]
    plain = list(weir.results("plain"))
    assert len(plain) == 15
    assert all("<addr>" in str(one.output) and "left_out" not in one.to_dict() for one in plain)
    status = weir.status()
    assert isinstance(status, EngineStatus)
    assert status.streams["transactions"].cut == 30
    assert "30 evaluated without some patterns" in str(status)
    assert "addr" in status.streams["transactions"].shedding
    weir.publish("transactions", transactions(10, 30))
    weir.run(until_idle=True)
    assert all(not one.left_out and "<addr>" in str(one.output) for one in list(weir.results("Q1"))[15:])
    assert "shedding now" not in str(weir.status())


def test_columns_of_sql_and_arrow(weir: testing.Weir, taken: list[Result]) -> None:
    weir.execute("""
        create stream R (id int, price double, note string);
        create query q as select id, price, note from R pref v(id) = 0.9, v(price) = 0.6, v(note) = 0.01 do keep;
        create query all as select id, price, note from R
    """)
    overloaded(weir)
    weir.publish("R", [{"id": n, "price": 2.5, "note": "some text"} for n in range(30)])
    weir.step()
    outputs = [result.output for result in weir.results("q")]
    assert len(outputs) == 30
    assert all(isinstance(one, dict) and "id" in one for one in outputs)
    assert any("note" not in one for one in outputs)
    table = weir.results("q").to_arrow()
    assert table.column_names[-1] == "left_out"
    shown = zip(table["output"].to_pylist(), table["left_out"].to_pylist(), strict=True)
    assert all(("note" in (lacking or [])) == ("note" not in json.loads(output)) for output, lacking in shown)
    assert not any(weir.results("all").to_arrow()["left_out"].to_pylist())
    assert all(result.output["note"] == "some text" for result in weir.results("all"))  # type: ignore[index]


def test_reading_again_and_repeating_have_the_same_results(
    weir: testing.Weir, taken: list[Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    weir.execute(f"""
        create stream transactions;
        create query Q1 as {Q1} pref name > tel > price > addr do keep;
        create query plain as {Q1}
    """)
    overloaded(weir)
    weir.publish("transactions", transactions(30))

    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(weir.table, "commit", crash)
        with pytest.raises(KeyboardInterrupt):
            weir.step()
    weir.overload = Overload(1000.0)  # by now there would be time for all
    weir.step()
    first = [result.to_dict() for result in weir.results("Q1")]
    assert any("left_out" in one for one in first)
    with testing.open(weir.home.path) as again:
        assert [result.to_dict() for result in again.results("Q1")] == first


def test_a_stream_that_allows_it_degrades_all_queries(weir: testing.Weir, taken: list[Result]) -> None:
    weir.execute(f"create stream transactions shed allowed; create query Q1 as {Q1} do keep")
    overloaded(weir)
    weir.publish("transactions", transactions(60))
    weir.step()
    commit = weir.table.newest()
    assert commit.cut or commit.shed
    assert 0 < len(list(weir.results("Q1"))) <= 30


def test_queries_over_published_results_see_the_kept_patterns(weir: testing.Weir) -> None:
    weir.execute("""
        create stream R (id int, note string);
        select id, note from R publish P pref v(id) = 0.9, v(note) = 0.01;
        create query reader as select id, note from P;
        create query other as select id from R
    """)
    overloaded(weir)
    weir.publish("R", [{"id": n, "note": "x"} for n in range(30)])
    weir.run(until_idle=True)
    found = [result.output for result in weir.results("reader")]
    assert len(found) == 30
    assert any(one["note"] is None for one in found)  # type: ignore[index]


def test_results_without_patterns_are_delivered_again_complete(
    weir: testing.Weir, taken: list[Result], caplog: pytest.LogCaptureFixture
) -> None:
    weir.execute(f"""
        create stream transactions make up within 1 hour;
        create query Q1 as {Q1} pref v(name) = 0.5, v(tel) = 0.3, v(price) = 0.19, v(addr) = 0.01 do keep;
        create query plain as {Q1}
    """)
    overloaded(weir)
    weir.publish("transactions", transactions(30))
    weir.step()
    lacking = [result for result in weir.results("Q1") if result.left_out]
    assert lacking
    assert len(taken) == 15
    weir.run(until_idle=True)
    results = list(weir.results("Q1"))
    assert len(results) == 15, "each once, and whole"
    assert all(not one.left_out and "<addr>" in str(one.output) for one in results)
    late = taken[15:]
    assert [one.documents for one in late] == [one.documents for one in lacking], "late results to the subscriber"
    assert all("<addr>" in str(one.output) for one in late)
    status = weir.status("Q1")
    assert status.results == 15  # type: ignore[union-attr]
    assert "completed later" in str(weir.status())
    assert len(list(weir.results("plain"))) == 15


def test_queries_with_few_subscribers_are_suspended_first(weir: testing.Weir) -> None:
    """Their paths are suspended; other queries are complete."""
    weir.execute("""
        create stream S;
        create query few as for $a in stream('S')/t where $a/long/x > 0 return $a/id pref v(id) = 0.1
    """)
    for n in range(20):
        weir.execute(f"create query many{n} as for $a in stream('S')/t where $a/k > 0 return $a/id pref v(id) = 0.9")
    weir.execute("create query plain as for $a in stream('S')/t where $a/k > 1 return $a/id")
    weir.overload = Overload(5.0)
    weir.overload.took(1, 1.0)
    weir.overload.took(10, 6.0)
    bodies = [f"<t><id>{i}</id><k>2</k><long>{'<x>1</x>' * 200}</long></t>" for i in range(10)]
    weir.publish("S", bodies)
    weir.step()
    (decided,) = weir.table.newest().shedding.values()
    assert {key for level in decided["levels"] for key in level["conditions"]} == {"t.long", "t.long.x"}
    assert len(list(weir.results("many3"))) == len(list(weir.results("plain"))) == 10
    status = weir.status()
    assert isinstance(status, EngineStatus)
    counted = status.streams["S"]
    assert counted.cut > 0
    assert counted.skipped >= counted.cut * 200, "below the suspended path nothing is walked"
    results = weir.results("few")
    assert len({result.documents[0] for result in results}) == 10 - counted.cut


@pytest.mark.parametrize(
    "text",
    [
        "create q where <t><name>$n</name></> in 'S' construct <r>$n</r> pref v(name) = 0.3",
        "S//t->t[.//name->n] FOLLOWED BY{n=m, 10} S//t->u[.//name->m] pref v(name) = 0.2",
        "S//t->t[.//name->n] publish P pref v(name) = 0.2",
        "create feed X from S as $f where $f[title contains 'rock'] pref v(title) = 0.2",
        "create query q as from S as $f where $f[title contains 'rock'] pref title = 'rock'",
        "create query q as select id, name from R where price > 1 pref id > name > price",
        "create query q as select id from R pref price > 1000 do keep",
    ],
)
def test_every_language_takes_a_preference_at_its_end(weir: testing.Weir, taken: list[Result], text: str) -> None:
    weir.execute("create stream S; create stream R (id int, price double, name string)")
    weir.execute(text)
    found = preferences(weir.catalog.database)
    assert any(preference is not None for _, preference, *_ in found)


def test_a_preference_for_something_else_is_refused(weir: testing.Weir) -> None:
    weir.execute("create stream transactions")
    with pytest.raises(QueryError, match="prefers addres, which is not one of its patterns") as error:
        weir.execute(f"create query Q1 as {Q1} pref v(name) = 0.5, v(addres) = 0.1")
    assert error.value.line == 2

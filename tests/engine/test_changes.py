"""Rows of a file that changes in place have their old values and the kind of change, in every language."""

from __future__ import annotations

from pathlib import Path

import pytest

import fishweir
from fishweir import testing
from fishweir.engine.weir import Weir
from fishweir.errors import QueryError

STREAM = "create stream quotes from 'quotes.xml' rows /Quotes/Quote key Symbol every 0 seconds;"


def write(prices: dict[str, float]) -> None:
    rows = "".join(f"<Quote><Symbol>{s}</Symbol><Price>{p:g}</Price></Quote>" for s, p in prices.items())
    Path("quotes.xml").write_text(f"<Quotes>{rows}</Quotes>")


def versions(weir: Weir, *some: dict[str, float]) -> None:
    for prices in some:
        write(prices)
        weir.run(until_idle=True)


def test_changes_have_the_row_its_old_values_and_the_ratio(weir: Weir) -> None:
    write({})
    weir.execute(f"{STREAM} create query all_changes as quotes.changes/Quote->q")
    versions(weir, {"DELL": 40, "MU": 10}, {"DELL": 30, "MU": 10}, {"MU": 10})
    assert [(result.documents, result.output) for result in weir.results("all_changes")] == [
        (
            ["quotes.changes-1"],
            "<Quote><Symbol>DELL</Symbol><Price>40</Price><change>inserted</change></Quote>",
        ),
        (["quotes.changes-2"], "<Quote><Symbol>MU</Symbol><Price>10</Price><change>inserted</change></Quote>"),
        (
            ["quotes.changes-3"],
            "<Quote><Symbol>DELL</Symbol><Price>30</Price><change>updated</change>"
            "<old><Symbol>DELL</Symbol><Price>40</Price></old><ratio><Price>0.75</Price></ratio></Quote>",
        ),
        (
            ["quotes.changes-4"],
            "<Quote><change>deleted</change><old><Symbol>DELL</Symbol><Price>30</Price></old></Quote>",
        ),
    ]
    assert fishweir.check(weir.home.path).is_whole, "the removed row is not missing"


@pytest.mark.parametrize(
    "query",
    [
        "select Symbol, old.Price as was from quotes where Price < 0.95 * old.Price",
        "select Symbol, old.Price as was from quotes where old.Price * 0.95 > Price",
        "select Symbol, old.Price as was from quotes.changes where ratio.Price < 0.95",
    ],
)
def test_sql(weir: Weir, query: str) -> None:
    write({})
    weir.execute(f"{STREAM} create query drops as {query}")
    versions(weir, {"DELL": 100, "MU": 100}, {"DELL": 94, "MU": 96}, {"DELL": 93, "MU": 90})
    assert [result.output for result in weir.results("drops")] == [
        {"Symbol": "DELL", "was": "100"},
        {"Symbol": "MU", "was": "96"},
    ]


@pytest.mark.parametrize(
    "where",
    [
        "<Quote><Symbol>$s</><Price>$p</></> in quotes, $p < 0.95 * $old.p",
        "<Quotes><Quote><Symbol>$s</><Price>$p</></></> in quotes, $old.p * 0.95 > $p",
        "<Quote><Symbol>$s</><Price>$p</><old><Price>$q</></><ratio><Price>$r</></></> in quotes, $r < 0.95",
    ],
)
def test_niagaracq(weir: Weir, where: str) -> None:
    write({})
    was = "$q" if "$q" in where else "$old.p"
    weir.execute(f"{STREAM} create drops where {where} construct <drop of=$s was={was}/>")
    versions(weir, {"DELL": 100, "MU": 100}, {"DELL": 94, "MU": 96})
    assert [result.output for result in weir.results("drops")] == ['<drop of="DELL" was="100"/>']


@pytest.mark.parametrize(
    "statement",
    [
        "create feed found from quotes where [ratio/Price < 0.95]",
        "create feed found from quotes.changes where [old/Price = 100] and [Price = 94]",
        "create query found as for $q in stream('quotes')/Quote where $q/ratio/Price < 0.95 return $q",
        "create query found as quotes//Quote[Price < 95][old/Price > 95]",
    ],
)
def test_roses_xquery_and_xscl(weir: Weir, statement: str) -> None:
    write({})
    weir.execute(f"{STREAM} {statement}")
    versions(weir, {"DELL": 100, "MU": 100}, {"DELL": 94, "MU": 96})
    (result,) = weir.results("found")
    assert "<Symbol>DELL</Symbol>" in str(result.output)


@pytest.mark.parametrize(
    "begin",
    [
        "create feed F from quotes.changes where [change = '{}']",
        "create query F as select * from quotes.changes where change = '{}'",
        "create query F as quotes.changes//Quote[change = '{}']",
        "create query F as for $q in stream('quotes.changes')/Quote where $q/change = '{}' return $q",
        'create F where <Quote><change>"{}"</></> element_as $q in "quotes.changes" construct $q',
    ],
)
def test_changes_in_every_language(weir: Weir, begin: str) -> None:
    write({})
    what = ("inserted", "updated", "deleted")
    weir.execute(STREAM + ";".join(begin.format(one).replace("F", one, 1) for one in what))
    versions(weir, {"DELL": 1, "MU": 2}, {"DELL": 3, "MU": 2}, {"DELL": 4})
    counts = {one: sorted(result.documents[0] for result in weir.results(one)) for one in what}
    assert counts == {
        "inserted": ["quotes.changes-1", "quotes.changes-2"],
        "updated": ["quotes.changes-3", "quotes.changes-4"],
        "deleted": ["quotes.changes-5"],
    }


def test_many_thresholds_share_one_group(weir: Weir) -> None:
    write({})
    weir.execute(STREAM)
    statement = "create query $name as select Symbol from quotes where Price < $k * old.Price"
    weir.register_many(statement, [{"name": f"q{n}", "k": n / 100} for n in range(1, 100)])
    versions(weir, {"DELL": 100}, {"DELL": 50.5})
    assert {result.query for result in weir.results()} == {f"q{n}" for n in range(51, 100)}


def test_products_are_compared_with_the_same_value_only(weir: Weir) -> None:
    write({})
    weir.execute(STREAM)
    with pytest.raises(QueryError, match="a product can only be compared with the row's own value"):
        weir.execute("select Symbol from quotes where Price < 2 * old.Volume")
    with pytest.raises(QueryError, match=r"'\$old.q' times a number can only be compared with \$q"):
        weir.execute("create q where <Quote><Price>$p</></> in quotes, $p < 2 * $old.q construct $p")


def test_restarts_neither_lose_nor_repeat_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write({"DELL": 1})
    with testing.open("home") as weir:
        weir.execute(f"{STREAM} create query up as select Price, old.Price as was from quotes where old.Price >= 0")
    for price in range(2, 6):
        with testing.open("home") as weir:
            versions(weir, {"DELL": price})
    with testing.open("home") as weir:
        found = [(result.output["was"], result.output["Price"]) for result in weir.results("up")]  # type: ignore[index]
    assert found == [("2", "3"), ("3", "4"), ("4", "5")]


def test_the_query_of_the_introduction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Section 1 of NiagaraCQ: "Notify me whenever the price of Dell or Micron stock drops by more than 5% and the price
    of Intel stock remains unchanged over next three month." """
    monkeypatch.chdir(tmp_path)
    clock, day = testing.Clock(0.0), 86_400.0
    write({"DELL": 100, "MU": 50, "INTC": 20})
    with testing.open("home", clock=clock) as weir:
        weir.execute(f"""{STREAM}
            create query notify_me as
                quotes//Quote->q[Symbol = 'DELL' or Symbol = 'MU'][ratio/Price < 0.95]
                NOT FOLLOWED BY{{3 months}} quotes//Quote[Symbol = 'INTC'][ratio/Price != 1]
        """)
        weir.run(until_idle=True)
        days: dict[int, dict[str, float]] = {
            1: {"DELL": 90, "MU": 50, "INTC": 20},  # Intel moves within three months of this
            10: {"DELL": 90, "MU": 50, "INTC": 21},
            20: {"DELL": 90, "MU": 40, "INTC": 21},  # and does not after this
            30: {"DELL": 89, "MU": 40, "INTC": 21},
            150: {"DELL": 89, "MU": 40, "INTC": 22},
        }
        for at, prices in days.items():
            clock.now = at * day
            versions(weir, prices)
        (result,) = weir.results("notify_me")
        assert "<Symbol>MU</Symbol><Price>40</Price>" in str(result.output)
        assert (result.timestamp - 20 * day) / day == pytest.approx(90, abs=3)

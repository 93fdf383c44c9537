"""EXPLAIN as golden files: `explain/NAME.txt` is the output for query NAME, `all.txt` that for all groups.

After an intended change, regenerate them with
`FISHWEIR_WRITE_EXPLAIN=1 .venv/bin/python -m pytest tests/engine/test_explain.py` and review the diff.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from fishweir import testing
from fishweir.engine.weir import Weir

GOLDEN = Path(__file__).parent / "explain"
WRITE = "FISHWEIR_WRITE_EXPLAIN" in os.environ

SCRIPT = """
create stream quotes; create stream orders (customer string, shares int);
create intel where <Quotes> <Quote> <Symbol>INTC</> </> </> element_as $g in "quotes" construct $g;
create microsoft where <Quotes> <Quote> <Symbol>MSFT</> </> </> element_as $g in "quotes" construct $g;
create intel_again where <Quotes> <Quote> <Symbol>INTC</> </> </> element_as $g in "quotes" construct $g;
create risen where <Quotes><Quote><Change_Ratio>$c</></> element_as $g </> in "quotes", $c > 0.05 construct $g;
create intel_below where <Quotes><Quote><Symbol>"INTC"</><Current_Price>$p</></> element_as $g </>
    in "quotes", $p < 100 construct $g do append 'mail.jsonl' every 1 hour;
create between where <orders><shares>$n</></> in "orders", $n >= 10, $n < 20 construct $n;
create impossible where <orders><shares>$n</></> in "orders", $n >= 20, $n < 10 construct $n;
create all_orders where <orders/> element_as $o in "orders" construct $o;
create same where <orders><customer>$c</><shares>$n</></> in "orders", $c = $n construct $c;
create by_dtd where <Quote k=$k></> in "*" conforms to "quotes.dtd", $k != 'x' construct $k;
create stream news;
create feed rock from news as $n where $n[title contains "rock" and not title contains "stone"];
create feed rock_in_paris from news as $n where $n[title contains "rock" and
    (description contains "paris" or month(date) = 5)];
create feed rock_concerts from rock as $r where $r[title contains "concert"];
create gone where <orders><shares>$n</></> in "orders", $n > 7 construct $n;
delete gone;
"""
NAMES = [
    "intel", "risen", "intel_below", "between", "impossible", "all_orders", "same", "by_dtd", "gone", "rock",
    "rock_in_paris", "rock_concerts",
]  # fmt: skip


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Weir]:
    monkeypatch.chdir(tmp_path)
    with testing.open(tmp_path / "home") as weir:
        weir.execute(SCRIPT)
        yield weir


def check(name: str, text: str) -> None:
    """Paths are shown relative to the current folder, which differs from run to run."""
    file, text = GOLDEN / f"{name}.txt", text.replace(f"{Path.cwd()}/", "")
    if WRITE:
        file.write_text(f"{text}\n", encoding="utf-8")
    assert f"{text}\n" == file.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_explain(home: Weir, name: str) -> None:
    check(name, home.explain(name))


def test_explain_all(home: Weir) -> None:
    check("all", home.explain())


def test_explain_is_the_same_once_planned(home: Weir) -> None:
    """Before the first micro-batch, everything is in the tail; afterwards in a segment."""
    before = home.explain("intel"), home.explain("impossible"), home.explain("gone"), home.explain()
    home.step()
    assert (home.explain("intel"), home.explain("impossible"), home.explain("gone"), home.explain()) == before


def test_explain_shows_the_statistics(home: Weir) -> None:
    """Orders of ten sizes, all by Ada: new queries are grouped by size, the earlier one is not moved."""
    text = "create {} where <orders><customer>$c</><shares>$n</></> in 'orders', $c = 'Ada', $n > 8 construct $n"
    home.execute(text.format("early"))
    home.publish("orders", [{"customer": "Ada", "shares": i % 10} for i in range(100)])
    home.step()
    home.execute(text.format("late"))
    check("early", home.explain("early"))
    check("late", home.explain("late"))


def test_explain_shows_how_many_nodes_reached_each_path(home: Weir, tmp_path: Path) -> None:
    """Also for paths that only need to exist. Subtrees that no path enters are skipped. Counting continues after a
    restart."""
    home.execute(
        "create stream shop; create query kids using xscl as shop/s/a->x[.//b->y][./c->z];"
        "create feed titled from shop as $s where $s[title contains 'x'];"
    )
    home.step()
    assert "reached" not in home.explain("kids"), "nothing has been walked yet"
    first = "<s><a><b/><n><b/></n></a><a><a><b/></a></a><no><no/></no></s>"
    home.publish("shop", [first, "<s><title>x</title></s>", "<broken>"])
    home.step()
    check("reached", home.explain("kids"))
    titled = "  reached   item: 2 nodes in 2 of 2 documents\n            title: 1 nodes in 1 of 2 documents\n"
    assert titled in home.explain("titled")
    assert home.status().streams["shop"].set_aside == 1
    with testing.open(tmp_path / "home") as again:
        again.publish("shop", ["<s><a><b/></a></s>"])
        again.step()
        check("reached_later", again.explain("kids"))
        shop = again.status().streams["shop"]
        assert (shop.elements, shop.skipped, shop.paths) == (15, 2, 4)
        assert "\n    13 elements walked, 2 skipped, distinct paths: 4" in str(again.status())


def test_explain_boxes(home: Weir) -> None:
    """Selections of several shapes form one set of boxes; conditions that are not sides of a box remain to be
    checked."""
    home.execute("create stream R (x int, y double, name string)")
    texts = {
        "a": "x > {0} and x < {1} and y <= {1}",
        "b": "x >= {0} and y > {0} and x > y",
        "c": "name = 'n{0}' and x < {1} and y != 3",
    }
    for name, where in texts.items():
        wheres = (where.format(n % 50, n % 50 + 10) for n in range(300))
        home.execute("".join(f"create query {name}{n} as select * from R where {w};" for n, w in enumerate(wheres)))
    home.step()
    check("box", home.explain("b7"))
    check("box_all", home.explain())
    home.publish("R", [{"x": i % 60, "y": i / 7, "name": f"n{i % 50}"} for i in range(500)])
    home.step()
    x, y = 25, 25 / 7
    expected = {f"a{n}" for n in range(300) if n % 50 < x < n % 50 + 10 and y <= n % 50 + 10}
    expected |= {f"b{n}" for n in range(300) if x >= n % 50 and y > n % 50}
    expected |= {f"c{n}" for n in range(300) if n % 50 == x}
    assert {r.query for r in home.results() if r.documents[0] == "R-26"} == expected


def test_golden_files_are_all_used() -> None:
    more = {"all", "early", "late", "box", "box_all", "reached", "reached_later"}
    assert {file.stem for file in GOLDEN.glob("*.txt")} == {*NAMES, *more}

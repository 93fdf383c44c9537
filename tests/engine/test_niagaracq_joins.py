"""NiagaraCQ's joins (section 3.5): two sources in one where, and a file that changes in place as one of them."""

from __future__ import annotations

from pathlib import Path

import pytest

import fishweir
from fishweir.errors import QueryError
from tests.engine.support import micro_batch

FIGURE = """
    create stream quotes; create stream companies;
    create Both where <Quote><Symbol>$s</><Price>$p</></> element_as $g in "quotes",
        <Company><Symbol>$s</><Profile>$t</></> in "companies" construct <hit price=$p>$t</hit>;
    create Cheap where <Quote><Symbol>$s</><Price>$p</></> in "quotes", <Company><Symbol>$s</><Target>$t</></>
        in "companies", $p < $t, $p > 10 construct <cheap>$s</cheap>;
    create Intel where <Quote><Symbol>"INTC"</><Price>$p</></> in "quotes",
        <Company><Symbol>$s</></> in "companies", $s = "INTC" , $p != $s construct $p;
"""


def quote(symbol: str, price: int) -> str:
    return f"<Quote><Symbol>{symbol}</Symbol><Price>{price}</Price></Quote>"


def company(symbol: str, profile: str, target: int = 50) -> str:
    content = f"<Symbol>{symbol}</Symbol><Profile>{profile}</Profile><Target>{target}</Target>"
    return f"<Company>{content}</Company>"


def outputs(weir, name: str) -> list[str]:
    return sorted(result.output for result in weir.results(name))


def test_two_sources_in_any_order(tmp_path: Path) -> None:
    with fishweir.open(tmp_path / "home") as weir:
        weir.execute(FIGURE)
        weir.publish("quotes", [quote("INTC", 20), quote("AOL", 5)], timestamps=[1.0, 2.0])
        micro_batch(weir)
        weir.publish("companies", [company("INTC", "chips"), company("AOL", "mail")], timestamps=[1e9, 1e9])
        weir.publish("quotes", [quote("AOL", 60)], timestamps=[2e9])
        micro_batch(weir)
        hits = ['<hit price="20">chips</hit>', '<hit price="5">mail</hit>', '<hit price="60">mail</hit>']
        assert outputs(weir, "Both") == hits
        assert outputs(weir, "Cheap") == ["<cheap>INTC</cheap>"]
        assert outputs(weir, "Intel") == ["20"]
        shown = weir.explain("Cheap")
        edges = "Quote.Price < Company.Target and Quote.Symbol = Company.Symbol"
        assert f"signature {edges} in quotes join companies" in shown
        assert "constants below the join, on documents (steps a document, by statistics:" in shown
        (result,) = weir.results("Cheap")
        assert result.documents == ["quotes-1", "companies-1"]
        assert result.bindings["t"]["document"] == "companies-1"


@pytest.mark.parametrize(
    ("items", "reason"),
    [
        ('<a>$x</> in "quotes", <b>$y</> in "companies"', "nothing joins the two: use a variable in both"),
        ('<a>$x</> in "quotes", <b>$x</> in "companies", <c>$x</> in "quotes"', "three and more sources"),
    ],
)
def test_refused(tmp_path: Path, items: str, reason: str) -> None:
    with fishweir.open(tmp_path / "home") as weir:
        weir.execute("create stream quotes; create stream companies;")
        with pytest.raises(QueryError, match=reason):
            weir.execute(f"create q where {items} construct $x")


def test_a_changing_file_as_the_other_side(weir, tmp_path: Path) -> None:
    """Rows that changed or went no longer meet what comes later; what came before meets the new version too."""
    file = tmp_path / "companies.xml"

    def write(*companies: str) -> None:
        file.write_text(f"<Companies>{''.join(companies)}</Companies>")
        weir.run(until_idle=True)

    def published(*quotes: str) -> list[str]:
        weir.publish("quotes", list(quotes), timestamps=[float(i) for i in range(len(quotes))])
        before = outputs(weir, "Both")
        weir.run(until_idle=True)
        after = outputs(weir, "Both")
        return [text for text in after if after.count(text) > before.count(text)]

    file.write_text(f"<Companies>{company('INTC', 'chips')}{company('AOL', 'mail')}</Companies>")
    weir.execute(f"""
        create stream quotes;
        create stream companies from '{file}' rows /Companies/Company key Symbol every 0;
        create Both where <Quote><Symbol>$s</><Price>$p</></> in "quotes",
            <Company><Symbol>$s</><Profile>$t</></> in "companies" construct <hit price=$p>$t</hit>;
        create Dear where <Quote><Symbol>$s</><Price>$p</></> in "quotes",
            <Company><Symbol>$s</><Profile>$t</></> in "companies", $p > 3 construct <hit price=$p>$t</hit>;
    """)
    weir.run(until_idle=True)
    assert published(quote("INTC", 1), quote("AOL", 2)) == ['<hit price="1">chips</hit>', '<hit price="2">mail</hit>']
    write(company("INTC", "fast chips"), company("AOL", "mail"))
    assert outputs(weir, "Both").count('<hit price="1">fast chips</hit>') == 1
    assert published(quote("INTC", 3)) == ['<hit price="3">fast chips</hit>']
    write(company("AOL", "mail"))
    assert published(quote("INTC", 4), quote("AOL", 5)) == ['<hit price="5">mail</hit>']
    assert outputs(weir, "Dear") == ['<hit price="5">mail</hit>']
    write(company("INTC", "chips again"), company("AOL", "mail"))
    assert published(quote("INTC", 6)) == ['<hit price="6">chips again</hit>']

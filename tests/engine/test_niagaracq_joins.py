"""NiagaraCQ's joins (section 3.5): two sources in one where, and a file that changes in place as one of them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from fishweir import testing
from fishweir.errors import QueryError
from fishweir.intake import open_source
from fishweir.pipeline.home import open_log

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
    with testing.open(tmp_path / "home") as weir:
        weir.execute(FIGURE)
        weir.publish("quotes", [quote("INTC", 20), quote("AOL", 5)], timestamps=[1.0, 2.0])
        weir.step()
        weir.publish("companies", [company("INTC", "chips"), company("AOL", "mail")], timestamps=[1e9, 1e9])
        weir.publish("quotes", [quote("AOL", 60)], timestamps=[2e9])
        weir.step()
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
    with testing.open(tmp_path / "home") as weir:
        weir.execute("create stream quotes; create stream companies;")
        with pytest.raises(QueryError, match=reason):
            weir.execute(f"create q where {items} construct $x")


def test_a_changing_file_as_the_other_side(tmp_path: Path) -> None:
    """Rows that changed or went no longer meet what comes later; what came before meets the new version too."""
    file = tmp_path / "companies.xml"
    file.write_text("<Companies/>")
    with testing.open(tmp_path / "home") as weir:
        weir.execute(f"""
            create stream quotes;
            create stream companies from '{file}' rows /Companies/Company key Symbol every 0;
            create Both where <Quote><Symbol>$s</><Price>$p</></> in "quotes",
                <Company><Symbol>$s</><Profile>$t</></> in "companies" construct <hit price=$p>$t</hit>;
            create Dear where <Quote><Symbol>$s</><Price>$p</></> in "quotes",
                <Company><Symbol>$s</><Profile>$t</></> in "companies", $p > 3 construct <hit price=$p>$t</hit>;
        """)
        id, stream = weir.catalog.streams()["companies"]
        weir.home.add_stream(id, stream)
        source = open_source(stream, open_log(weir.home.streams, id), tmp_path)

        def new(quotes: list[str], companies: dict[str, str] | None = None) -> list[str]:
            """What comes of a new version of the file and of quotes after it."""
            if companies is not None:
                file.write_text(f"<Companies>{''.join(company(*both) for both in companies.items())}</Companies>")
                assert sum(source.poll(time.time()))
            weir.publish("quotes", quotes, timestamps=[float(i) for i in range(len(quotes))])
            before = outputs(weir, "Both")
            weir.step()
            return [text for text in outputs(weir, "Both") if text not in before]

        hits = ['<hit price="1">chips</hit>', '<hit price="2">mail</hit>']
        assert new([quote("INTC", 1), quote("AOL", 2)], {"INTC": "chips", "AOL": "mail"}) == hits
        hits = ['<hit price="1">fast</hit>', '<hit price="3">fast</hit>']
        assert new([quote("INTC", 3)], {"INTC": "fast", "AOL": "mail"}) == hits
        assert new([quote("INTC", 4)], {"AOL": "mail"}) == []
        assert new([quote("INTC", 5), quote("AOL", 6)]) == ['<hit price="6">mail</hit>']
        assert outputs(weir, "Dear") == ['<hit price="6">mail</hit>']
        hits = [f'<hit price="{price}">back</hit>' for price in (1, 3, 4, 5, 7)]
        assert new([quote("INTC", 7)], {"INTC": "back", "AOL": "mail"}) == hits

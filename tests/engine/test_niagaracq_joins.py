"""NiagaraCQ's joins (section 3.5): several sources in one where, and a file that changes in place as one of them."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from fishweir import testing
from fishweir.algebra.documents import Document, parse_document
from fishweir.algebra.join_oracle import evaluate_join
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
        assert "constants below the join, on documents (steps per document, by statistics:" in shown
        (result,) = weir.results("Cheap")
        assert result.documents == ["quotes-1", "companies-1"]
        assert result.bindings["t"]["document"] == "companies-1"


@pytest.mark.parametrize(
    ("items", "reason"),
    [
        (
            '<a>$x</> in "quotes", <b>$y</> in "companies"',
            "quotes and companies are not joined; use a variable in both",
        ),
        (
            '<a>$x</> in "quotes", <b>$y</> in "quotes", <c>$x</> in "companies"',
            "column 50: query q: quotes is not joined with the sources before it",
        ),
    ],
)
def test_refused(tmp_path: Path, items: str, reason: str) -> None:
    with testing.open(tmp_path / "home") as weir:
        weir.execute("create stream quotes; create stream companies;")
        with pytest.raises(QueryError, match=reason):
            weir.execute(f"create q where {items} construct $x")


ITEMS = [
    '<s k=$k><a>$x</></> in "S"',
    '<t><a>$x</><b>$y</></> in "T"',
    '<s><b>$y</><c>$z</></> in "S"',
    '<t k=$k><c>$z</></> in "T"',
]
"""The first two, three or four of these are joined."""


def element(pick: random.Random, name: str) -> str:
    leaves = [leaf for leaf in "abc" for _ in range(pick.choice([0, 1, 1, 2]))]
    return (
        f"<{name} k='{pick.choice('12')}'>" + "".join(f"<{n}>{pick.choice('123')}</{n}>" for n in leaves) + f"</{name}>"
    )


def test_any_number_of_sources_equals_the_oracle(tmp_path: Path) -> None:
    """Documents arrive in any order of their times. A result names all of them and the bindings of all variables."""
    pick = random.Random(3)
    texts = {
        "Three": f"create Three where {', '.join(ITEMS[:3])} construct <r k=$k>$z</r>",
        "Four": f"create Four where {', '.join(ITEMS)}, $x > 1 construct <r>$x $y</r>",
        "Dear": f"create Dear where {', '.join(ITEMS[:3])}, $z > 2 , $k = '1' construct $y",
        "Either": f"create Either where {', '.join(ITEMS[:3])}, ($x = 1 or $z > 2) construct <e>$x</e>",
        "Less": f"create Less where {', '.join(ITEMS[:3])}, $x < $z construct <l>$x</l>",
    }
    with testing.open(tmp_path / "home") as weir:
        weir.execute("create stream S; create stream T;" + ";".join(texts.values()))
        sides: dict[str, list[Document]] = {"S": [], "T": []}
        for _ in range(4):
            for name, own in sides.items():
                given = [(element(pick, name.lower()), float(pick.randint(0, 9))) for _ in range(3)]
                ids = weir.publish(name, [text for text, _ in given], timestamps=[at for _, at in given])
                own += [Document(id, at, parse_document(t.encode())) for id, (t, at) in zip(ids, given, strict=True)]
            weir.step()
        for name in texts:
            query = weir.catalog.query(name)
            found = evaluate_join(query.shape, query.constants, [sides[b.source.name] for b in query.shape.blocks])
            expected = [
                (result.documents, sorted((v, n.id, n.value) for v, n in result.binding.items() if v[0] != "_"))
                for result in found
            ]
            got = [
                (r.documents, sorted((v, str(b["node"]), b["value"]) for v, b in r.bindings.items()))
                for r in weir.results(name)
            ]
            assert sorted(got) == sorted(expected)
            assert len(got) > 5
            assert weir.status(name).results == len(got)
        (shown,) = {r.output for r in weir.results("Dear") if r.bindings["y"]["value"] == "2"}
        assert shown == "2"
        assert "side by side, starting from each new document" in weir.explain("Four")


def test_a_changing_file_as_the_other_side(tmp_path: Path) -> None:
    """Changed or deleted rows do not join later documents; earlier documents also join the new version."""
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
            """The results of a new version of the file and of quotes after it."""
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

"""The oracle on the paper's figures and on small documents worked by hand."""

from __future__ import annotations

import pytest

from fishweir.algebra.construct import construct
from fishweir.algebra.documents import Document, parse_document
from fishweir.algebra.nodes import CreateQuery
from fishweir.algebra.oracle import evaluate
from fishweir.languages.script import parse_script

QUOTES = """<Quotes>
<Quote><Symbol>INTC</Symbol><Current_Price>95</Current_Price><Change_Ratio>0.06</Change_Ratio></Quote>
<Quote><Symbol>MSFT</Symbol><Current_Price>105.5</Current_Price><Change_Ratio>-0.1</Change_Ratio></Quote>
<Quote><Symbol>INTC</Symbol><Current_Price>n/a</Current_Price><Change_Ratio>0.05</Change_Ratio></Quote>
<Quote><Symbol>AOL</Symbol><Current_Price>99.99</Current_Price><Change_Ratio>5e-1</Change_Ratio></Quote>
</Quotes>"""
# Node ids: 0 Quotes; 1 Quote, 2-4 its children; 5, 9, 13 the other Quotes.

INTEL = "Where <Quotes> <Quote> <Symbol>INTC</> </> </> element_as $g in “quotes.xml” construct $g"
PER_QUOTE = "where <Quotes><Quote><Symbol>INTC</></> element_as $g </> in 'quotes.xml' construct $g"
RISEN = "Where <Quotes><Quote> <Change_Ratio>$c</></> element_as $g </> In “quotes.xml”, $c > 0.05 Construct $g"
BELOW_100 = """Where <Quotes><Quote><Symbol>”INTC”</> <Current_Price>$p</></>  element_as $g </>
    in “quotes.xml”, $p < 100 Construct $g"""


def found(text: str, document: str = QUOTES, context: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """The node ids of each result, in order."""
    (query,) = parse_script(text)
    assert isinstance(query, CreateQuery)
    parsed = Document("d", 0.0, parse_document(document.encode()), context)
    return [tuple(node.id for node in b.values()) for b in evaluate(query.shape, query.constants, parsed)]


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        (INTEL, [("0",)]),
        (INTEL.replace("INTC", "MSFT"), [("0",)]),
        (INTEL.replace("INTC", "IBM"), []),
        (PER_QUOTE, [("1",), ("9",)]),
        (RISEN, [("1",), ("13",)]),
        (BELOW_100, [("1",)]),
        (BELOW_100.replace("< 100", "!= 95"), []),
        (BELOW_100.replace("< 100", '< "a"'), [("1",)]),
    ],
)
def test_figures_3_1_3_9_and_3_10(text: str, nodes: list[tuple[str, ...]]) -> None:
    assert found(text) == nodes


def test_figure_3_10_constructs_the_quote() -> None:
    (query,) = parse_script(BELOW_100)
    assert isinstance(query, CreateQuery)
    document = Document("d", 0.0, parse_document(QUOTES.encode()))
    (binding,) = evaluate(query.shape, query.constants, document)
    bound = {name: (node.element, None) for name, node in binding.items()}
    expected = "<Quote><Symbol>INTC</Symbol><Current_Price>95</Current_Price><Change_Ratio>0.06</Change_Ratio></Quote>"
    assert construct(query.shape.output, bound) == expected


def test_split_documents_know_what_stood_above() -> None:
    quote = "<Quote><Symbol>INTC</Symbol></Quote>"
    assert found(PER_QUOTE, quote, ("Quotes",)) == [("0",)]
    assert found(PER_QUOTE, quote, ("Other",)) == []
    assert found(PER_QUOTE, quote) == []
    assert found(PER_QUOTE, quote, ("Market", "Quotes")) == [("0",)]
    assert found(INTEL, quote, ("Quotes",)) == [("0",)]


@pytest.mark.parametrize(
    ("text", "document", "nodes"),
    [
        # One result per binding of the output variable, however many ways lead to it.
        ("where <a><b/><c>$x</></> in 's' construct $x", "<a><b/><b/><c>1</c><c>2</c></a>", [("3",), ("4",)]),
        # Siblings of a pattern may bind the same node.
        (
            "where <a><b>$x</><b>$y</></> in 's' construct $x, $y",
            "<a><b/><b/></a>",
            [("1", "1"), ("1", "2"), ("2", "1"), ("2", "2")],
        ),
        # Conditions hold within one binding, not across.
        (
            "where <a><b><k>1</><v>$v</></></> in 's', $v > 5 construct $v",
            "<a><b><k>1</k><v>3</v></b><b><k>2</k><v>9</v></b></a>",
            [],
        ),
        # A variable twice means equal values.
        ("where <a><b>$x</><c>$x</></> in 's' construct $x", "<a><b>1</b><b>2</b><c>2</c></a>", [("2",)]),
        # Order compares numbers, equality texts.
        ("where <a><b>$x</><c>$y</></> in 's', $x < $y construct $x", "<a><b>9</b><b>x</b><c>10</c></a>", [("1",)]),
        ("where <a><b>$x</><c>$y</></> in 's', $x != $y construct $x", "<a><b>1</b><b>1.0</b><c>1</c></a>", [("2",)]),
        # Attributes have their element's id.
        ("where <a><b k=$k></></> in 's', $k = '1' construct $k", "<a><b k='2'/><b k='1'/></a>", [("2@k",)]),
        # No output variable: one result for the document.
        ("where <a><b/></> in 's' construct <yes/>", "<a><b/><b/></a>", [()]),
        # The pattern begins at the document element, not below it.
        ("where <b/> element_as $x in 's' construct $x", "<a><b/></a>", []),
    ],
)
def test_small_documents(text: str, document: str, nodes: list[tuple[str, ...]]) -> None:
    assert found(text, document) == nodes

"""Outputs: elements copied whole, content, attributes, and texts that survive a parser."""

from __future__ import annotations

import pytest
from hypothesis import given
from lxml import etree

from fishweir.algebra.construct import construct, value_of
from fishweir.algebra.documents import parse_document
from fishweir.algebra.nodes import ElementOutput, TextOutput, VariableOutput
from tests import strategies as st

DOCUMENT = parse_document(b'<a k="1&lt;2"><b>x &amp; y<c/>tail</b><!--why--><d>5</d>end</a>', comments=True)
A, B, D = (DOCUMENT, None), (DOCUMENT[0], None), (DOCUMENT[2], None)
BOUND = {"a": A, "b": B, "d": D, "k": (DOCUMENT, "k")}

xml_texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]) | st.sampled_from("\t\n\r<>&\"'"))


@pytest.mark.parametrize(
    ("output", "text"),
    [
        (VariableOutput("b"), "<b>x &amp; y<c/>tail</b>"),
        (VariableOutput("b", content=True), "x &amp; y<c/>tail"),
        (VariableOutput("d", content=True), "5"),
        (VariableOutput("a", content=True), "<b>x &amp; y<c/>tail</b><!--why--><d>5</d>end"),
        (VariableOutput("k"), "1&lt;2"),
        (VariableOutput("k", content=True), "1&lt;2"),
        (TextOutput("<&>"), "&lt;&amp;&gt;"),
        (ElementOutput("r"), "<r/>"),
        (ElementOutput("r", (("by", VariableOutput("d")), ("to", TextOutput('"<')))), '<r by="5" to=\'"&lt;\'/>'),
        (ElementOutput("r", (), (TextOutput("p "), VariableOutput("d"))), "<r>p <d>5</d></r>"),
    ],
)
def test_one_part(output, text: str) -> None:  # type: ignore[no-untyped-def]
    assert construct((output,), BOUND) == text


def test_parts_are_joined_without_space() -> None:
    assert construct((VariableOutput("d"), TextOutput("-"), VariableOutput("d")), BOUND) == "<d>5</d>-<d>5</d>"


def test_without_output_the_text_is_empty() -> None:
    assert construct((), BOUND) == ""


def test_copied_elements_keep_their_namespaces() -> None:
    root = parse_document(b'<p:a xmlns:p="u"><p:b p:k="1">x</p:b></p:a>')
    copied = etree.fromstring(construct((VariableOutput("b"),), {"b": (root[0], None)}))
    assert (copied.tag, copied.text) == ("{u}b", "x")
    assert construct((VariableOutput("k"),), {"k": (root[0], "k")}) == "1"


def test_string_values_leave_comments_out() -> None:
    assert value_of(A) == "x & ytail5end"
    assert value_of((parse_document(b"<a>1<!--x-->2<?p q?>3</a>", comments=True), None)) == "123"


def test_an_absent_attribute_is_empty() -> None:
    assert value_of((DOCUMENT, "absent")) == ""


@given(xml_texts, xml_texts, xml_texts)
def test_constructed_values_survive_a_parser(text: str, attribute: str, value: str) -> None:
    element = etree.Element("v")
    element.text = value
    element.set("k", attribute)
    bound = {"v": (element, None), "k": (element, "k")}
    output = ElementOutput(
        "r",
        (("x", TextOutput(text)), ("y", VariableOutput("k")), ("z", VariableOutput("v"))),
        (
            ElementOutput("t", (), (TextOutput(text),)),
            ElementOutput("c", (), (VariableOutput("v", content=True),)),
            VariableOutput("v"),
            ElementOutput("k", (), (VariableOutput("k"),)),
        ),
    )
    read = etree.fromstring(construct((output,), bound))
    assert [read.get("x"), read.get("y"), read.get("z")] == [text, attribute, value]
    assert [(child.text or "") for child in read] == [text, value, value, attribute]

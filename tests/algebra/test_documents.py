"""Documents: safe parsing, ids, string values, simple paths, tuples as flat documents."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from lxml import etree

from fishweir.algebra.documents import (
    MAX_DOCUMENT,
    BadDocument,
    at_path,
    elements,
    first_value,
    local_name,
    parse_document,
    string_value,
    text_to_body,
    tuple_to_document,
)
from fishweir.algebra.nodes import Step
from fishweir.algebra.simple_paths import parse_path, xml_name
from fishweir.errors import QueryError
from tests import strategies as st
from tests.generators import documents

QUOTES = parse_document(
    b'<Quotes at="noon"><Quote id="7"><Symbol>INTC</Symbol></Quote>'
    b'<Quote><Symbol>MSFT</Symbol><Price c="USD">5</Price></Quote></Quotes>'
)


def test_ids_are_preorder_positions() -> None:
    assert [e.tag for e in elements(QUOTES)] == ["Quotes", "Quote", "Symbol", "Quote", "Symbol", "Price"]


@given(documents())
def test_comments_change_neither_ids_nor_values(text: str) -> None:
    without, kept = parse_document(text.encode()), parse_document(text.encode(), comments=True)
    assert [e.tag for e in elements(without)] == [e.tag for e in elements(kept)]
    by_xpath = [str(e.xpath("string()")) for e in elements(kept)]
    assert [string_value(e) for e in elements(without)] == by_xpath


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("<a/>", ""),
        ("<a>x</a>", "x"),
        ("<a>1<b>2<c>3</c>4</b>5</a>", "12345"),
        ("<a>1<!--2-->3</a>", "13"),
        ("<a>1<?p 2?>3<b/>4</a>", "134"),
        ("<a><![CDATA[<&>]]>!</a>", "<&>!"),
        ("<a> 1 </a>", " 1 "),
        ('<!DOCTYPE a [<!ENTITY e "v">]><a>&e;</a>', "v"),
        ("<a>&#233;</a>", "é"),
    ],
)
def test_string_values(text: str, value: str) -> None:
    assert string_value(parse_document(text.encode())) == value


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "empty"),
        (b" \n ", "empty"),
        (b"<a>", "not well-formed"),
        (b"<a/><b/>", "not well-formed"),
        (b"no xml", "not well-formed"),
        (b"<a>&x;</a>", "external entities are not loaded"),
        (b'<?xml version="1.0" encoding="klingon"?><a/>', "not well-formed"),
        (b"<a>" * 300 + b"</a>" * 300, "not well-formed"),
        (b"<a>\x00</a>", "not well-formed"),
    ],
)
def test_bad_documents_have_a_reason(body: bytes, reason: str) -> None:
    with pytest.raises(BadDocument, match=reason):
        parse_document(body)


def test_a_document_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fishweir.algebra.documents.MAX_DOCUMENT", 10)
    with pytest.raises(BadDocument, match="11 bytes, more than 10"):
        parse_document(b"<a>1234</a>")
    assert MAX_DOCUMENT > 10


def test_external_entities_are_not_read(tmp_path) -> None:  # type: ignore[no-untyped-def]
    secret = tmp_path / "secret"
    secret.write_text("hidden")
    text = f'<!DOCTYPE a [<!ENTITY e SYSTEM "{secret.as_uri()}">]><a>&e;</a>'
    with suppress(BadDocument):
        assert "hidden" not in string_value(parse_document(text.encode()))


def test_entities_do_not_explode() -> None:
    levels = "".join(f'<!ENTITY e{i} "{f"&e{i - 1};" * 10}">' for i in range(1, 10))
    text = f'<!DOCTYPE a [<!ENTITY e0 "lol">{levels}]><a>&e9;</a>'
    with pytest.raises(BadDocument):
        parse_document(text.encode())


@pytest.mark.parametrize(
    "declared", ['<?xml version="1.0" encoding="latin-1"?>', "<?xml version='1.0' encoding='utf-16' ?>", ""]
)
def test_a_text_is_utf8_regardless_of_its_declaration(declared: str) -> None:
    assert string_value(parse_document(text_to_body(f"{declared}<a>é</a>"))) == "é"


@pytest.mark.parametrize(
    ("text", "steps", "absolute"),
    [
        ("/Quotes/Quote", ["Quotes", "Quote"], True),
        ("Quote", ["Quote"], False),
        ("//item", ["item"], False),
        ("@id", ["@id"], False),
        ("Quote/@id", ["Quote", "@id"], False),
        ("a/*/b", ["a", "*", "b"], False),
        ("/p:a/p:b", ["a", "b"], True),
        ("/a/", ["a"], True),
    ],
)
def test_paths(text: str, steps: list[str], absolute: bool) -> None:
    path = parse_path(text)
    assert ([str(step) for step in path.steps], path.absolute) == (steps, absolute)
    assert path.last == steps[-1].lstrip("@")


@pytest.mark.parametrize("text", ["", "/", "//", "a//b", "@a/b", "a b", "a[1]", "a/@", "$x", "a/..(b)"])
def test_texts_that_are_not_paths(text: str) -> None:
    with pytest.raises(QueryError, match="is not a path"):
        parse_path(text)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("/Quotes/Quote/Symbol", "INTC"),
        ("Symbol", "INTC"),
        ("Quote/Price", "5"),
        ("//Price", "5"),
        ("/Quotes/@at", "noon"),
        ("@at", "noon"),
        ("Quote/@id", "7"),
        ("@c", "USD"),
        ("/Quotes/*/Price", "5"),
        ("Quotes", "INTCMSFT5"),
        ("/Quote", None),
        ("Absent", None),
        ("Quote/@absent", None),
        ("/Quotes/Symbol", None),
    ],
)
def test_first_value(path: str, value: str | None) -> None:
    assert first_value(QUOTES, parse_path(path)) == value


def test_at_path() -> None:
    quote, symbol = QUOTES[0], QUOTES[0][0]
    assert at_path(quote, parse_path("/Quotes/Quote"))
    assert at_path(symbol, parse_path("Quote/Symbol"))
    assert not at_path(symbol, parse_path("/Quote/Symbol"))
    assert not at_path(quote, parse_path("Symbol"))


def test_names_without_namespace_match_any() -> None:
    root = parse_document(b'<x:a xmlns:x="u" x:k="1"><b xmlns="v">2</b></x:a>')
    assert local_name(root.tag) == "a"
    assert first_value(root, parse_path("/a/b")) == "2"
    assert first_value(root, parse_path("/a/@k")) == "1"


def test_a_tuple_is_a_flat_document() -> None:
    root = tuple_to_document("my stream", {"x": 5.0, "n": None, "2nd": True, "s": "a\x00<b"})
    assert etree.tostring(root, encoding="unicode") == (
        "<my_stream><x>5</x><_2nd>true</_2nd><s>a\ufffd&lt;b</s></my_stream>"
    )


@given(st.text(min_size=1))
def test_any_name_becomes_an_element_name(name: str) -> None:
    assert etree.Element(xml_name(name)).tag == xml_name(name)


def test_steps_are_written_as_they_are_read() -> None:
    assert str(Step("k", "attribute")) == "@k"
    assert str(Step("k")) == "k"

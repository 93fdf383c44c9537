"""Values and markup from the compiled pass equal those of libxml2 byte for byte, or are left to libxml2."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from xml.sax.saxutils import quoteattr

import numpy as np
import pyarrow as pa
import pytest

from fishweir.algebra.construct import element_text, node_text
from fishweir.algebra.documents import Element, attributes_named, elements, parse_document, string_value
from fishweir.evaluate.witnesses.automaton import subtrees
from fishweir.evaluate.witnesses.automaton.subtree_kernels import ATTRIBUTE, CONTENT, LITERAL, MARKUP, QUOTED, VALUE
from fishweir.evaluate.witnesses.automaton.subtrees import Bodies, Part, Request
from tests.evaluate.witnesses.automaton.support import real_bodies

SHOWN: dict[int, Callable[[Element], str]] = {
    VALUE: string_value,
    MARKUP: element_text,
    CONTENT: lambda element: node_text((element, None), content=True),
}
TEXTS = [
    "x", "a b", " ", "\n", "&lt;", "&gt;", ">", "&amp;", "&quot;", "'", '"', "&#10;", "&#13;", "&#9;", "&#x20AC;", "€",
    "\r\n", "\r", "<![CDATA[<a>&]]>", "<![CDATA[x\r\ny]]>", "<![CDATA[]]>", "<!-- c > & -->", "<!--\r\n-->", "<?pi x?>",
    "]]", "𝄞", "&#60;", "\u2028", "\x7f", "&#133;",
]  # fmt: skip
VALUES = ["v", "", ">", "&lt;", "&amp;", "&quot;", "'", "&#10;", "&#9;", "&#13;", " a  b ", "\n", "\r\n", "é", "x\ty"]
URIS = ["http://a.org/x", "urn:b:c", "http://www.c.org/y#", "d"]


def document(draw: random.Random) -> bytes:
    before = draw.choice(["", "", '<?xml version="1.0"?>', "<!-- x -->", " \n"])
    return (before + element(draw, 0, {}) + draw.choice(["", "\n", "<!--e-->"])).encode()


def element(draw: random.Random, depth: int, scope: dict[str, str]) -> str:
    declared = {prefix: draw.choice(URIS) for prefix in draw.sample(["", "p", "q"], draw.choice((0, 0, 0, 1, 2)))}
    if declared.get("") and draw.random() < 0.1:
        declared[""] = ""
    scope = scope | declared
    prefixes = [f"{prefix}:" for prefix in scope if prefix]
    attributes = [(f"xmlns:{prefix}" if prefix else "xmlns", uri) for prefix, uri in declared.items()]
    for name in draw.sample(["a", "id", "lang"], draw.choice((0, 0, 1, 2))):
        prefix = draw.choice(["", "", *prefixes]) if name != "lang" else "xml:"
        attributes.append((prefix + name, "".join(draw.choices(VALUES, k=draw.choice((0, 1, 2))))))
    draw.shuffle(attributes)
    name = draw.choice(["", "", *prefixes]) + draw.choice("abc")
    tag = name + "".join(attribute(draw, *one) for one in attributes) + draw.choice(["", "", " "])
    if draw.random() < 0.2:
        return f"<{tag}/>"
    inside = "".join(
        draw.choice(TEXTS) if depth > 4 or draw.random() < 0.6 else element(draw, depth + 1, scope)
        for _ in range(draw.choice((0, 1, 2, 3, 5)))
    )
    return f"<{tag}>{inside}</{name}{draw.choice(['', '', ' '])}>"


def attribute(draw: random.Random, name: str, value: str) -> str:
    quote = draw.choice("\"'")
    return (
        f"{draw.choice([' ', ' ', '  '])}{name}{draw.choice(['=', '=', ' = '])}{quote}{value.replace(quote, '')}{quote}"
    )


def nodes_of(
    bodies: Sequence[bytes], ordinary: Sequence[bool], most: int
) -> tuple[list[tuple[int, int]], list[Element]]:
    """All nodes of the ordinary documents, or `most` of each."""
    places, found = [], []
    for document, body in enumerate(bodies):
        every = list(elements(parse_document(body, comments=True))) if ordinary[document] else []
        for node in range(0, len(every), max(len(every) // most, 1)):
            places.append((document, node))
            found.append(every[node])
    return places, found


def compared(bodies: Sequence[bytes], most: int = 100) -> dict[int, float]:
    """Compares all outputs. Returns the share of nodes that is left to libxml2, by kind of output."""
    read = Bodies.of(pa.array(bodies, pa.large_binary()))
    places, nodes = nodes_of(bodies, read.ordinary.tolist(), most)
    documents, positions = np.array(places, np.int64).reshape(-1, 2).T.copy()
    left = {}
    for what, shown in SHOWN.items():
        texts, refused = read.take(documents, positions, what)
        texts.validate(full=True)
        for text, is_left, node, place in zip(texts.to_pylist(), refused.tolist(), nodes, places, strict=True):
            assert is_left or text == shown(node), (place, bodies[place[0]][:2000])
        left[what] = float(refused.mean())
    for name in ("id", "lang"):
        texts, refused = read.take(documents, positions, ATTRIBUTE, name)
        for text, is_left, node in zip(texts.to_pylist(), refused.tolist(), nodes, strict=True):
            keys = attributes_named(node, name)
            assert is_left == (not keys)
            assert is_left or text == node.get(keys[0])
    return left


def test_random_documents() -> None:
    draw = random.Random(1)
    left = compared([document(draw) for _ in range(1500)])
    assert left[VALUE] == 0
    assert left[MARKUP] < 0.3


def test_real_documents() -> None:
    bodies = [body for body in real_bodies() if len(body) < 100_000]
    if not bodies:
        pytest.skip("no xml_docs and feed_docs: set FISHWEIR_DATA")
    left = compared(bodies[::5], most=20)
    assert left[VALUE] == 0
    assert left[MARKUP] < 0.1


def test_room_for_long_texts() -> None:
    """The output is longer than the document, and some nodes contain others."""
    inner = "<b>" + ">" * 100_000 + "</b>"
    assert compared([f"<a>{inner * 3}</a>".encode(), b"<a/>", f"<a>{inner}</a>".encode()])[MARKUP] == 0


def test_other_documents_are_left_to_libxml2() -> None:
    read = Bodies.of(pa.array([b"<a>&e;</a>", None, b"<a>1</a>", b"<a"], pa.large_binary()))
    texts, refused = read.take(np.arange(4), np.zeros(4, np.int64), VALUE)
    assert refused.tolist() == [True, True, False, True]
    assert texts.to_pylist() == ["", "", "1", ""]


@pytest.mark.parametrize("at_first", [subtrees.AT_FIRST, 300])
def test_one_pass_for_several_requests(monkeypatch: pytest.MonkeyPatch, at_first: int) -> None:
    """Several requests for the same documents agree with single requests, even if the buffers must grow."""
    draw = random.Random(3)
    bodies = [document(draw) for _ in range(200)] + [b"<a>" + b"<b>&gt;</b>" * 400 + b"</a>"]
    read = Bodies.of(pa.array(bodies, pa.large_binary()))
    places, _ = nodes_of(bodies, read.ordinary.tolist(), 400)
    requests = []
    for what in (VALUE, MARKUP, CONTENT, ATTRIBUTE, MARKUP):
        chosen = sorted(draw.sample(places, len(places) // 2))
        documents, positions = np.array(chosen, np.int64).reshape(-1, 2).T.copy()
        requests.append(Request(documents, [Part(what, positions, "id" if what == ATTRIBUTE else "")]))
    alone_each = [read.take_all([request])[0] for request in requests]
    monkeypatch.setattr(subtrees, "AT_FIRST", at_first)
    for (alone, left), (texts, refused) in zip(alone_each, read.take_all(requests), strict=True):
        assert texts.equals(alone)
        assert refused.tolist() == left.tolist()
        assert not refused.all()


@pytest.mark.parametrize("at_first", [subtrees.AT_FIRST, 100])
def test_rows_of_several_parts(monkeypatch: pytest.MonkeyPatch, at_first: int) -> None:
    """A row has several texts, and a text several parts. If one of them is refused, the whole row is."""
    monkeypatch.setattr(subtrees, "AT_FIRST", at_first)
    draw = random.Random(5)
    bodies = [document(draw) for _ in range(300)] + [b"<a>&e;</a>"]
    read = Bodies.of(pa.array(bodies, pa.large_binary()))
    places, nodes = nodes_of(bodies, [*read.ordinary[:-1].tolist(), False], 5)
    other = draw.choices(range(len(places)), k=len(places))
    other = [k if places[k][0] == places[i][0] else i for i, k in enumerate(other)]
    documents, one = np.array([*places, (len(bodies) - 1, 0)], np.int64).T.copy()
    two = np.array([*(places[k][1] for k in other), 0], np.int64)
    parts = [
        Part(LITERAL, text="<é by=", closes=False), Part(QUOTED, one, closes=False), Part(MARKUP, two),
        Part(VALUE, two), Part(CONTENT, one, closes=False), Part(LITERAL, text="."),
    ]  # fmt: skip
    texts, refused = read.take_all([Request(documents, parts)])[0]
    texts.validate(full=True)
    rows = np.array(texts.to_pylist()).reshape(-1, 3).tolist()
    left = [read.take(documents, *shown)[1] for shown in ((two, MARKUP), (one, CONTENT))]
    assert refused.tolist() == (left[0] | left[1]).tolist()
    assert 0.1 < refused.mean() < 0.9
    for row, is_left, node, k in zip(rows[:-1], refused[:-1].tolist(), nodes, other, strict=True):
        expected = [
            f"<é by={quoteattr(string_value(node))}{element_text(nodes[k])}",
            string_value(nodes[k]),
            SHOWN[CONTENT](node) + ".",
        ]
        assert row == (["", "", ""] if is_left else expected)
    assert rows[-1] == ["", "", ""]


MARKED = ["", "&amp;", ">", "\r", "\n\t", "é", "]]", "'", '"', "<!--x-->", "<b/>", "<![CDATA[<]]>"]


@pytest.mark.parametrize("size", [0, 1, 30, 31, 32, 33, 63, 64, 65])
def test_blocks_of_bytes(size: int) -> None:
    """Marks before, at and after the ends of blocks, also at the end of the data."""
    for mark in MARKED:
        value = mark if mark[:1] != "<" and mark != '"' else ""
        text = "x" * size + mark + "y" * size
        bodies = [f'<a{"n" * size} k="{"v" * size}{value}">{text}</a{"n" * size}>'.encode()] * 2
        assert Bodies.of(pa.array(bodies, pa.large_binary())).ordinary.all()
        assert compared(bodies)[VALUE] == 0


@pytest.mark.parametrize("size", [0, 1, 30, 31, 32, 33, 64])
@pytest.mark.parametrize("wrong", ["\x01", "&", "&e;", "]]>", "\x00"])
def test_wrong_characters_in_blocks(size: int, wrong: str) -> None:
    """They are found wherever they are, and texts do not end in the next document."""
    plain = "x" * size
    bodies = [f"<a>{plain}{wrong}{plain}</a>", f"<a>{plain}", f"<{plain}a>1</{plain}b>", f"<a>{plain}</a>"]
    if wrong != "]]>":
        bodies.insert(0, f"<a k='{plain}{wrong}'/>")
    read = Bodies.of(pa.array([body.encode() for body in bodies], pa.large_binary()))
    assert read.ordinary.tolist() == [False] * (len(bodies) - 1) + [True]

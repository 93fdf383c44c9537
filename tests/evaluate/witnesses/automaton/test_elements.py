"""Serialized documents read by the kernel are what lxml's tree says they are."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from fishweir.algebra.documents import parse_document, string_value
from fishweir.evaluate.witnesses.automaton import automaton, walk
from fishweir.evaluate.witnesses.automaton.automaton import PathAutomaton
from fishweir.evaluate.witnesses.automaton.elements import Names
from fishweir.evaluate.witnesses.automaton.xpath import parse_xpath

NAMES = st.sampled_from(["a", "b", "ü", "x-y.z", "{urn:1}a", "{urn:2}b", "{urn:x?y&z}c"])
TEXTS = st.text(st.sampled_from("ab \n\t\r<>&\"'é€𝄞]"), max_size=8)


@st.composite
def elements(draw, depth=3):
    element = etree.Element(draw(NAMES), nsmap=draw(st.sampled_from([None, {None: "urn:1"}, {"p": "urn:2"}])))
    for name in draw(st.lists(st.one_of(NAMES, st.just("{http://www.w3.org/XML/1998/namespace}lang")), max_size=3)):
        element.set(name, draw(TEXTS))
    element.text = draw(TEXTS)
    for _ in range(draw(st.integers(0, 3)) if depth else 0):
        kind = draw(st.sampled_from(["element", "element", "element", "comment", "instruction"]))
        if kind == "element":
            child = draw(elements(depth - 1))
        else:
            child = etree.Comment(" <x> & ") if kind == "comment" else etree.ProcessingInstruction("go", "a > b <?")
        child.tail = draw(TEXTS)
        element.append(child)
    return element


def as_lxml_says(roots):
    return [
        [
            (node.tag, list(node.attrib.items()), string_value(node), len(list(node.iter("*"))))
            for node in root.iter(etree.Element)
        ]
        for root in roots
    ]


def as_read(names, roots):
    found = names.read([etree.tostring(root, encoding="utf-8", with_tail=False) for root in roots])
    documents = []
    for first, last in zip(found.firsts[:-1].tolist(), found.firsts[1:].tolist(), strict=True):
        nodes = []
        for i in range(first, last):
            name, parent, end, attribute, begin, stop = found.elements[i].tolist()
            own = found.attributes[attribute : found.elements[i + 1, 3]].tolist()
            values = [(names.names[n], found.values[a:b].tobytes().decode()) for n, a, b in own]
            assert parent == -1 if i == first else first <= parent < i < end <= found.elements[parent, 2]
            nodes.append((names.names[name], values, found.texts[begin:stop].tobytes().decode(), end - i))
        documents.append(nodes)
    return documents


@settings(max_examples=150)
@given(st.lists(elements(), min_size=1, max_size=4))
def test_documents_are_read_as_lxml_has_them(built):
    roots = [parse_document(etree.tostring(root, encoding="utf-8"), comments=True) for root in built]
    names = Names(2)  # grows
    for _ in range(2):
        assert as_read(names, roots) == as_lxml_says(roots)


@pytest.mark.parametrize(
    "body",
    [
        b"<a><![CDATA[<b>&amp;]]]]><![CDATA[>]]></a>",
        b'<!DOCTYPE a [<!ENTITY e "x&#38;#60;y"><!ATTLIST a d CDATA "given">]><a>&e;<b c="&e;"/></a>',
        '<?xml version="1.0" encoding="iso-8859-1"?><a ü="é">ß</a>'.encode("iso-8859-1"),
        b"<a>\r\n<b c='\"&#10;&#9;x'/>&#13;&#x1D11E;</a>",
        b'<p:a xmlns:p="urn:1" xmlns="urn:2"><b xmlns="" p:k="1" k="2"><p:c xmlns:p="urn:3"/></b><p:c/></p:a>',
        b"<a" + b" " * 40 + b"b  =  'c'\n\t/>",
    ],
)
def test_documents_as_people_write_them(body):
    root = parse_document(body)
    assert as_read(Names(), [root]) == as_lxml_says([root])


def test_a_part_of_a_document_takes_its_namespaces_along():
    root = parse_document(b'<a xmlns="urn:1" xmlns:p="urn:2"><b p:k="v"><c/></b>tail</a>')
    assert as_read(Names(), [root[0]]) == as_lxml_says([root[0]])


def test_documents_are_walked_in_parts(monkeypatch):
    """However many are read at once, the batch is the same."""
    bodies = [b"<r><a k='%d'>%d<b/></a><c><a/></c></r>" % (i, i) for i in range(20)]
    found = []
    for at_once in (walk.AT_ONCE, 100, 1):
        monkeypatch.setattr(walk, "AT_ONCE", at_once)
        automaton = PathAutomaton()
        ids = [automaton.add(parse_xpath(text, {}), values=True) for text in ("//a", "/r/a/@k", "//c/a", "//b")]
        batch = automaton.run([parse_document(body) for body in bodies])
        nodes = [batch.chains(id) for id in ids]
        rows = [(n.documents.tolist(), n.nodes.tolist(), batch.texts(n)) for n in nodes]
        found.append((rows, batch.elements, batch.skipped))
    assert found[0] == found[1] == found[2]


def test_names_without_end_are_forgotten(monkeypatch):
    """Each document has namespaces of its own; the table of names does not grow for ever."""
    monkeypatch.setattr(automaton, "NAMES", 50)
    shared = PathAutomaton()
    id = shared.add(parse_xpath("//*[@k]/b", {}))
    for i in range(60):
        body = f"<a xmlns:x='urn:{i}' xmlns:y='urn:y{i}' k='1'><b/><x:b><b/></x:b></a>"
        batch = shared.run([parse_document(body.encode())])
        assert batch.nodes(id).nodes.tolist() == [[1]]
        assert len(shared.steps.names.names) < 60

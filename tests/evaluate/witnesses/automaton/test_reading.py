"""The walk agrees with lxml's tree, for documents as received and as written by libxml2; the check passes only what
libxml2 accepts."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from lxml import etree

from fishweir.algebra.documents import ATTRIBUTE, BadDocument, parse_document, string_value
from fishweir.evaluate.witnesses.automaton import automaton, walk
from fishweir.evaluate.witnesses.automaton.automaton import PathAutomaton
from fishweir.evaluate.witnesses.automaton.checking import are_ordinary
from fishweir.evaluate.witnesses.automaton.names import Names
from fishweir.evaluate.witnesses.automaton.pattern import NameTest, PathStep, Pattern
from fishweir.evaluate.witnesses.automaton.xpath import parse_xpath
from tests import strategies as st
from tests.evaluate.witnesses.automaton.support import real_bodies

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


def as_lxml_says(root):
    nodes = list(root.iter(etree.Element))
    values = [(node.tag, string_value(node)) for node in nodes]
    return values, sorted((i, str(key), node.attrib[key]) for i, node in enumerate(nodes) for key in node.attrib)


def anything(test=None, attribute=False):
    return Pattern((PathStep(test or NameTest(None), True, attribute),))


def split_tag(tag):
    """Local name and namespace."""
    return tag[1:].split("}")[::-1] if tag[0] == "{" else (tag, "")


def as_read(contents, tags, names=None):
    """All elements and attributes with their values, by document."""
    shared = PathAutomaton()
    shared.steps.names = names or shared.steps.names
    every, keys = shared.add(anything(), True), shared.add(anything(attribute=True), True)
    named = {tag: shared.add(anything(NameTest(*split_tag(tag)))) for tag in tags}
    batch = shared.run(contents)
    found = [([], []) for _ in contents]
    tag_at = {}
    for tag, id in named.items():
        nodes = batch.nodes(id)
        tag_at |= dict.fromkeys(zip(nodes.documents.tolist(), nodes.nodes[:, 0].tolist(), strict=True), tag)
    nodes = batch.nodes(every)
    for d, n, text in zip(nodes.documents.tolist(), nodes.nodes[:, 0].tolist(), batch.texts(nodes), strict=True):
        assert n == len(found[d][0])
        found[d][0].append((tag_at[d, n], text))
    nodes = batch.nodes(keys)
    for d, row, text in zip(nodes.documents.tolist(), nodes.rows.tolist(), batch.texts(nodes), strict=True):
        found[d][1].append((int(batch.rows.positions[row]) % ATTRIBUTE, batch.rows.name_of(row), text))
    return [(values, sorted(attributes)) for values, attributes in found]


def check_reading(contents, roots, names=None):
    tags = {node.tag for root in roots for node in root.iter(etree.Element)}
    assert as_read(contents, tags, names) == [as_lxml_says(root) for root in roots]
    check_skipping(contents, roots)


def check_skipping(contents, roots):
    """The numbers of the document element's children do not change if their content is skipped."""
    shared = PathAutomaton()
    path = shared.add(parse_xpath("/*/*", {}))
    batch = shared.run(contents)
    found = [[] for _ in contents]
    for document, node in zip(
        batch.nodes(path).documents.tolist(), batch.nodes(path).nodes[:, 0].tolist(), strict=True
    ):
        found[document].append(node)
    for nodes, root in zip(found, roots, strict=True):
        assert nodes == [i for i, node in enumerate(root.iter(etree.Element)) if node.getparent() is root]
    assert batch.elements == sum(1 for root in roots for _ in root.iter(etree.Element))


def test_subtrees_with_elements_of_their_own_name_are_skipped():
    bodies = [
        b"<r><a><a/><a >1<a></a ></a>x<ab></ab><a b='>/'/><!-- </a> --><![CDATA[</a>]]><?p </a>?></a><a/>"
        b"<b><a/></b></r>",
        b"<p:r xmlns:p='u'><p:a><a></a><p:ab/><p:a\n/></p:a\n><a><p:a></p:a></a></p:r>",
    ]
    assert are_ordinary(bodies).all()
    check_reading(bodies, [parse_document(body) for body in bodies])


@st.examples(60)
@given(st.lists(elements(), min_size=1, max_size=4))
def test_documents_are_read_as_by_lxml(built):
    bodies = [etree.tostring(root, encoding="utf-8") for root in built]
    roots = [parse_document(body, comments=True) for body in bodies]
    check_reading(roots, [parse_document(body) for body in bodies], Names(2))  # names grow
    check_reading(bodies, [parse_document(body) for body in bodies])


ORDINARY = [
    b"<a><![CDATA[<b>&amp;]]]]><![CDATA[>]]></a>",
    b"<a>\r\n<b c='\"&#10;&#9;x\r\n\ty'/>&#13;&#x1D11E;\r</a>",
    b'<p:a xmlns:p="urn:1" xmlns="urn:2"><b xmlns="" p:k="1" k="2"><p:c xmlns:p="urn:3"/></b><p:c/></p:a>',
    b"<a" + b" " * 40 + b"b  =  'c'\n\t/>",
    b'\xef\xbb\xbf<?xml version="1.0" encoding="utf-8" standalone=\'no\' ?>\n<!-- c --><?p?><a xml:lang="x"/>\n<!---->',
    "<r a='é'>€<!-- <x> 𝄞 --><b>]] ></b><?p <y>?></r>".encode(),
    b"<a>" * 250 + b"x" + b"</a >" * 250,
]
OTHERS = [
    b'<!DOCTYPE a [<!ENTITY e "x&#38;#60;y"><!ATTLIST a d CDATA "given">]><a>&e;<b c="&e;"/></a>',
    '<?xml version="1.0" encoding="iso-8859-1"?><a ü="é">ß</a>'.encode("iso-8859-1"),
    "<ü/>".encode(), "<a/>".encode("utf-16"), b'<a xml:id="1 2"/>', b"<a>" * 256 + b"</a>" * 256,
    b'<a xmlns:xml="http://www.w3.org/XML/1998/namespace"/>', b'<?xml version="1.1"?><a/>',
]  # fmt: skip
BROKEN = [
    b"", b" ", b"x", b"<a>", b"</a>", b"<a></b>", b"<a/><b/>", b"<a/>x", b"<a>]]></a>", b"<a>&x;</a>", b"<a>&amp</a>",
    b"<a>&#0;</a>", b"<a>&#xfffe;</a>", b"<a>\x01</a>", b"<a>\xff</a>", b"<a>\xed\xa0\x80</a>", b"<a>\xc0\xaf</a>",
    b"<a b='1' b='2'/>", b"<a b='1'c='2'/>", b"<a b=1/>", b"<a b='<'/>", b"<a b/>", b"<p:a/>", b"<a p:b='1'/>",
    b"<a:/>",
    b"<a xmlns:p='u' xmlns:q='u' p:x='1' q:x='2'/>", b"<a xmlns:p=''/>", b"<a xmlns='a b'/>",
    b"<a xmlns='http://a:b/'/>",
    b"<a:b:c xmlns:a='u'/>", b"<1/>", b"<a><!-- -- --></a>", b"<a><!-- ---></a>", b"<a><?xml?></a>", b"<?x:y z?><a/>",
    b" <?xml version='1.0'?><a/>", b"<?xml version='1.0' encoding='x'?><a/>", b"<![CDATA[]]><a/>", b"<a><![CDATA[</a>",
    b"<a>" * 257 + b"</a>" * 257, b"<a", b"<a b='", b"<a/", b"<", b"<!", b"<a></a", b"<a><", b"<a>&", b"<a xmlns='u",
    b"<a xmlns='http://www.w3.org/XML/1998/namespace'/>", b"<a xmlns:p='http://www.w3.org/2000/xmlns/'/>",
]  # fmt: skip


def test_ordinary_documents():
    assert are_ordinary(ORDINARY).all()
    assert not are_ordinary(OTHERS + BROKEN).any()
    assert not are_ordinary([b"<a>" + b"x" * 9_000_000 + b"</a>"]).any()
    for body in ORDINARY + OTHERS:
        parse_document(body)
    for body in BROKEN:
        with pytest.raises(BadDocument):
            parse_document(body)


@pytest.mark.parametrize("body", ORDINARY + OTHERS)
def test_handwritten_documents(body):
    root = parse_document(body)
    check_reading([body if body in ORDINARY else root], [root])


def test_a_part_of_a_document_keeps_its_namespaces():
    root = parse_document(b'<a xmlns="urn:1" xmlns:p="urn:2"><b p:k="v"><c/></b>tail</a>')
    check_reading([root[0]], [root[0]])


MARKS = [b"<", b">", b"&", b'"', b"'", b"/", b"=", b" ", b"\r\n", b"]]>", b"<![CDATA[", b"-->", b"<!--", b"<?", b"?>",
         b"&amp;", b"&#10;", b"&#0;", b"&x;", b' xmlns="u:v"', b' p:b="1"', b' xmlns:p="urn:9"', b"\xc3\xa9",
         b"\xff", b"\0",
         b"<a>", b"</a>", b"<a/>", b":", b"xml", b"\xef\xbb\xbf", b"<!DOCTYPE a>", b"1"]  # fmt: skip


def mutated(draw, body):
    """A copy with some bytes changed, inserted, removed or repeated."""
    changed = bytearray(body)
    for _ in range(draw.choice((1, 1, 2, 4))):
        at, kind = draw.randrange(len(changed) + 1), draw.random()
        if kind < 0.5:
            changed[at:at] = draw.choice(MARKS)
        elif kind < 0.7:
            changed[at : at + 1] = bytes([draw.randrange(256)])
        elif kind < 0.9:
            del changed[at : at + draw.choice((1, 2, 20))]
        else:
            changed[at:at] = changed[: draw.randrange(40)]
    return bytes(changed)


@pytest.mark.parametrize("seed", range(4))
def test_ordinary_documents_are_read_as_by_libxml2(seed):
    """On real documents and broken copies: libxml2 accepts what the check passes, with the same content."""
    draw = random.Random(seed)
    real = [body for body in real_bodies() if len(body) < 20_000]
    bodies = [mutated(draw, draw.choice(ORDINARY[:6] * 20 + real)) for _ in range(300)]
    bodies += draw.sample(real, min(len(real), 100))
    chosen = [body for body, ordinary in zip(bodies, are_ordinary(bodies).tolist(), strict=True) if ordinary]
    assert 100 < len(chosen) < len(bodies)
    check_reading(chosen, [parse_document(body) for body in chosen])


def test_documents_are_walked_in_parts(monkeypatch):
    """The batch does not depend on how many documents are read at once."""
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


def test_the_table_of_names_is_bounded(monkeypatch):
    """Each document has new namespaces; the table of names does not grow forever."""
    monkeypatch.setattr(automaton, "NAMES", 50)
    shared = PathAutomaton()
    id = shared.add(parse_xpath("//*[@k]/b", {}))
    for i in range(60):
        body = f"<a xmlns:x='urn:{i}' xmlns:y='urn:y{i}' k='1'><b/><x:b><b/></x:b></a>"
        batch = shared.run([parse_document(body.encode())])
        assert batch.nodes(id).nodes.tolist() == [[1]]
        assert len(shared.steps.names.names) < 60

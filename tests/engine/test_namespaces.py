"""Names are compared by local name: an attribute's name means it in every namespace."""

from __future__ import annotations

from itertools import product

import pytest
from lxml import etree

SPACES = {"": "", "p": "urn:p", "q": "urn:q"}
KEYS = ["k", "p:k", "q:k"]


def document(values: dict[str, str]) -> str:
    shown = " ".join(f"{key}='{value}'" for key, value in values.items())
    return f"<r xmlns:p='urn:p' xmlns:q='urn:q'><a m='2' {shown}/><b/></r>"


DOCUMENTS = [
    document({key: value for key, value in zip(keys, values, strict=True) if value})
    for keys in (KEYS, KEYS[::-1])
    for values in product(["", "1", "2"], repeat=3)
]

QUERIES = {
    "S//a[@k='2']": "//a[@*[local-name()='k'] = '2']",
    "S//a[@k > 1]": "//a[@*[local-name()='k'] > 1]",
    "S//a[not(@k='2')]": "//a[not(@*[local-name()='k'] = '2')]",
    "S//a[@k = @m]": "//a[@*[local-name()='k'] = @m]",
    "S//a[@k]": "//a[@*[local-name()='k']]",
    "S//r[.//@k='2']": "//r[.//@*[local-name()='k'] = '2']",
    "with namespace x = 'urn:p' S//a[@x:k='2']": "//a[@p:k = '2']",
    "S//a[@{}k='2']": "//a[@k = '2']",
    "S//a/@k": "//a/@*[local-name()='k']",
    "with namespace x = 'urn:p' S//a/@x:k": "//a/@p:k",
}


@pytest.fixture
def found(weir):
    weir.execute("create stream S; create stream T;")
    for number, query in enumerate(QUERIES):
        weir.execute(f"create query q{number} as {query}")
    weir.execute("""
        create feed Two from S as $s where $s[a/@k = '2'];
        create niagara where <r><a k=$v></></> in 'S', $v = 2 construct <two>$v</two>;
        create query joined as S//a->x[@k->v] JOIN{v=w, INF} T//t->y[@k->w];
    """)
    weir.publish("S", DOCUMENTS)
    weir.publish("T", ["<t k='2'/>"])
    weir.run(until_idle=True)
    return weir


def test_selections_agree_with_lxml(found):
    for number, (query, xpath) in enumerate(QUERIES.items()):
        chosen = etree.XPath(xpath, namespaces={"p": "urn:p", "q": "urn:q"})
        expected = [f"S-{n}" for n, text in enumerate(DOCUMENTS, 1) for _ in chosen(etree.fromstring(text))]
        assert sorted(r.documents[0] for r in found.results(f"q{number}")) == sorted(expected), query


def test_attributes_in_outputs_match_the_document(found):
    chosen = etree.XPath("//a/@*[local-name()='k']")
    number = list(QUERIES).index("S//a/@k")
    shown = sorted((r.documents[0], r.output) for r in found.results(f"q{number}"))
    expected = [(f"S-{n}", str(v)) for n, text in enumerate(DOCUMENTS, 1) for v in chosen(etree.fromstring(text))]
    assert shown == sorted(expected)


def test_feeds_niagaracq_and_joins_see_all_namespaces(found):
    two = [f"S-{n}" for n, text in enumerate(DOCUMENTS, 1) if "k='2'" in text]
    each = [f"S-{n}" for n, text in enumerate(DOCUMENTS, 1) for _ in range(text.count("k='2'"))]
    assert sorted(r.documents[0] for r in found.results("Two")) == sorted(two)
    assert sorted(r.documents[0] for r in found.results("niagara")) == sorted(each)
    assert sorted(r.documents[0] for r in found.results("joined")) == sorted(each)
    nodes = {r.bindings["v"]["node"] for r in found.results("joined")}
    assert nodes == {"1@k", "1@{urn:p}k", "1@{urn:q}k"}
    assert {r.bindings["v"]["value"] for r in found.results("joined")} == {"2"}

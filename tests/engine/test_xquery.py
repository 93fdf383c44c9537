"""XQuery through the engine: results of the paper's queries, and random ones against the oracle and lxml's XPath."""

from __future__ import annotations

import random
from pathlib import Path

from lxml import etree

from fishweir.algebra.documents import Document
from fishweir.algebra.oracle import evaluate
from fishweir.engine.weir import Weir
from fishweir.languages.script import parse_script

Q1 = """FOR $a in stream("transactions")/list/transaction
WHERE $a/order/price > 100
RETURN $a//name, $a/contact/tel, $a/contact/email, $a/contact/addr, $a/order/items"""

RICH = (
    "<transaction><id>1</id><name>Ann</name><contact><tel>5</tel><tel>6</tel><email>a@b</email></contact>"
    "<order><price>200</price><items><brand><name>X</name></brand></items></order></transaction>"
)
POOR = "<transaction><name>Bob</name><order><price>50</price></order></transaction>"
BARE = "<transaction><order><price>1</price><price>101</price></order></transaction>"


def test_the_query_of_the_paper(weir: Weir) -> None:
    """A missing return pattern is omitted, and there is one result per transaction."""
    weir.execute(f"create stream transactions; {Q1}; create query again using xquery as {Q1} pref v(name)=0.2...")
    weir.publish("transactions", [f"<list>{RICH}{POOR}</list>", f"<list>{BARE}</list>"])
    weir.run(until_idle=True)
    expected = [
        "<name>Ann</name><name>X</name><tel>5</tel><tel>6</tel><email>a@b</email>"
        "<items><brand><name>X</name></brand></items>",
        "",
    ]
    for query in ("q1", "again"):
        results = list(weir.results(query))
        assert [result.output for result in results] == expected
        assert [result.bindings["a"]["node"] for result in results] == [1, 1]


def test_split_streams_begin_at_the_document_or_above(weir: Weir) -> None:
    Path("all.xml").write_text(f"<list>{RICH}{POOR}{RICH}</list>", encoding="utf-8")
    weir.execute(f"create stream transactions from 'all.xml' split on /list/transaction; {Q1}")
    weir.run(until_idle=True)
    assert [result.documents for result in weir.results("q1")] == [["transactions-1"], ["transactions-3"]]


def test_constructors_nested_queries_and_tuples(weir: Weir) -> None:
    weir.execute("""
        create stream S; create stream R (name string, price double);
        for $a in stream('S')/shop, $b in $a/item where $b/price > 5
            return <hit shop="{$a/@name}">Of {$b/name/text()}: {for $c in $b/part where $c/@n >= 2
            return <p>{$c/@n}</p>}</hit> publish made;
        create query cheap as for $r in stream('R')/R where $r/price < 5 return <cheap>{$r/name, $r/none}</cheap>;
        for $h in stream('made')/hit[p = 3] return $h publish found;
        for $a in stream('S')/shop where $a/item/price = 9 return $a publish whole
    """)
    item = "<item><name>rod</name><price>9</price><part n='1'/><part n='3'/></item><item><price>4</price></item>"
    weir.publish("S", [f"<shop name='A&amp;B'>{item}</shop>"])
    weir.publish("R", [{"name": "a", "price": 1.0}, {"name": "b", "price": 7.0}])
    weir.run(until_idle=True)
    made = '<hit shop="A&amp;B">Of rod: <p>3</p></hit>'
    assert [result.output for result in weir.results("made")] == [made]
    assert [result.output for result in weir.results("cheap")] == ["<cheap><name>a</name></cheap>"]
    assert [result.output for result in weir.results("found")] == [made]
    assert [result.documents for result in weir.results("whole")] == [["S-1"]]


def test_random_queries_equal_the_oracle_and_xpath(weir: Weir) -> None:
    draw = random.Random(7)
    names = "abcd"

    def element(depth: int) -> str:
        inner = "".join(element(depth - 1) for _ in range(draw.randrange(4))) if depth else str(draw.randrange(9))
        name = draw.choice(names)
        return f"<{name} k='{draw.randrange(3)}'>{inner}</{name}>"

    def path() -> str:
        steps = "".join(f"{draw.choice(['/', '//'])}{draw.choice('abcd*')}" for _ in range(draw.randrange(1, 4)))
        return steps + draw.choice(["", "", "/@k"])

    bodies = [f"<r>{element(4)}{element(3)}</r>" for _ in range(30)]
    queries = [
        (f"/{draw.choice(['', '/'])}*", path(), draw.randrange(9), [path() for _ in range(3)]) for _ in range(40)
    ]
    weir.execute("create stream S")
    texts = [
        f"for $a in stream('S'){context} where $a{where} > {constant} return "
        + ", ".join(f"<o>{{$a{one}}}</o>" for one in paths)
        for context, where, constant, paths in queries
    ]
    weir.execute(";".join(f"create query x{i} as {text}" for i, text in enumerate(texts)))
    weir.publish("S", bodies)
    weir.run(until_idle=True)
    for i, (context, where, constant, paths) in enumerate(queries):
        (statement,) = parse_script(texts[i])
        expected, bound = [], []
        for number, body in enumerate(bodies, 1):
            root = etree.fromstring(body)
            order = {node: place for place, node in enumerate(root.iter())}
            for binding in evaluate(statement.shape, statement.constants, Document("d", 0.0, root)):
                bound.append((number, int(binding["a"].id)))
            for node in root.getroottree().xpath(context):
                if node.xpath(f".{where}[. > {constant}]"):
                    shown = "".join(_shown(node.xpath(f".{one}")) for one in paths)
                    expected.append((number, order[node], shown))
        found = [(int(r.documents[0][2:]), int(r.bindings["a"]["node"]), r.output) for r in weir.results(f"x{i}")]
        assert sorted(found) == sorted(expected), texts[i]
        assert [one[:2] for one in sorted(found)] == sorted(bound), texts[i]


def _shown(nodes: list[object]) -> str:
    inner = "".join(
        etree.tostring(one, encoding="unicode", with_tail=False) if hasattr(one, "tag") else str(one) for one in nodes
    )
    return f"<o>{inner}</o>" if inner else "<o/>"

"""or, not and alternatives through the engine: results equal those of the oracle."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from fishweir import testing
from fishweir.algebra.documents import Document, parse_document
from fishweir.algebra.join_oracle import evaluate_join
from fishweir.algebra.nodes import CreateQuery, Shape
from fishweir.algebra.oracle import evaluate
from fishweir.errors import QueryError
from fishweir.languages.script import parse_script

SELECTIONS = [
    "S//a[b = '1' or c = '2']->x",
    "S//a[not(b)]",
    "S//a->x[not(b = 1) and (c or not(d))]",
    "S/r[a/b = 1 or a/c = 2]",
    "select <o>{x}</o> from S//a[b->x = '1' or c->x]",
    "S//a->x[not(b[. = '1'] or c)][d]",
    "select <o k=$y>{x}</o> from S//a->x[b->y]?[c]",
    "select x, y, z from S//a->x[b->y and c->z]?",
    "S//a[2]->x",
    "S//a[last()]/*[1]->x",
    "S//a[b[2]]",
    "S//b->x | S//c->x",
    "S//b->x[../c = '2']",
    "S//*->x[contains(., '1') and not(a)]",
    "where <r><a><b>$p</></> element_as $x </> in 'S', $p > 1 or not($p = 0) construct $x",
    "where <r.a><b>$p</> <c>$q</></> in 'S', not($p = 1 and $q != '2') construct <o>$p $q</o>",
]
JOINS = [
    "S//a->x[b or c] JOIN{x/d = y/d, 3} S//a->y",
    "S//a->x JOIN{x/b = y/b or x/c = y/c, INF} S//a->y",
    "S//a->x[b->z] FOLLOWED BY{x/d = y/d and not(z = w), 4} S//a->y[b->w]",
    "S//a->x JOIN{x/d = y/d and (x/b = '1' and y/b = '1' or x/b = '2' and y/b = '2'), INF} S//a->y",
    "select <o>{x}{y}</o> from S//a[not(b)]/d->x JOIN{x = y and not(x = '1'), 5} S//a[c or not(b)]/d->y",
    "select x, y, z from S//a->x[b->z]? JOIN{x/d = y, 3} S//d[1]->y",
    "select x, y from S//a[1]/d->x JOIN{x = y and not(contains(x, '2')), INF} S//b->y | S//c->y",
    "where <r.a><b>$p</><d>$v</></> in 'S', <r.a><b>$q</><d>$v</></> in 'T', $p > $q or $q = 1 construct <o>$v</o>",
]


def some_documents(seed: int, size: int) -> list[str]:
    draw = random.Random(seed)

    def leaf() -> str:
        name = draw.choice("bcd")
        return f"<{name}>{draw.choice(['0', '1', '2', 'x', ''])}</{name}>"

    items = ["".join(leaf() for _ in range(draw.randrange(4))) for _ in range(3 * size)]
    return [f"<r>{''.join(f'<a>{items.pop()}</a>' for _ in range(draw.randrange(1, 3)))}</r>" for _ in range(size)]


def test_results_are_those_of_the_oracle(tmp_path: Path) -> None:
    texts = [*SELECTIONS, *JOINS]
    bodies = {"S": some_documents(1, 24), "T": some_documents(2, 24)}
    times = [float(i // 2) for i in range(24)]
    with testing.open(tmp_path / "home") as weir:
        weir.execute("create stream S; create stream T")
        names = weir.execute("; ".join(f"create query q{i} as {text}" for i, text in enumerate(texts)))
        for start in range(0, 24, 8):
            for stream, own in bodies.items():
                weir.publish(stream, own[start : start + 8], timestamps=times[start : start + 8])
            weir.step()
        weir.run(until_idle=True)
        documents = {
            stream: [
                Document(f"{stream}-{i + 1}", t, parse_document(b.encode()))
                for i, (b, t) in enumerate(zip(own, times, strict=True))
            ]
            for stream, own in bodies.items()
        }
        for name, text in zip(names, texts, strict=True):
            (query,) = parse_script(f"create query {name} as {text}")
            expected = sorted(by_oracle(query, documents))
            found = sorted((tuple(r.documents), shown(r.bindings)) for r in weir.results(name))
            assert found == expected, text
            assert weir.status(name).results == len(expected) > 0, text


def by_oracle(query, documents):  # type: ignore[no-untyped-def]
    assert isinstance(query, CreateQuery)
    shape, constants = query.shape, query.constants
    assert isinstance(shape, Shape)
    if shape.windows:
        streams = [documents[block.source.name] for block in shape.blocks]
        for result in evaluate_join(shape, constants, streams):
            yield tuple(result.documents), named(result.binding)
        return
    for document in documents["S"]:
        for binding in evaluate(shape, constants, document):
            yield (document.id,), named(binding)


def named(binding):  # type: ignore[no-untyped-def]
    return tuple(sorted((name, node.id, node.value) for name, node in binding.items() if name[0] != "_"))


def shown(bindings):  # type: ignore[no-untyped-def]
    return tuple(sorted((name, str(bound["node"]), bound["value"]) for name, bound in bindings.items()))


def test_outputs_of_optional_branches_and_explanations(tmp_path: Path) -> None:
    with testing.open(tmp_path / "home") as weir:
        weir.execute("create stream S; create stream R (x int, y string)")
        weir.execute("create query opt as select <o k=$y>{x}{y}</o> from S//a->x[b->y]?")
        weir.execute("create query never as S//a[not(b = '1') and c]")
        weir.execute("create query tuples as R/R[x = 1 or not(y)]/*[last()]->v")
        weir.execute("S//a->x[b->y]? publish P; create query read as P/a")
        weir.publish("S", ["<r><a><b>1</b></a><a/></r>"])
        weir.publish("R", [{"x": 1, "y": "u"}, {"x": 2, "y": None}, {"x": 3, "y": "v"}])
        weir.run(until_idle=True)
        outputs = [result.output for result in weir.results("opt")]
        assert outputs == ['<o k="1"><a><b>1</b></a><b>1</b></o>', "<o><a/></o>"]
        assert [result.bindings.keys() for result in weir.results("opt")] == [{"x", "y"}, {"x"}]
        assert [r.bindings["v"]["value"] for r in weir.results("tuples")] == ["u", "2"]
        assert [result.output for result in weir.results("read")] == ["<a><b>1</b></a>", "<a/>"]
        shown = weir.explain("never")
        assert 'remaining not (.a.b = "1")' in shown
        assert weir.explain("tuples").count("  group") == 2


def test_contradictory_patterns_are_refused(tmp_path: Path) -> None:
    (tmp_path / "quotes.xml").write_text("<Quotes><Quote><Symbol>A</Symbol></Quote></Quotes>")
    with testing.open(tmp_path / "home") as weir:
        weir.execute("create stream R (x int, y string)")
        weir.execute(f"create stream Q from '{tmp_path}/quotes.xml' format xml rows /Quotes/Quote key Symbol")
        for text, column, reason in NEVER:
            with pytest.raises(QueryError) as error:
                weir.execute(text)
            assert reason in str(error.value)
            assert error.value.column == column
        for text in (
            "R/R[x or nope]",
            "R//x/..",
            "R->d",
            "Q/Quotes/Quote[Symbol]",
            "Q/Quote",
            "Q//Symbol",
            "Q//Quotes",
        ):
            weir.execute(text)


NEVER = [
    ("R/S[x]", 3, "can never fire: patterns over R begin with <R>, not with <S>"),
    ("R//nope", 4, "reads nope; the columns of R are x, y"),
    ("R//R[nope = 1]", 6, "reads nope; the columns of R are x, y"),
    ("R/R[not(nope)]", 9, "reads nope; the columns of R are x, y"),
    ("R/R/x/y", 7, "can never fire: columns of R have no child elements"),
    ("R/R[@x]", 6, "reads @x; the columns of R are x, y"),
    ("where <R><z>$v</></> in 'R' construct $v", 11, "reads z; the columns of R are x, y"),
    ("Q/Symbol", 3, "can never fire: patterns over Q begin with <Quotes> or <Quote>, not with <Symbol>"),
    ("where <Quotes><Symbol>A</></> in 'Q' construct <o/>", 16, "in Q, <Quotes> contains <Quote>, not <Symbol>"),
]

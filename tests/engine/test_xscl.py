"""XSCL through the worker's task, from texts to results, compared with the oracle."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given

from fishweir import testing
from fishweir.algebra.documents import Document, parse_document
from fishweir.algebra.nodes import PatternNode, Shape, Slot, Step
from fishweir.algebra.oracle import evaluate
from fishweir.languages.script import parse_script
from tests import strategies as st
from tests.generators import documents, shapes

Query = tuple[Shape, tuple[str | float, ...]]


def to_xscl(shape: Shape, constants: tuple[str | float, ...]) -> str:
    """A shape as an XSCL query; comparisons of variables are left out."""
    (block,) = shape.blocks
    conditions: dict[str, list[str]] = {}
    for c in shape.conditions:
        if isinstance(c.right, Slot):
            constant = constants[c.right.index]
            shown = "'" + constant.replace("'", "''") + "'" if isinstance(constant, str) else repr(constant)
            conditions.setdefault(c.left, []).append(f"[. {c.op} {shown}]")
    chosen = ", ".join(shape.output_variables)
    return f"{f'select {chosen} from ' if chosen else ''}S{_node(block.pattern, conditions, True)}"


def _node(node: PatternNode, conditions: dict[str, list[str]], top: bool = False) -> str:
    name, deep = _name(node.step), node.step.is_deep or (top and node.step.is_attribute)
    marks = "".join(f"->{v}" for v in node.variables)
    marks += "".join(text for v in node.variables for text in conditions.get(v, []))
    inner = "".join(f"[.{_node(child, conditions)}]" for child in node.children)
    return f"{'//' if deep else '/'}{name}{marks}{inner}"


def _name(step: Step) -> str:
    space = "" if step.namespace is None else f"{{{step.namespace}}}"
    return f"{'@' if step.is_attribute else ''}{space}{step.name}"


@st.examples(15, suppress_health_check=list(HealthCheck))
@given(
    st.lists(shapes(deep=True).map(lambda drawn: to_xscl(*drawn)), min_size=3, max_size=12),
    st.lists(documents(4), min_size=1, max_size=6),
)
def test_results_equal_the_oracle(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], bodies: list[str]
) -> None:
    home: Path = tmp_path_factory.mktemp("home")
    with testing.open(home) as weir:
        weir.execute("create stream S")
        names = weir.execute(";\n".join(texts))
        weir.publish("S", bodies)
        weir.step()
        found = {name: [] for name in names}  # type: ignore[var-annotated]
        for result in weir.results():
            found[result.query].append((result.documents[0], {k: str(b["node"]) for k, b in result.bindings.items()}))
    for name, text in zip(names, texts, strict=True):
        (query,) = parse_script(text)
        expected = []
        for i, body in enumerate(bodies, 1):
            for binding in evaluate(query.shape, query.constants, Document("d", 0.0, parse_document(body.encode()))):
                shown = {k: node.id for k, node in binding.items() if k[0] != "_"}
                expected.append((f"S-{i}", shown))
        key = lambda one: (one[0], sorted(one[1].items()))  # noqa: E731
        assert sorted(found[name], key=key) == sorted(expected, key=key), text


def test_queries_add_and_remove_their_paths(tmp_path: Path) -> None:
    """Across micro-batches of one process, with one automaton."""
    with testing.open(tmp_path / "home") as weir:
        weir.execute("create stream S; S//a->x publish one")
        seen = []
        for change in ("S//b[.//c = '1']->x publish two", "delete one", "S/d/@k->x publish three; delete two"):
            weir.publish("S", ["<d k='7'><a/><b><b><c>1</c></b></b></d>"])
            weir.step()
            seen.append(len(list(weir.results())))
            weir.execute(change)
        weir.publish("S", ["<d k='7'><a/><b><b><c>1</c></b></b></d>"])
        weir.step()
        last = [(r.query, r.bindings["x"]) for r in weir.results() if r.documents == ["S-4"]]
    assert seen == [1, 4, 6]
    assert last == [("three", {"document": "S-4", "node": "0@k", "value": "7"})]


def test_outputs(tmp_path: Path) -> None:
    with testing.open(tmp_path / "home") as weir:
        weir.execute("""
            create stream S;
            S//book[.//title = 'abc'] publish whole;
            S//book[author]//title publish titles;
            select a, $t from S//book[author->a][.//title->t] publish listed;
            select <hit by=$a>of {b}<i/></hit> from S//book[author->a][@id->b] publish made;
        """)
        book = '<book id="7"><author>A</author><part><title>abc</title></part></book>'
        weir.publish("S", [f"<shelf>{book}</shelf>"])
        weir.step()
        found = {r.query: (r.output, {k: b["node"] for k, b in r.bindings.items()}) for r in weir.results()}
    assert found == {
        "whole": (book, {}),
        "titles": ("<title>abc</title>", {}),
        "listed": ("<author>A</author><title>abc</title>", {"a": 2, "t": 4}),
        "made": ('<hit by="A">of 7<i/></hit>', {"a": 2, "b": "1@id"}),
    }


def test_three_languages_on_one_stream(weir: testing.Weir) -> None:
    """Through the running job."""
    weir.execute("""
        create stream S;
        create query x as S//book->b[./author->a = 'A'];
        create query s as select author from S where author = 'A';
        create n where <book><author>'A'</></> element_as $b in 'S' construct $b;
    """)
    weir.publish("S", ["<book><author>A</author></book>", "<book><author>B</author></book>", "<book/>"])
    weir.run(until_idle=True)
    found = {name: [(r.documents, r.output) for r in weir.results(name)] for name in "xsn"}
    book = "<book><author>A</author></book>"
    assert found == {"x": [(["S-1"], book)], "s": [(["S-1"], {"author": "A"})], "n": [(["S-1"], book)]}

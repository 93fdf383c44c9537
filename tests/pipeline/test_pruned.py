"""Outputs constructed from reduced documents equal those of whole documents."""

from __future__ import annotations

import pickle
import random

import pytest
from lxml import etree

from fishweir import testing
from fishweir.algebra.construct import construct
from fishweir.algebra.documents import elements, parse_document
from fishweir.algebra.nodes import CreateQuery, Shape
from fishweir.languages.script import parse_script
from fishweir.pipeline.outputs import bind
from fishweir.pipeline.pruned import Prunings, pruning_of
from fishweir.pipeline.source_documents import SourceDocument

RETURNS = [
    "$x/a, $x/b",
    "$x//a",
    "$x/a//b, $x/c/a",
    "$x//a//b, $x/c",
    "$x/*/b, $x/a/@k",
    "$x/a/@k, $x//b/text()",
    "<o n='1'>{$x/a/b, for $y in $x/c where $y/a > 1 return <i>{$y/b}</i>}</o>",
    "for $y in $x/a return <i>{$y/b, for $z in $y/c return <j/>}</i>",
    "$x, $x/a",
]
TEXTS = ["", "1", "2 &amp; 3", " \n ", "<![CDATA[<a>]]>", "<!-- <a> </a> -->", "<?p <b>?>", "ü"]


def element(draw: random.Random, depth: int) -> str:
    name = draw.choice(["a", "b", "c", "d", "n:a", "ab"])
    given = draw.choice(["", "", ' k="a>b"', " k = '1' ", ' xmlns="u:v"'])
    inner = "".join(draw.choice(TEXTS) + (element(draw, depth - 1) if depth else "") for _ in range(draw.randint(0, 3)))
    return f"<{name}{given}>{inner}</{name}>" if inner or draw.random() < 0.5 else f"<{name}{given}/>"


def document(draw: random.Random) -> bytes:
    head = draw.choice(["", '<?xml version="1.0" encoding="UTF-8"?>\n', "<!-- <a/> -->"])
    inner = "".join(element(draw, 4) for _ in range(4))
    return f'{head}<r xmlns:n="u:n"><x>{inner}</x>{element(draw, 2)}<x k="2">{element(draw, 3)}</x></r>'.encode()


def taken(body: bytes, context: tuple[str, ...] = ()) -> SourceDocument:
    return SourceDocument("d", None, context, 0, "", body.ljust(300))


@pytest.mark.parametrize("returned", RETURNS)
@pytest.mark.parametrize(("above", "context"), [("r/x", ()), ("top/r/x", ("top",)), ("top//x", ("top",)), ("/x", ())])
def test_equal_to_the_output_of_the_whole_document(returned: str, above: str, context: tuple[str, ...]) -> None:
    (statement,) = parse_script(f"for $x in stream('S')/{above} return {returned}")
    assert isinstance(statement, CreateQuery)
    shape = statement.shape
    assert isinstance(shape, Shape)
    step = shape.blocks[0].pattern.step
    draw, shorter, prunings = random.Random(returned + above), 0, Prunings()
    for _ in range(40):
        whole = taken(document(draw), context)
        for number, node in enumerate(elements(parse_document(whole.body or b"", comments=True))):
            if node.tag != "x":
                continue
            pruned = prunings.document(shape, shape.output, whole, {"x": number})
            assert pruned is not None
            left = etree.tostring(pruned.nodes[number].getroottree())
            shorter += len(left) < len(whole.body or b"")
            found = construct(shape.output, {"x": bind(pruned, step, number)[0]})
            assert found == construct(shape.output, {"x": bind(whole, step, number)[0]})
    assert shorter or returned.startswith("$x,")


@pytest.mark.parametrize(
    "body",
    ["<!DOCTYPE r [<!ENTITY e 'x'>]><r><x><a>&e;</a></x></r>", '<?xml version="1.0" encoding="ISO-8859-1"?><r/>'],
)
def test_other_encodings_and_doctypes_are_read_as_a_whole(body: str) -> None:
    (statement,) = parse_script("for $x in stream('S')/r/x return $x/a")
    assert isinstance(statement, CreateQuery)
    assert isinstance(statement.shape, Shape)
    shape = statement.shape
    assert pruning_of(shape, shape.output) is not None
    assert Prunings().document(shape, shape.output, taken(body.encode()), {"x": 1}) is None


def test_deliveries_and_values_of_bindings(weir: testing.Weir) -> None:
    """A delivery reads only what its output needs; the value of its variable is that of the whole element."""
    found: list[object] = []
    weir.action("keep", found.append)
    weir.execute("create stream S; create query q as for $x in stream('S')/r/x return <o>{$x/a}</o> do keep")
    padding = f"<b>{'<c>long</c>' * 40}</b>"
    weir.publish("S", [f"<r>{padding}<x>{padding}<a>1</a></x><x><a>2</a></x></r>"])
    weir.run(until_idle=True)
    assert [str(one.output) for one in found] == ["<o><a>1</a></o>", "<o><a>2</a></o>"]  # type: ignore[attr-defined]
    values = [{"document": "S-1", "node": node, "value": value} for node, value in ((42, "long" * 40 + "1"), (85, "2"))]
    copies = [pickle.loads(pickle.dumps(one)) for one in found]
    for results in (found, copies, list(weir.results("q"))):
        assert [dict(one.bindings["x"]) for one in results] == values  # type: ignore[attr-defined]

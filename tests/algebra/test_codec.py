"""Nodes to JSON text and back."""

from __future__ import annotations

import json

import pytest
from hypothesis import given

from fishweir.algebra import nodes
from fishweir.algebra.codec import from_json, to_json, to_text
from fishweir.algebra.normal import to_normal
from tests.generators import shapes


def through_text(value):  # type: ignore[no-untyped-def]
    return from_json(json.loads(json.dumps(to_json(value))))


@given(shapes())
def test_shapes_and_normal_forms_survive(query) -> None:  # type: ignore[no-untyped-def]
    shape, constants = query
    assert through_text(shape) == shape
    assert hash(through_text(shape)) == hash(shape)
    assert through_text(to_normal(shape)) == to_normal(shape)
    assert to_text(shape) == json.dumps(to_json(shape))
    assert [type(c) for c in through_text(constants)] == [type(c) for c in constants]


@pytest.mark.parametrize(
    "node",
    [
        nodes.Action("append", ("a;'b\"\n", "")),
        nodes.Schedule(1.5, 0.0, None),
        nodes.StreamDefinition("S", (("x", "int"),), "p", shed_allowed=True),
        nodes.ElementOutput("a", (("k", nodes.TextOutput("é")),), (nodes.VariableOutput("v", content=True),)),
        nodes.CreateQuery(nodes.Shape((), (), ()), ("a", 1.0), "q", nodes.Action("call", ("m:f",))),
    ],
)
def test_other_nodes_survive(node) -> None:  # type: ignore[no-untyped-def]
    assert through_text(node) == node
    assert to_text({"of": [node]}) == json.dumps({"of": [to_json(node)]})


def test_other_objects_are_refused() -> None:
    with pytest.raises(TypeError, match="object is not a node"):
        to_text([object()])


def test_an_unknown_node_is_refused() -> None:
    with pytest.raises(KeyError):
        from_json({"!": "Path", "name": "x"})

"""Outputs and bindings that are written straight to their columns, with the check of each document.

In: an output and the nodes of its variables, for results each of which has nodes of its own, and lacks none. Out: the
texts of the outputs and the values of the bindings. Other results are joined from pieces (bound_columns.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from fishweir.algebra.construct import attribute_text, construct, value_of
from fishweir.algebra.documents import ATTRIBUTE
from fishweir.algebra.nodes import AttributeOutput, ElementOutput, Output, Step, TextOutput, VariableOutput
from fishweir.algebra.return_paths import Bound
from fishweir.algebra.returns import ReturnOutput
from fishweir.evaluate.arrays import Ints
from fishweir.evaluate.witnesses.automaton import subtree_kernels as kernels
from fishweir.evaluate.witnesses.automaton.subtrees import Part, Request
from fishweir.pipeline.document_columns import DocumentColumns, replaced
from fishweir.pipeline.source_documents import bind

Variables = Mapping[str, tuple[Step, Ints]]
"""The step and the nodes of each variable."""
Shown = tuple[pa.StringArray, pa.StringArray]
"""Outputs, and the values of the variables of each result in order."""


def written_rows(
    columns: DocumentColumns, documents: Ints, variables: Variables, output: tuple[Output, ...]
) -> Shown | None:
    """The texts of results with ascending documents; None if they must be joined from pieces."""
    parts = _parts(output, variables)
    if parts is None or any((nodes >= ATTRIBUTE).any() for _, nodes in variables.values()):
        return None
    named = {name: one for name, one in variables.items() if name[0] != "_"}
    values = [_value(*one) for one in named.values()]
    outputs, *rest = columns.bodies.take_all([Request(documents, some) for some in (_text(parts), values) if some])

    def bound(refused: Any) -> Iterator[dict[str, Bound]]:
        """The nodes themselves, for rows that only libxml2 can read."""
        rows = np.flatnonzero(refused).tolist()
        for row, document in zip(rows, columns.taken(documents[rows].tolist()), strict=True):
            yield {name: bind(document, step, int(nodes[row]))[0] for name, (step, nodes) in variables.items()}

    found = replaced(outputs[0], np.flatnonzero(outputs[1]), [construct(output, one) for one in bound(outputs[1])])
    if not rest:
        return found, pa.array([], pa.string())
    places = np.flatnonzero(np.repeat(rest[0][1], len(named)))
    return found, replaced(rest[0][0], places, [value_of(one[name]) for one in bound(rest[0][1]) for name in named])


def _value(step: Step, nodes: Ints) -> Part:
    return Part(kernels.ATTRIBUTE, nodes, step.name) if step.is_attribute else Part(kernels.VALUE, nodes)


def _text(parts: Sequence[Part]) -> list[Part]:
    """Parts of one text, with adjacent literals as one."""
    merged: list[Part] = []
    for part in parts or [_literal("")]:
        if merged and part.shows == kernels.LITERAL == merged[-1].shows:
            merged[-1] = _literal(merged[-1].text + part.text)
        else:
            merged.append(part)
    return [*merged[:-1], merged[-1]._replace(closes=True)]


def _literal(text: str) -> Part:
    return Part(kernels.LITERAL, text=text, closes=False)


def _parts(output: Sequence[Output], variables: Variables) -> list[Part] | None:
    """The parts of an output; None if some of it is not a copy of elements, or it depends on texts whether an element
    has content."""
    found = [_parts_of(part, variables) for part in output]
    return [part for some in found for part in some or ()] if None not in found else None


def _parts_of(output: Output, variables: Variables) -> list[Part] | None:
    match output:
        case TextOutput():
            return [_literal(construct((output,), {}))]
        case VariableOutput(name, content):
            return _shown(name, kernels.CONTENT if content else kernels.MARKUP, variables)
        case ElementOutput(tag, attributes, children):
            shown = [_attribute(key, value, variables) for key, value in attributes]
            inner = _parts(children, variables)
            if inner is None or None in shown:
                return None
            begin = [_literal(f"<{tag}"), *(part for some in shown for part in some or ())]
            if not inner:
                return [*begin, _literal("/>")]
            has_content = any(part.text or part.shows == kernels.MARKUP for part in inner)
            return [*begin, _literal(">"), *inner, _literal(f"</{tag}>")] if has_content else None
        case ReturnOutput(_, parts):
            return _parts(parts, variables)
        case _:
            return None


def _attribute(key: str, value: AttributeOutput, variables: Variables) -> list[Part] | None:
    match value:
        case TextOutput():
            return [_literal(attribute_text(key, value, {}))]
        case VariableOutput(name):
            shown = _shown(name, kernels.QUOTED, variables)
            return [_literal(f" {key}="), *shown] if shown else shown
        case _:
            return None


def _shown(name: str, shows: int, variables: Variables) -> list[Part] | None:
    """What is shown of a variable's nodes: nothing if it has none."""
    if name not in variables:
        return []
    step, nodes = variables[name]
    return None if step.is_attribute else [Part(shows, nodes, closes=False)]

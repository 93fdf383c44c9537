"""Constructs outputs: the XML text of a query's construct clause for a binding.

In: the output part of a shape, a parsed document, the node bound to each variable. Out: XML text. Variables bound to
elements copy the element; those bound to content or attributes copy what is inside. An unbound (optional) variable
yields nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from lxml import etree

from fishweir.algebra.documents import Element, attributes_named, local_name, string_value, values_at
from fishweir.algebra.feeds import ColumnsOutput
from fishweir.algebra.formula import RelativePath
from fishweir.algebra.nodes import (
    AllColumnsOutput,
    AttributeOutput,
    ColumnOutput,
    ElementOutput,
    Output,
    TextOutput,
    VariableOutput,
)
from fishweir.algebra.return_paths import Bound, at_path, iterations
from fishweir.algebra.returns import ForOutput, PathOutput, ReturnOutput

NOT_AS_IT_IS = {"\r": "&#13;"}
"""Characters other than `<>&` that a parser would change."""


def construct(parts: tuple[Output, ...], bound: Mapping[str, Bound]) -> str:
    """The concatenated texts of the parts."""
    return "".join(_part(part, bound) for part in parts)


def element_text(element: Element) -> str:
    return str(etree.tostring(element, encoding="unicode", with_tail=False))


def select_columns(output: ColumnsOutput, root: Element, values: Mapping[str, Any] | None) -> dict[str, Any]:
    """The columns of an SQL select list: the values of a tuple, or the first text at each path of a document. `*` is
    all children of the document element."""
    if not output.columns:
        if values is not None:
            return dict(values)
        first: dict[str, Any] = {}
        for child in root.iterchildren(etree.Element):
            first.setdefault(local_name(child.tag), string_value(child))
        return first
    return {name: _column(path, root, values) for name, path in output.columns}


def joined_columns(
    columns: Sequence[ColumnOutput | AllColumnsOutput], blocks: Sequence[tuple[Element, Mapping[str, Any] | None]]
) -> dict[str, Any]:
    """The columns of the select list of a join. Names that `*` produces twice are qualified."""
    shown = [
        select_columns(ColumnsOutput(), *blocks[part.block])
        if isinstance(part, AllColumnsOutput)
        else {part.name: _column(part.path, *blocks[part.block])}
        for part in columns
    ]
    often = Counter(name for some in shown for name in some)
    found: dict[str, Any] = {}
    for part, some in zip(columns, shown, strict=True):
        twice = isinstance(part, AllColumnsOutput)
        found |= {f"{part.name}.{name}" if twice and often[name] > 1 else name: some[name] for name in some}
    return found


def _column(path: RelativePath, root: Element, values: Mapping[str, Any] | None) -> Any:
    if values is not None and len(path) == 1 and path[0].name in values:
        return values[path[0].name]
    found = values_at(root, path)
    return found[0] if found else None


def _part(part: Output, bound: Mapping[str, Bound]) -> str:
    match part:
        case TextOutput(text):
            return escape(text, NOT_AS_IT_IS)
        case VariableOutput(name, content):
            return node_text(bound[name], content) if name in bound else ""
        case ElementOutput(tag, attributes, children):
            shown = "".join(attribute_text(key, value, bound) for key, value in attributes)
            inner = construct(children, bound)
            return f"<{tag}{shown}>{inner}</{tag}>" if inner else f"<{tag}{shown}/>"
        case PathOutput(_, _, text):
            nodes = at_path(part, bound)
            return "".join(_own_text(node) if text else node_text(node, content=False) for node in nodes)
        case ForOutput(_, _, _, parts):
            return "".join(construct(parts, inner) for inner in iterations(part, bound))
        case ReturnOutput(_, parts):
            return construct(parts, bound)


def node_text(node: Bound, content: bool) -> str:
    """A node as copied to an output: the element or its content, or the value of an attribute."""
    element, attribute = node
    if attribute is not None:
        return escape(value_of(node), NOT_AS_IT_IS)
    if not content:
        return element_text(element)
    children = "".join(str(etree.tostring(child, encoding="unicode")) for child in element)
    return escape(element.text or "", NOT_AS_IT_IS) + children


def _own_text(node: Bound) -> str:
    """`text()`: the element's own text, without that of its children."""
    element, attribute = node
    if attribute is not None:
        return escape(value_of(node), NOT_AS_IT_IS)
    return escape("".join(map(str, [element.text or "", *(child.tail or "" for child in element)])), NOT_AS_IT_IS)


def attribute_text(key: str, value: AttributeOutput, bound: Mapping[str, Bound]) -> str:
    """An attribute of a literal tag, with a leading space; empty if its variable is not bound."""
    text = _plain(value, bound)
    return "" if text is None else f" {key}={quoteattr(text)}"


def _plain(part: AttributeOutput, bound: Mapping[str, Bound]) -> str | None:
    if isinstance(part, TextOutput):
        return part.text
    if isinstance(part, PathOutput):
        return " ".join(value_of(node) for node in at_path(part, bound))
    return value_of(bound[part.name]) if part.name in bound else None


def value_of(node: Bound) -> str:
    """The XPath string value of a bound node. It is computed by XPath because parsed outputs keep comments."""
    element, attribute = node
    if attribute is None:
        return string_value(element)
    key = next(iter(attributes_named(element, attribute)), attribute) if attribute[0] != "{" else attribute
    return element.get(key, "")

"""Binding of XML-QL: syntax nodes to the algebra's shape, with a slot for every constant.

A constant in a pattern becomes an anonymous variable `_1`, `_2`, ... that is compared with a slot. A variable's second
occurrence becomes an anonymous one that equals the first: within a document, that is a selection; between two, it is a
join (the paper's section 3.5).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, TypeVar

from lark import Token

from fishweir.algebra.alternatives import one_of
from fishweir.algebra.nodes import (
    MIRRORED,
    OPPOSITES,
    Absence,
    Block,
    Comparison,
    Constant,
    ElementOutput,
    Output,
    PatternNode,
    Shape,
    SideWindow,
    Slot,
    Source,
    Step,
    TextOutput,
    VariableOutput,
)
from fishweir.languages.connectives import all_of, conjunctions
from fishweir.languages.lexical import OPENING_QUOTES, to_constant, to_operator, unquote
from fishweir.languages.niagaracq.syntax import (
    Attributes,
    ConditionSyntax,
    ElementSyntax,
    OutputSyntax,
    PatternSyntax,
    PredicateSyntax,
    QuerySyntax,
    local_tag,
    path_of,
)
from fishweir.languages.parsed import ConstantPlace, LiteralKind, ParsedQuery
from fishweir.languages.statement_text import Rejected

Part = TypeVar("Part")
Conjunction = tuple[Comparison | Absence, ...]
Binding = Literal["element", "content"]
OutputAttributes = tuple[tuple[str, VariableOutput | TextOutput], ...]
_KINDS: dict[str, LiteralKind] = {"STRING": "quoted", "NUMBER": "number", "TEXT": "text"}
_XML_NAME = re.compile(r"[^\W\d][\w.-]*")


def bind(query: QuerySyntax) -> ParsedQuery:
    """The query's shape and constants. Raises Rejected for binding errors such as unknown variables."""
    return _Binder().bind(query)


class _Binder:
    """Walks one query in text order, so that slots are numbered in reading order."""

    def __init__(self) -> None:
        self._variables: dict[str, Binding] = {}
        self._anonymous = 0
        self._conditions: list[Comparison] = []
        self._choices: list[list[Conjunction]] = []
        self._used: list[Token] = []
        self._constants: list[Constant] = []
        self._slots: list[Slot] = []
        self._places: list[ConstantPlace] = []

    def bind(self, query: QuerySyntax) -> ParsedQuery:
        blocks = [block for item in query.items if (block := self._item(item)) is not None]
        for variable in self._used:
            self._check_variable(variable)
        if not blocks:
            reason = 'the query reads nothing: expected a pattern <...> in "..."'
            raise Rejected(reason, _at(self._used[0]))
        output = tuple(self._output(part) for part in query.output)
        windows = (self._endless(),) * len(blocks) if len(blocks) > 1 else ()
        whole = Shape(tuple(blocks), tuple(self._conditions), output, tuple(self._slots), windows)
        alternatives = [_narrowed(whole, [c for some in chosen for c in some]) for chosen in all_of(self._choices)]
        starts = [_at(item.source[0]) for item in query.items if isinstance(item, PatternSyntax)]
        for part in alternatives:
            _check_joined(part, starts)
        shape = one_of(alternatives)
        return ParsedQuery(shape, tuple(self._constants), tuple(self._places), query.clauses)

    def _item(self, item: PatternSyntax | ConditionSyntax) -> Block | None:
        """Binds a pattern or a condition; returns the block of a pattern."""
        if isinstance(item, PatternSyntax):
            return Block(_source(item.source), self._pattern(item.element))
        if isinstance(item, PredicateSyntax):
            self._conditions.append(self._predicate(item))
        else:
            self._choices.append(conjunctions(item, self._literal))
        return None

    def _endless(self) -> SideWindow:
        """An infinite window: documents of several sources wait for each other forever."""
        slot = Slot(len(self._slots), "number")
        self._slots.append(slot)
        self._constants.append(math.inf)
        self._places.append(ConstantPlace(0, 0, "keyword"))
        return SideWindow(slot)

    def _pattern(self, element: ElementSyntax) -> PatternNode:
        children = [self._attribute(name, value) for name, value in element.attributes]
        variables: list[str] = []
        for part in element.content:
            if isinstance(part, ElementSyntax):
                children.append(self._pattern(part))
            else:
                variables.append(self._term(part))
        variables += [self._declare(variable, "element") for variable in element.bindings]
        *above, name = path_of(element.tag)
        node = PatternNode(Step(name), tuple(variables), tuple(children))
        for outer in reversed(above):
            node = PatternNode(Step(outer), (), (node,))
        return node

    def _attribute(self, name: Token, value: Token) -> PatternNode:
        return PatternNode(Step(local_tag(name), "attribute"), (self._term(value),))

    def _term(self, token: Token) -> str:
        """The variable at a position in a pattern: its own, or an anonymous one that equals the constant."""
        if token.type == "VARIABLE":
            return self._declare(token, "content")
        variable = self._new_variable()
        self._conditions.append(Comparison(variable, "=", self._slot(token)))
        return variable

    def _declare(self, token: Token, binding: Binding) -> str:
        name = token[1:]
        if name not in self._variables:
            self._variables[name] = binding
            return name
        again = self._new_variable()
        self._conditions.append(Comparison(name, "=", again))
        return again

    def _new_variable(self) -> str:
        self._anonymous += 1
        return f"_{self._anonymous}"

    def _slot(self, token: Token) -> Slot:
        kind: LiteralKind = _KINDS[token.type]
        slot = Slot(len(self._slots), "number" if kind == "number" else "string")
        self._slots.append(slot)
        self._constants.append(_constant(token, kind))
        self._places.append(ConstantPlace(_at(token), _at(token) + len(token.rstrip()), kind))
        return slot

    def _literal(self, predicate: PredicateSyntax, positive: bool) -> list[Conjunction]:
        """A condition or its negation: the opposite comparison if that is equivalent, otherwise an absence."""
        comparison = self._predicate(predicate)
        if positive:
            return [(comparison,)]
        if comparison.op in OPPOSITES and (isinstance(comparison.right, str) or comparison.right.type == "string"):
            return [(replace(comparison, op=OPPOSITES[comparison.op]),)]
        if isinstance(comparison.right, str):
            reason = f"not(... {comparison.op} ...) is not supported between variables: values that are not numbers"
            raise Rejected(f"{reason} satisfy neither '{comparison.op}' nor its opposite", _at(predicate.op))
        return [(Absence((), (comparison,)),)]

    def _predicate(self, predicate: PredicateSyntax) -> Comparison:
        left, right, op = predicate.left, predicate.right, to_operator(predicate.op)
        if left.type != "VARIABLE":
            if right.type != "VARIABLE":
                raise Rejected("a comparison of two constants: one side must be a $variable", _at(left))
            left, right, op = right, left, MIRRORED[op]
        self._used.append(left)
        if right.type == "VARIABLE":
            self._used.append(right)
        other = right[1:] if right.type == "VARIABLE" else self._slot(right)
        return Comparison(left[1:], op, other)

    def _check_variable(self, variable: Token) -> Binding:
        if variable[1:] not in self._variables:
            bound = ", ".join(f"${name}" for name in self._variables) or "none"
            raise Rejected(f"no pattern binds {variable}; bound variables: {bound}", _at(variable))
        return self._variables[variable[1:]]

    def _output(self, part: OutputSyntax | Token) -> Output:
        if isinstance(part, OutputSyntax):
            children = tuple(self._output(child) for child in spaced(part.content))
            return ElementOutput(_output_name(part.tag), self._output_attributes(part.attributes), children)
        if part.type == "VARIABLE":
            return VariableOutput(part[1:], content=self._check_variable(part) == "content")
        return TextOutput(str(part) if part.type == "OUT_TEXT" else unquote(part))

    def _output_attributes(self, attributes: Attributes) -> OutputAttributes:
        found: dict[str, VariableOutput | TextOutput] = {}
        for name, value in attributes:
            if _output_name(name) in found:
                raise Rejected(f"the attribute '{name}' is given twice", _at(name))
            if value.type == "VARIABLE":
                self._check_variable(value)
                found[_output_name(name)] = VariableOutput(value[1:], content=True)
            else:
                found[_output_name(name)] = TextOutput(unquote(value))
        return tuple(found.items())


def _narrowed(shape: Shape, conditions: list[Comparison | Absence]) -> Shape:
    """The query with additional conditions; absences are attached to the nodes of the variables that they compare."""
    absent = [condition for condition in conditions if isinstance(condition, Absence)]
    compared = [condition for condition in conditions if isinstance(condition, Comparison)]
    blocks = tuple(replace(block, pattern=_without(block.pattern, absent)) for block in shape.blocks)
    return replace(shape, blocks=blocks, conditions=(*shape.conditions, *compared))


def _without(node: PatternNode, absent: list[Absence]) -> PatternNode:
    own = tuple(one for one in absent if one.conditions[0].left in node.variables)
    return replace(node, children=tuple(_without(child, absent) for child in node.children), absent=own)


def _check_joined(shape: Shape, starts: Sequence[int]) -> None:
    """Checks that each source is joined with the others: windows are infinite, so a product would be too large."""
    blocks, conditions = shape.blocks, shape.conditions
    owner = {name: i for i, block in enumerate(blocks) for node in block.pattern.walk() for name in node.variables}
    pairs = [{owner[c.left], owner[c.right]} for c in conditions if isinstance(c.right, str)]
    joined = {0}
    while more := [pair - joined for pair in pairs if pair & joined and pair - joined]:
        joined = joined.union(*more)
    apart = next((i for i in range(len(blocks)) if i not in joined), None)
    if apart is None:
        return
    names = [str(block.source) for block in blocks]
    what = f"{names[0]} and {names[1]} are" if len(names) == 2 else f"{names[apart]} is"
    how = "use a variable in both patterns, or compare variables of the two"
    others = "" if len(names) == 2 else " with the sources before it"
    raise Rejected(f"{what} not joined{others}; {how}", starts[apart])


def _source(words: tuple[Token, ...]) -> Source:
    """`"quotes.xml"`, or `"*" conforms to "quotes.dtd"`; a line break inside is not part of a URL."""
    place, dtd = _place(words[0]), _place(words[-1]) if len(words) > 1 else None
    if not place or dtd == "":
        raise Rejected("the source has no name", _at(words[0]))
    if place == "*" and dtd is None:
        raise Rejected("expected 'conforms to' and the name of a DTD after \"*\"", _at(words[0]))
    if place != "*" and dtd is not None:
        raise Rejected(f'\'conforms to\' needs the source "*", not "{place}"', _at(words[-1]))
    return Source(place) if dtd is None else Source(dtd, dtd=True)


def _place(word: Token) -> str:
    text = unquote(word) if word[0] in OPENING_QUOTES else str(word)
    return re.sub(r"\s*\n\s*", "", text).strip()


def _constant(token: Token, kind: LiteralKind) -> Constant:
    if kind != "number":
        return unquote(token) if kind == "quoted" else token.strip()
    number = to_constant(token)
    if number is None:
        raise Rejected(f"the number {token} is too large", _at(token))
    return number


def spaced(content: tuple[Part | Token, ...]) -> list[Part | Token]:
    """The content with white space between bare text and its neighbors reduced to one space, and none at the ends."""
    parts: list[Part | Token] = []
    for index, part in enumerate(content):
        if isinstance(part, Token) and part.type == "OUT_TEXT":
            before = " " if index > 0 and part[0].isspace() else ""
            after = " " if index < len(content) - 1 and part[-1].isspace() else ""
            part = part.update(value=f"{before}{part.strip()}{after}")
        parts.append(part)
    return parts


def _output_name(tag: Token) -> str:
    name = local_tag(tag)
    if not _XML_NAME.fullmatch(name):
        raise Rejected(f"'{name}' is not a name for an XML element or attribute", _at(tag))
    return name


def _at(token: Token) -> int:
    return token.start_pos or 0

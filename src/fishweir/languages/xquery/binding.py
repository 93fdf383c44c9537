"""Binding of XQuery: syntax nodes to the algebra's shape.

The variables of the outermost `for` and the paths of its `where` are the tree pattern: without them a document has no
result (context and selection patterns). Paths of return clauses are optional and are looked up below the variables when
an output is constructed; see `algebra/returns.py`. Constants of the outermost `where` are slots, so queries that differ
in them share one shape; those of an inner one are part of the output.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import cast

from lark import Token

from fishweir.algebra.nodes import (
    AttributeOutput,
    Block,
    Comparison,
    ElementOutput,
    Output,
    PatternNode,
    Shape,
    Source,
    Step,
    TextOutput,
    VariableOutput,
)
from fishweir.algebra.normal import ANY_ROOT
from fishweir.algebra.operators import condition_written
from fishweir.algebra.returns import ForOutput, PathCondition, PathOutput, ReturnOutput
from fishweir.languages.lexical import to_constant, unquote
from fishweir.languages.niagaracq.binding import spaced
from fishweir.languages.parsed import ParsedQuery
from fishweir.languages.statement_text import Rejected
from fishweir.languages.xquery.syntax import (
    BindingSyntax,
    ElementSyntax,
    FwrSyntax,
    ItemSyntax,
    PathSyntax,
    PredicateSyntax,
    QuerySyntax,
    StepSyntax,
)
from fishweir.languages.xscl.slots import Slots

_EMBEDDED = re.compile(r"\{\s*\$(\w+)((?://?@?[\w.:*-]+)*)\s*\}")


def bind(query: QuerySyntax) -> ParsedQuery:
    """The query's shape and constants. Raises Rejected for binding errors such as unknown variables."""
    binder = _Binder()
    shape = binder.bind(query.fwr)
    return ParsedQuery(shape, tuple(binder.slots.constants), tuple(binder.slots.places), query.clauses)


@dataclass
class _Place:
    """A node of the tree pattern under construction."""

    step: Step
    variables: list[str] = field(default_factory=list)
    children: list[_Place] = field(default_factory=list)

    def grow(self, step: Step) -> _Place:
        self.children.append(_Place(step))
        return self.children[-1]

    def frozen(self) -> PatternNode:
        return PatternNode(self.step, tuple(self.variables), tuple(child.frozen() for child in self.children))


class _Binder:
    """Walks one query in text order, so that slots are numbered in reading order."""

    def __init__(self) -> None:
        self.slots = Slots()
        self._places: dict[str, _Place] = {}
        self._nested: list[str] = []
        self._conditions: list[Comparison] = []
        self._anonymous = 0

    def bind(self, fwr: FwrSyntax) -> Shape:
        first, *others = fwr.bindings
        if not first.path.stream or first.path.start is None:
            raise Rejected(
                "expected stream('NAME') and a path: the first variable reads a stream", _at(first.path.start)
            )
        source = unquote(first.path.start).strip()
        if not source:
            raise Rejected("the stream has no name", _at(first.path.start))
        root = self._outermost(first)
        for binding in others:
            self._declare(binding)
            self._places[binding.variable[1:]] = self._grown(self._start(binding.path), binding.path)
            self._places[binding.variable[1:]].variables.append(binding.variable[1:])
        for predicate in fwr.conditions:
            self._condition(self._start(predicate.path), predicate)
        pattern = root.frozen()
        output = self._returned(tuple(self._output(item) for item in fwr.items))
        return Shape((Block(Source(source), pattern),), tuple(self._conditions), output, tuple(self.slots.slots))

    def _outermost(self, binding: BindingSyntax) -> _Place:
        """The root of the pattern, extended down to the first variable."""
        self._declare(binding, first=True)
        steps = binding.path.steps
        root = _Place(_step(steps[0]) if steps else ANY_ROOT)
        if steps:
            self._filtered(root, steps[0])
        last = self._grown(root, PathSyntax(None, steps[1:]))
        last.variables.append(binding.variable[1:])
        self._places[binding.variable[1:]] = last
        return root

    def _declare(self, binding: BindingSyntax, first: bool = False) -> None:
        """Checks that a variable is new and reads an earlier variable."""
        name = binding.variable[1:]
        if name in self._places or name in self._nested:
            raise Rejected(f"{binding.variable} is bound twice", _at(binding.variable))
        if binding.path.stream and not first:
            reason = "an XQuery query reads one stream: use XSCL or SQL to join streams"
            raise Rejected(reason, _at(binding.path.start))

    def _start(self, path: PathSyntax) -> _Place:
        assert path.start is not None
        name = path.start[1:]
        if name not in self._places:
            raise _unknown(path.start, list(self._places))
        return self._places[name]

    def _grown(self, place: _Place, path: PathSyntax) -> _Place:
        """Adds new nodes below a place: predicates on one path need not hold for the same node."""
        for step in path.steps:
            place = place.grow(_step(step))
            self._filtered(place, step)
        return place

    def _filtered(self, place: _Place, step: StepSyntax) -> None:
        for predicate in step.filters:
            self._condition(place, predicate)

    def _condition(self, place: _Place, predicate: PredicateSyntax) -> None:
        steps = predicate.path.steps
        if steps and steps[-1].step is None:
            steps = steps[:-1]
        place = self._grown(place, PathSyntax(None, steps))
        if predicate.constant is None:
            return
        if not place.variables:
            self._anonymous += 1
            place.variables.append(f"_{self._anonymous}")
        written = condition_written(predicate.op)
        if written is None:
            slot = self.slots.of_token(predicate.constant)
        else:
            slot = self.slots.of_text(predicate.constant, written)
        self._conditions.append(Comparison(place.variables[0], _operator(predicate.op), slot))

    def _returned(self, parts: tuple[Output, ...]) -> tuple[Output, ...]:
        """The output. A query that returns its only variable passes it on unchanged."""
        names = tuple(self._places)
        if parts == (PathOutput(names[0], ()),) and len(names) == 1:
            return (VariableOutput(names[0]),)
        return (ReturnOutput(names, parts),)

    def _output(self, item: ItemSyntax) -> Output:
        match item:
            case PathSyntax():
                return self._path(item)
            case ElementSyntax(tag, attributes, content):
                given = tuple((str(name), self._attribute(name, value)) for name, value in attributes)
                names = [name for name, _ in given]
                for (token, _), name in zip(attributes, names, strict=True):
                    if names.count(name) > 1:
                        raise Rejected(f"the attribute '{name}' is given twice", _at(token))
                return ElementOutput(str(tag), given, tuple(self._output(part) for part in _content(content)))
            case FwrSyntax():
                return self._inner(item)
            case _:
                return TextOutput(unquote(item) if item.type == "STRING" else str(item))

    def _attribute(self, name: Token, value: Token | PathSyntax) -> AttributeOutput:
        if isinstance(value, PathSyntax):
            return self._path(value)
        text = unquote(value)
        found = _EMBEDDED.fullmatch(text)
        if found is None:
            if "{" in text:
                raise Rejected('expected one path in braces, such as "{$a/@id}", or a plain text', _at(value))
            return TextOutput(text)
        if found[1] not in self._places and found[1] not in self._nested:
            raise _unknown(value.update(value=f"${found[1]}"), [*self._places, *self._nested])
        return PathOutput(found[1], tuple(_embedded_steps(found[2])))

    def _path(self, path: PathSyntax) -> PathOutput:
        """A path of a return clause, or of an inner `for` or `where`."""
        assert path.start is not None
        if path.stream:
            raise Rejected("an inner 'for' must start from a variable, as in $a/items", _at(path.start))
        name = path.start[1:]
        if name not in self._places and name not in self._nested:
            raise _unknown(path.start, [*self._places, *self._nested])
        for step in path.steps:
            if step.filters:
                reason = "conditions in the path of a return clause are not supported: write"
                raise Rejected(f"{reason} for $x in ... where ... return $x", step.at)
        text = bool(path.steps) and path.steps[-1].step is None
        return PathOutput(name, tuple(_step(step) for step in path.steps[: -1 if text else None]), text)

    def _inner(self, fwr: FwrSyntax) -> Output:
        """Variables of an inner `for` are nested, outermost first; its conditions are attached to the last one."""
        overs: list[tuple[str, PathOutput]] = []
        for binding in fwr.bindings:
            over = self._path(binding.path)
            self._declare(binding)
            self._nested.append(binding.variable[1:])
            overs.append((binding.variable[1:], over))
        conditions = tuple(self._inner_condition(predicate) for predicate in fwr.conditions)
        parts = tuple(self._output(item) for item in fwr.items)
        for variable, over in reversed(overs):
            parts = (ForOutput(variable, over, conditions, parts),)
            conditions = ()
            self._nested.remove(variable)
        return parts[0]

    def _inner_condition(self, predicate: PredicateSyntax) -> PathCondition:
        at = self._path(predicate.path)
        token = predicate.constant
        if token is None:
            return PathCondition(at)
        constant = unquote(token) if token.type == "STRING" else to_constant(token)
        if constant is None:
            raise Rejected(f"the number {token} is too large", _at(token))
        return PathCondition(at, _operator(predicate.op), constant)


def _content(content: tuple[ItemSyntax, ...]) -> list[ItemSyntax]:
    return cast("list[ItemSyntax]", spaced(content))


def _operator(op: str) -> str:
    """A comparison, or the name of the condition on texts for a keyword."""
    written = condition_written(op)
    return op if written is None else written.name


def _step(step: StepSyntax) -> Step:
    if step.step is None:
        raise Rejected("text() is only allowed at the end of a path that is returned or compared", step.at)
    return step.step


def _embedded_steps(text: str) -> list[Step]:
    found = re.findall(r"(//?)(@?)([\w.:*-]+)", text)
    axes = {("/", ""): "child", ("//", ""): "descendant", ("/", "@"): "attribute", ("//", "@"): "descendant-attribute"}
    return [Step(name.rpartition(":")[2], axes[slash, at]) for slash, at, name in found]  # type: ignore[arg-type]


def _unknown(variable: Token, known: list[str]) -> Rejected:
    shown = ", ".join(f"${name}" for name in known) or "none"
    return Rejected(f"no 'for' binds {variable}; bound variables: {shown}", _at(variable))


def _at(token: Token | None) -> int:
    return 0 if token is None else token.start_pos or 0

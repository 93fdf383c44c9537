"""Binding of XSCL: a query block to a tree pattern, with a slot for every constant.

The pattern's nodes are the block's steps and those of its predicates, each path by itself: `[a = 1][a = 2]`
asks for two nodes, which may be two. The result is the node of the block's last step, unless a select
clause says otherwise; variables that start with `_` are made here and not shown.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from lark import Token

from fishweir.algebra.nodes import (
    MIRRORED,
    OPERATORS,
    Axis,
    Block,
    Comparison,
    Constant,
    ElementOutput,
    Operator,
    Output,
    PatternNode,
    Shape,
    Slot,
    Source,
    Step,
    TextOutput,
    VariableOutput,
)
from fishweir.algebra.normal import ANY_ROOT
from fishweir.languages.lexical import OPENING_QUOTES, to_constant, unquote
from fishweir.languages.niagaracq_binding import spaced
from fishweir.languages.parsed import ConstantPlace, ParsedQuery
from fishweir.languages.pieces import Rejected
from fishweir.languages.xscl_syntax import ComparisonSyntax, ElementSyntax, QuerySyntax, RelativeSyntax, StepSyntax

AXES: dict[tuple[bool, bool], Axis] = {
    (False, False): "child", (True, False): "descendant",
    (False, True): "attribute", (True, True): "descendant-attribute",
}  # fmt: skip


@dataclass
class _Node:
    """A pattern node while it grows."""

    step: Step
    variables: list[str] = field(default_factory=list)
    children: list[_Node] = field(default_factory=list)

    def frozen(self) -> PatternNode:
        return PatternNode(self.step, tuple(self.variables), tuple(child.frozen() for child in self.children))


def bind(query: QuerySyntax) -> ParsedQuery:
    """The query's shape and constants; Rejected for unknown variables and the like."""
    return _Binder().bind(query)


class _Binder:
    """Walks one query in the order of its text, so that slots are numbered as the reader meets them."""

    def __init__(self) -> None:
        self._nodes: dict[str, _Node] = {}
        self._anonymous = 0
        self._conditions: list[Comparison] = []
        self._constants: list[Constant] = []
        self._slots: list[Slot] = []
        self._places: list[ConstantPlace] = []

    def bind(self, query: QuerySyntax) -> ParsedQuery:
        steps, source = query.block.steps, query.block.source
        if steps and steps[0].attribute and not steps[0].deep:
            raise Rejected("a document has no attributes: write '//@' or name the element", _at(steps[0].name))
        above = _Node(ANY_ROOT)
        last = self._path(above, steps)
        root = above.children[0] if steps else above
        if query.select is None:
            self._shown(last, steps[-1].name if steps else source)
            output: tuple[Output, ...] = (VariableOutput(self._variable(last)),)
        else:
            output = tuple(self._output(item) for item in query.select)
        block = Block(Source(_plain(source)), root.frozen())
        shape = Shape((block,), tuple(self._conditions), output, tuple(self._slots), "xscl")
        name = None if query.name is None else _plain(query.name)
        return ParsedQuery(shape, tuple(self._constants), tuple(self._places), query.clauses, name)

    def _path(self, node: _Node, steps: tuple[StepSyntax, ...]) -> _Node:
        """Grows the pattern by a path; the node at its end."""
        for step in steps:
            if node.step.is_attribute:
                raise Rejected("an attribute has nothing below it", _at(step.name))
            below = _Node(_step(step))
            node.children.append(below)
            node = below
            for variable in step.variables:
                self._declare(variable, node)
            for condition in step.conditions:
                self._condition(node, condition)
        return node

    def _declare(self, name: Token, node: _Node) -> None:
        if name[0] == "_":
            raise Rejected("a variable's name begins with a letter", _at(name))
        if name in self._nodes:
            raise Rejected(f"the variable {name} is bound twice", _at(name))
        self._nodes[str(name)] = node
        node.variables.append(str(name))

    def _variable(self, node: _Node) -> str:
        """A variable of a node, a new one where it has none."""
        if not node.variables:
            self._anonymous += 1
            node.variables.append(f"_{self._anonymous}")
        return node.variables[0]

    def _condition(self, node: _Node, condition: ComparisonSyntax) -> None:
        left, right = condition.left, condition.right
        if condition.op is None or right is None:
            if isinstance(left, Token):
                raise Rejected("positions are not supported: compare with a path", _at(left))
            self._path(node, left.steps)
            return
        op = _operator(condition.op)
        if isinstance(left, Token):
            if isinstance(right, Token):
                raise Rejected("a comparison of two constants: one side must be a path", _at(left))
            slot = self._slot(left)
            self._conditions.append(Comparison(self._end(node, right), MIRRORED[op], slot))
            return
        compared = self._end(node, left)
        other = self._slot(right) if isinstance(right, Token) else self._end(node, right)
        self._conditions.append(Comparison(compared, op, other))

    def _end(self, node: _Node, path: RelativeSyntax) -> str:
        return self._variable(self._path(node, path.steps))

    def _slot(self, token: Token) -> Slot:
        quoted = token.type == "STRING"
        slot = Slot(len(self._slots), "string" if quoted else "number")
        constant = unquote(token) if quoted else to_constant(token)
        if constant is None:
            raise Rejected(f"the number {token} is too large", _at(token))
        self._slots.append(slot)
        self._constants.append(constant)
        self._places.append(ConstantPlace(_at(token), _at(token) + len(token), "quoted" if quoted else "number"))
        return slot

    def _output(self, part: ElementSyntax | Token) -> Output:
        if isinstance(part, ElementSyntax):
            attributes: dict[str, VariableOutput | TextOutput] = {}
            for name, value in part.attributes:
                if name in attributes:
                    raise Rejected(f"the attribute '{name}' is given twice", _at(name))
                attributes[str(name)] = self._attribute(value)
            children = tuple(self._output(child) for child in spaced(part.content))
            return ElementOutput(str(part.tag), tuple(attributes.items()), children)
        if part.type in ("STRING", "OUT_TEXT"):
            return TextOutput(unquote(part) if part.type == "STRING" else str(part))
        return VariableOutput(self._known(part))

    def _attribute(self, value: Token) -> VariableOutput | TextOutput:
        if value.type == "STRING":
            return TextOutput(unquote(value))
        return VariableOutput(self._known(value), content=True)

    def _known(self, variable: Token) -> str:
        name = variable.removeprefix("$")
        if name not in self._nodes:
            known = ", ".join(self._nodes) or "none"
            raise Rejected(f"the block does not bind {name}; bound variables: {known}", _at(variable))
        self._shown(self._nodes[name], variable)
        return name

    def _shown(self, node: _Node, at: Token) -> None:
        if node.step.is_attribute and node.step.name == "*":
            raise Rejected("an attribute that is output needs a name: '@*' may stand for several", _at(at))


def _step(syntax: StepSyntax) -> Step:
    token, axis = syntax.name, AXES[syntax.deep, syntax.attribute]
    if token.type == "PREFIXED":
        local = token.rpartition(":")[2]
        reason = f"prefixes have no namespace here: write '{{uri}}{local}', or '{local}' for any namespace"
        raise Rejected(reason, _at(token))
    if token.type != "CLARK":
        return Step(str(token), axis)
    namespace, _, local = token[1:].rpartition("}")
    return Step(local, axis, namespace)


def _plain(token: Token) -> str:
    name = unquote(token).strip() if token[0] in OPENING_QUOTES else str(token)
    if not name:
        raise Rejected("the name is empty", _at(token))
    return name


def _operator(token: Token) -> Operator:
    text = "!=" if token == "<>" else str(token)
    return OPERATORS[[str(op) for op in OPERATORS].index(text)]


def _at(token: Token) -> int:
    return token.start_pos or 0

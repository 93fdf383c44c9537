"""Binding of XSCL: a query block to a tree pattern, with a slot for every constant.

The pattern's nodes are the block's steps and those of its predicates, each path by itself: `[a = 1][a = 2]`
asks for two nodes, which may be two. The result is the node of the block's last step, unless a select
clause says otherwise; variables that start with `_` are made here and not shown. What is here binds one block
after the other into one query; `xscl_joins` goes on from there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

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
from fishweir.languages.niagaracq.binding import spaced
from fishweir.languages.parsed import ConstantPlace, ParsedQuery
from fishweir.languages.pieces import Rejected
from fishweir.languages.xscl.syntax import (
    BlockSyntax,
    ComparisonSyntax,
    ElementSyntax,
    QuerySyntax,
    RelativeSyntax,
    StepSyntax,
)

AXES: dict[tuple[bool, bool], Axis] = {
    (False, False): "child", (True, False): "descendant",
    (False, True): "attribute", (True, True): "descendant-attribute",
}  # fmt: skip


@dataclass
class Node:
    """A pattern node while it grows."""

    step: Step
    variables: list[str] = field(default_factory=list)
    children: list[Node] = field(default_factory=list)

    def walk(self) -> Iterator[Node]:
        yield self
        for child in self.children:
            yield from child.walk()

    def frozen(self) -> PatternNode:
        return PatternNode(self.step, tuple(self.variables), tuple(child.frozen() for child in self.children))


def bind_selection(query: QuerySyntax) -> ParsedQuery:
    """The shape and constants of a query of one block; Rejected for unknown variables and the like."""
    return Binder().bind(query)


class Binder:
    """Walks one query in the order of its text, so that slots are numbered as the reader meets them."""

    where = "the block does"

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}
        self._side = 0
        self._sides: dict[str, int] = {}
        self._prefix = "_"
        self._anonymous = 0
        self._conditions: list[Comparison] = []
        self._constants: list[Constant] = []
        self._slots: list[Slot] = []
        self._places: list[ConstantPlace] = []

    def bind(self, query: QuerySyntax) -> ParsedQuery:
        root, last = self._block(query.block)
        if query.select is None:
            self._shown(last, query.block.last)
            output: tuple[Output, ...] = (VariableOutput(self._variable(last)),)
        else:
            output = tuple(self._output(item) for item in query.select)
        block = Block(Source(plain_name(query.block.source)), root.frozen())
        shape = Shape((block,), tuple(self._conditions), output, tuple(self._slots), "xscl")
        return self._parsed(shape, query)

    def _parsed(self, shape: Shape, query: QuerySyntax) -> ParsedQuery:
        return ParsedQuery(shape, tuple(self._constants), tuple(self._places), query.clauses)

    def _block(self, block: BlockSyntax) -> tuple[Node, Node]:
        """The root of a block's pattern and the node of its last step."""
        steps = block.steps
        if steps and steps[0].attribute and not steps[0].deep:
            raise Rejected("a document has no attributes: write '//@' or name the element", at(steps[0].name))
        above = Node(ANY_ROOT)
        for variable in block.variables:
            self._declare(variable, above)
        last = self._path(above, steps)
        return above.children[0] if steps else above, last

    def _path(self, node: Node, steps: tuple[StepSyntax, ...]) -> Node:
        """Grows the pattern by a path; the node at its end."""
        for step in steps:
            if node.step.is_attribute:
                raise Rejected("an attribute has nothing below it", at(step.name))
            below = Node(_step(step))
            node.children.append(below)
            node = below
            for variable in step.variables:
                self._declare(variable, node)
            for condition in step.conditions:
                self._condition(node, condition)
        return node

    def _declare(self, token: Token, node: Node) -> None:
        name = variable_name(token)
        if name[0] == "_":
            raise Rejected("a variable's name begins with a letter", at(token))
        if name in self._nodes:
            reason = f"the variable {name} is bound twice"
            if self._sides[name] != self._side:
                reason = f"the variable {name} is bound in two blocks: write {name}' in one of them"
            raise Rejected(reason, at(token))
        self._nodes[name], self._sides[name] = node, self._side
        node.variables.append(name)

    def _variable(self, node: Node) -> str:
        """A variable of a node, a new one where it has none."""
        if not node.variables:
            self._anonymous += 1
            node.variables.append(f"{self._prefix}{self._anonymous}")
        return node.variables[0]

    def _condition(self, node: Node, condition: ComparisonSyntax) -> None:
        left, right = condition.left, condition.right
        if condition.op is None or right is None:
            if isinstance(left, Token):
                raise Rejected("positions are not supported: compare with a path", at(left))
            self._path(node, left.steps)
            return
        op = operator_of(condition.op)
        if isinstance(left, Token):
            if isinstance(right, Token):
                raise Rejected("a comparison of two constants: one side must be a path", at(left))
            slot = self._slot(left)
            self._conditions.append(Comparison(self._end(node, right), MIRRORED[op], slot))
            return
        compared = self._end(node, left)
        other = self._slot(right) if isinstance(right, Token) else self._end(node, right)
        self._conditions.append(Comparison(compared, op, other))

    def _end(self, node: Node, path: RelativeSyntax) -> str:
        return self._variable(self._path(node, path.steps))

    def _slot(self, token: Token) -> Slot:
        quoted = token.type == "STRING"
        constant = unquote(token) if quoted else to_constant(token)
        if constant is None:
            raise Rejected(f"the number {token} is too large", at(token))
        place = ConstantPlace(at(token), at(token) + len(token), "quoted" if quoted else "number")
        return self._place("string" if quoted else "number", constant, place)

    def _place(self, kind: Literal["string", "number"], constant: Constant, place: ConstantPlace) -> Slot:
        slot = Slot(len(self._slots), kind)
        self._slots.append(slot)
        self._constants.append(constant)
        self._places.append(place)
        return slot

    def _output(self, part: ElementSyntax | Token) -> Output:
        if isinstance(part, ElementSyntax):
            attributes: dict[str, VariableOutput | TextOutput] = {}
            for name, value in part.attributes:
                if name in attributes:
                    raise Rejected(f"the attribute '{name}' is given twice", at(name))
                attributes[str(name)] = self._attribute(value)
            children = tuple(self._output(child) for child in spaced(part.content))
            return ElementOutput(str(part.tag), tuple(attributes.items()), children)
        if part.type in ("STRING", "OUT_TEXT"):
            return TextOutput(unquote(part) if part.type == "STRING" else str(part))
        return self._variable_output(self._known(part))

    def _variable_output(self, name: str) -> VariableOutput:
        return VariableOutput(name)

    def _attribute(self, value: Token) -> VariableOutput | TextOutput:
        if value.type == "STRING":
            return TextOutput(unquote(value))
        return VariableOutput(self._known(value), content=True)

    def _known(self, variable: Token) -> str:
        """A variable that the output mentions."""
        name = self._bound(variable)
        self._shown(self._nodes[name], variable)
        return name

    def _bound(self, variable: Token) -> str:
        name = variable_name(variable)
        if name not in self._nodes:
            known = ", ".join(self._nodes) or "none"
            raise Rejected(f"{self.where} not bind {name}; bound variables: {known}", at(variable))
        return name

    def _shown(self, node: Node, shown: Token) -> None:
        if node.step.is_attribute and node.step.name == "*":
            raise Rejected("an attribute that is output needs a name: '@*' may stand for several", at(shown))


def _step(syntax: StepSyntax) -> Step:
    token, axis = syntax.name, AXES[syntax.deep, syntax.attribute]
    if token.type == "PREFIXED":
        local = token.rpartition(":")[2]
        reason = f"prefixes have no namespace here: write '{{uri}}{local}', or '{local}' for any namespace"
        raise Rejected(reason, at(token))
    if token.type != "CLARK":
        return Step(str(token), axis)
    namespace, _, local = token[1:].rpartition("}")
    return Step(local, axis, namespace)


def plain_name(token: Token) -> str:
    name = unquote(token).strip() if token[0] in OPENING_QUOTES else str(token)
    if not name:
        raise Rejected("the name is empty", at(token))
    return name


def operator_of(token: Token) -> Operator:
    text = "!=" if token == "<>" else str(token)
    return OPERATORS[[str(op) for op in OPERATORS].index(text)]


def variable_name(token: Token) -> str:
    """Without `$`, its primes typed alike."""
    return token.removeprefix("$").replace("’", "'")


def at(token: Token) -> int:
    return token.start_pos or 0

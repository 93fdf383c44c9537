"""Binding of XSCL: a query block to a tree pattern, with a slot for every constant.

The pattern's nodes are the block's steps and those of its predicates, each path separately: `[a = 1][a = 2]` requires
two nodes, which may differ. The result is the node of the block's last step, unless a select clause says otherwise.
Variables that start with `_` are created here and not shown. This module binds the blocks of a query one after another;
`joins` continues from there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from lark import Token

from fishweir.algebra.alternatives import one_of, parts, steps_of
from fishweir.algebra.nodes import (
    MIRRORED,
    Absence,
    Block,
    Comparison,
    ElementOutput,
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
from fishweir.algebra.operators import Condition, condition_written
from fishweir.algebra.path_queries import AXES
from fishweir.languages.connectives import NotSyntax
from fishweir.languages.lexical import OPENING_QUOTES, to_operator, unquote
from fishweir.languages.niagaracq.binding import spaced
from fishweir.languages.parsed import ParsedQuery
from fishweir.languages.statement_text import Rejected
from fishweir.languages.xscl.expanding import expand_query
from fishweir.languages.xscl.slots import Slots
from fishweir.languages.xscl.syntax import (
    BlockSyntax,
    ComparisonSyntax,
    ConditionSyntax,
    ElementSyntax,
    QuerySyntax,
    RelativeSyntax,
    StepSyntax,
    comparisons,
)


@dataclass
class Node:
    """A pattern node under construction."""

    step: Step
    variables: list[str] = field(default_factory=list)
    children: list[Node] = field(default_factory=list)
    absent: list[Absence] = field(default_factory=list)

    def walk(self) -> Iterator[Node]:
        yield self
        for child in self.children:
            yield from child.walk()

    def frozen(self) -> PatternNode:
        children = tuple(child.frozen() for child in self.children)
        return PatternNode(self.step, tuple(self.variables), children, tuple(self.absent))


def bind_selection(query: QuerySyntax, slots: Slots | None = None) -> ParsedQuery:
    """The shape and constants of a query with one block; `slots` are those of the whole query. Raises Rejected for
    errors such as unknown variables.
    """
    found, slots = expand_query(query), slots or Slots()
    shapes = [Binder(slots, len(found) > 1, query.optional).bind(one) for one in found]
    shape = one_of([replace(shape, slots=tuple(slots.slots)) for shape in shapes])
    if shape.alternatives:
        check_output_types(shape, query)
    return ParsedQuery(shape, tuple(slots.constants), tuple(slots.places), query.clauses)


def check_output_types(shape: Shape, query: QuerySyntax) -> None:
    """Checks that the type of an output variable does not depend on the alternative: an element, or one attribute."""
    shown = [{n: _kind(step) for n, (_, step) in steps_of(part).items()} for part in parts(shape)]
    for name in shape.output_variables:
        if len({kinds[name] for kinds in shown if name in kinds}) > 1:
            what = f"{name} is" if name[0] != "_" else "the result is"
            reason = f"{what} an element in one part of the 'or' and an attribute, or another attribute, in the next"
            raise Rejected(reason, at(query.block.source))


def _kind(step: Step) -> tuple[str, str | None] | None:
    return (step.name, step.namespace) if step.is_attribute else None


class Binder:
    """Walks one query in text order, so that slots are numbered in reading order."""

    where = "the block does"
    operand = "a path"

    def __init__(self, slots: Slots, several: bool, optional: frozenset[str]) -> None:
        self._slots, self._several, self._optional = slots, several, optional
        self._nodes: dict[str, Node] = {}
        self._side = 0
        self._sides: dict[str, int] = {}
        self._prefix = "_"
        self._anonymous = 0
        self._conditions: list[Comparison] = []
        self._negated = False

    def bind(self, query: QuerySyntax) -> Shape:
        root, last = self._block(query.block)
        if query.select is None:
            self._shown(last, query.block.last)
            output: tuple[Output, ...] = (VariableOutput(self._result(last)),)
        else:
            output = tuple(self._output(item) for item in query.select)
        block = Block(Source(plain_name(query.block.source)), root.frozen())
        return Shape((block,), tuple(self._conditions), output)

    def _result(self, last: Node, number: int = 0) -> str:
        """The variable of a block's result; the same one in all alternatives."""
        if not self._several:
            return self._variable(last)
        named = [name for name in last.variables if name[0] != "_"]
        if not named:
            last.variables.append(f"{self._prefix}last{number}")
        return named[0] if named else last.variables[-1]

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
        """Extends the pattern by a path and returns the node at its end."""
        for step in steps:
            if node.step.is_attribute:
                raise Rejected("an attribute has no children", at(step.name))
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
        if self._negated:
            raise Rejected(f"the variable {name} cannot be bound inside not(...)", at(token))
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
        """The variable of a node, a new one if it has none."""
        if not node.variables:
            self._anonymous += 1
            node.variables.append(f"{self._prefix}{self._anonymous}")
        return node.variables[0]

    def _condition(self, node: Node, condition: ConditionSyntax) -> None:
        if isinstance(condition, NotSyntax):
            self._absence(node, condition)
            return
        assert isinstance(condition, ComparisonSyntax), "and, or are multiplied out"
        left, right = condition.left, condition.right
        if condition.op is None or right is None:
            if isinstance(left, Token):
                raise Rejected("expected a path, or a comparison with one", at(left))
            self._path(node, left.steps)
            return
        if condition.op.type == "CONDITION":
            path, on_texts, constant = self._on_texts(condition)
            name = self._end(node, path)
            self._conditions.append(Comparison(name, on_texts.name, self._slots.of_text(constant, on_texts)))
            return
        op = to_operator(condition.op)
        if isinstance(left, Token):
            if isinstance(right, Token):
                raise Rejected("a comparison of two constants: one side must be a path", at(left))
            slot = self._slot(left)
            self._conditions.append(Comparison(self._end(node, right), MIRRORED[op], slot))
            return
        compared = self._end(node, left)
        other = self._slot(right) if isinstance(right, Token) else self._end(node, right)
        self._conditions.append(Comparison(compared, op, other))

    def _absence(self, node: Node, negation: NotSyntax[ComparisonSyntax]) -> None:
        """Builds a separate pattern below the node and records it as an absence."""
        if node.step.is_attribute and node.step.name == "*":
            raise Rejected("not(...) needs the name of the attribute: '@*' may match several", at(negation.word))
        before, self._conditions = self._conditions, []
        outer, self._negated = self._negated, True
        below = Node(node.step, node.variables)
        self._condition(below, negation.part)
        children = tuple(child.frozen() for child in below.children)
        tests = (path.test for one in comparisons(negation) for path in one.paths if path.test is not None)
        test = next((_step(StepSyntax(name)) for name in tests), None)
        node.absent.append(Absence(children, tuple(self._conditions), test))
        self._conditions, self._negated = before, outer

    def _on_texts(self, condition: ComparisonSyntax) -> tuple[RelativeSyntax, Condition, Token]:
        """The parts of `path KEYWORD 'constant'`, checked."""
        word, left, right = condition.op, condition.left, condition.right
        on_texts = None if word is None else condition_written(word)
        assert on_texts is not None, "the grammar accepts only registered keywords"
        assert right is not None, "the grammar requires it after the keyword"
        if isinstance(left, Token):
            raise Rejected(f"expected {self.operand} before '{word}'", at(left))
        if not isinstance(right, Token) or right.type != "STRING":
            found = right if isinstance(right, Token) else right.start
            raise Rejected(f"expected quoted text after '{word}'", at(found))
        return left, on_texts, right

    def _end(self, node: Node, path: RelativeSyntax) -> str:
        return self._variable(self._path(node, path.steps))

    def _slot(self, token: Token) -> Slot:
        return self._slots.of_token(token)

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
        return self._variable_output(self._check_variable(part))

    def _variable_output(self, name: str) -> VariableOutput:
        return VariableOutput(name)

    def _attribute(self, value: Token) -> VariableOutput | TextOutput:
        if value.type == "STRING":
            return TextOutput(unquote(value))
        return VariableOutput(self._check_variable(value), content=True)

    def _check_variable(self, variable: Token) -> str:
        """Checks a variable that the output mentions."""
        name = variable_name(variable)
        if name in self._optional and name not in self._nodes:
            return name
        name = self._bound(variable)
        self._shown(self._nodes[name], variable)
        return name

    def _bound(self, variable: Token) -> str:
        name = variable_name(variable)
        if name not in self._nodes:
            if name in self._optional:
                raise Rejected(f"the variable {name} is optional: it can be output, but not compared", at(variable))
            bound = ", ".join(self._nodes) or "none"
            if self._several:
                bound += "; an output variable must be bound in every part of an 'or'"
            raise Rejected(f"{self.where} not bind {name}; bound variables: {bound}", at(variable))
        return name

    def _shown(self, node: Node, shown: Token) -> None:
        if node.step.is_attribute and node.step.name == "*":
            raise Rejected("an attribute that is output needs a name: '@*' may match several", at(shown))


def _step(syntax: StepSyntax) -> Step:
    token, axis = syntax.name, AXES[syntax.deep, syntax.attribute]
    if token.type != "CLARK":
        return Step(str(token), axis, position=syntax.position)
    namespace, _, local = token[1:].rpartition("}")
    return Step(local, axis, namespace, syntax.position)


def plain_name(token: Token) -> str:
    name = unquote(token).strip() if token[0] in OPENING_QUOTES else str(token)
    if not name:
        raise Rejected("the name is empty", at(token))
    return name


def variable_name(token: Token) -> str:
    """The name without `$`, with uniform primes."""
    return token.removeprefix("$").replace("’", "'")


def at(token: Token) -> int:
    return token.start_pos or 0

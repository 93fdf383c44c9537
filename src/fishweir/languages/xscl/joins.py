"""Binding of XSCL's joins: two blocks, the comparisons between them in value-join normal form, the window.

In: a join and its two sides, each a block or the output of another join (`trees.py`). Out: a Shape with two blocks and
a window. Steps on a variable inside a join's predicate extend the pattern below the variable's node, each path
separately, so that the remaining comparisons are between variables (MMQJP section 2). A comparison within one block, or
with a constant, is a condition of that block. A join without a predicate yields all pairs within its window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lark import Token

from fishweir.algebra.nodes import (
    MIRRORED,
    NO_OUTPUT,
    OPPOSITES,
    Block,
    Comparison,
    ElementOutput,
    Output,
    Shape,
    SideWindow,
    Source,
    VariableOutput,
)
from fishweir.languages.connectives import NotSyntax
from fishweir.languages.lexical import to_operator
from fishweir.languages.parsed import derived_name
from fishweir.languages.statement_text import Rejected
from fishweir.languages.xscl.binding import Binder, Node, at, plain_name, variable_name
from fishweir.languages.xscl.chains import ROOT, DerivedJoin, DerivedVariable, holder
from fishweir.languages.xscl.slots import Slots
from fishweir.languages.xscl.syntax import (
    BlockSyntax,
    ComparisonSyntax,
    ConditionSyntax,
    JoinSyntax,
    QuerySyntax,
    RelativeSyntax,
)


class JoinBinder(Binder):
    """Binds the blocks first, then the predicate, which may name the variables of both. Generated variables begin with
    `prefix`.
    """

    where = "the blocks do"
    operand = "a variable"

    def __init__(self, prefix: str, slots: Slots, several: bool, optional: frozenset[str]) -> None:
        super().__init__(slots, several, optional)
        self._prefix = prefix
        self._blocks: list[tuple[str, Node]] = []
        self._windows: tuple[SideWindow, ...] = ()
        self._strict = False
        self._taken: dict[str, Token] = {}
        """Variables of the joins inside the sides, kept or not, and the position where each is bound."""
        self._declared: dict[str, Token] = {}
        self._texts: set[str] = set()
        """Variables that represent the text of an attribute."""
        self._lasts: list[tuple[Token, Node]] = []
        """The results of the blocks, each with its position in the text."""

    def bind_sides(self, left: BlockSyntax | DerivedJoin, right: BlockSyntax | DerivedJoin, join: JoinSyntax) -> None:
        self.bind_side(left)
        self._side = 1
        self.bind_side(right)
        self._windows, self._strict = self._join(join), join.is_sequence

    def bind_side(self, side: BlockSyntax | DerivedJoin) -> None:
        if isinstance(side, DerivedJoin):
            self._derived(side)
        else:
            self._bind_block(side)

    def to_documents(self) -> Shape:
        """The join, or its only side, as a query that only determines which documents match."""
        return self._shape(NO_OUTPUT)

    def to_shape(self, query: QuerySyntax) -> Shape:
        return self._shape(
            self._default() if query.select is None else tuple(self._output(item) for item in query.select)
        )

    def to_derived(self, needed: dict[str, Token], lasts: bool, text: str) -> tuple[Shape, DerivedJoin]:
        """The join as a separate query that keeps the variables needed later, and its output."""
        results = [(self._result(node, i), token, node) for i, (token, node) in enumerate(self._lasts)] if lasts else []
        ends = {name: (token, node) for name, token, node in results}
        places = {name: (token, self._nodes[name]) for name, token in needed.items() if name in self._nodes} | ends
        variables: list[DerivedVariable] = []
        for name, (token, node) in places.items():
            self._shown(node, token)
            variables.append(
                DerivedVariable(f"v{len(variables) + 1}", name, name in self._texts or node.step.is_attribute)
            )
        parts = (ElementOutput(one.tag, (), (VariableOutput(one.variable, one.is_text),)) for one in variables)
        shape = self._shape((ElementOutput(ROOT, (), tuple(parts)),))
        text = f"{text} -- keeps {', '.join(one.variable for one in variables)}"
        found = tuple((name, token) for name, (token, _) in ends.items())
        names = tuple((self._taken | self._declared).items())
        return shape, DerivedJoin(derived_name(text), tuple(variables), found, names, text)

    def _shape(self, output: tuple[Output, ...]) -> Shape:
        blocks = tuple(Block(Source(source), root.frozen()) for source, root in self._blocks)
        return Shape(blocks, tuple(self._conditions), output, (), self._windows, self._strict)

    def _bind_block(self, block: BlockSyntax) -> None:
        root, last = self._block(block)
        self._blocks.append((plain_name(block.source), root))
        self._lasts.append((block.last, last))

    def _derived(self, left: DerivedJoin) -> None:
        """Binds a side that is itself a join: the variables that its documents contain."""
        for name, token in left.names:
            self._check_new(name, token)
        root, nodes = Node(holder(ROOT)), dict[str, Node]()
        for one in left.variables:
            node = Node(holder(one.tag))
            root.children.append(node)
            if not one.is_text:
                node.children.append(Node(holder("*")))
                node = node.children[0]
            nodes[one.variable] = node
            self._texts |= {one.variable} if one.is_text else set()
            node.variables.append(one.variable)
            if one.variable[0] != "_":
                self._nodes[one.variable], self._sides[one.variable] = node, self._side
        self._lasts += [(token, nodes[name]) for name, token in left.lasts]
        self._taken |= dict(left.names)
        self._blocks.append((left.source, root))

    def _declare(self, token: Token, node: Node) -> None:
        name = variable_name(token)
        if name not in self._nodes:
            self._check_new(name, token)
        super()._declare(token, node)
        self._declared[name] = token

    def _check_new(self, name: str, token: Token) -> None:
        if name in self._taken or name in self._nodes:
            reason = f"the variable {name} is bound in two blocks: write {name}' in one of them"
            raise Rejected(reason, at(token))

    def _default(self) -> tuple[Output, ...]:
        """A new root with the results of the blocks."""
        for token, node in self._lasts:
            self._shown(node, token)
        parts = [self._variable_output(self._result(node, i)) for i, (_, node) in enumerate(self._lasts)]
        return (ElementOutput(ROOT, (), tuple(parts)),)

    def _variable_output(self, name: str) -> VariableOutput:
        return VariableOutput(name, name in self._texts)

    def _join(self, join: JoinSyntax) -> tuple[SideWindow, ...]:
        between = [self._compare(condition) for condition in join.conditions]
        if False in between and True not in between:
            reason = "all comparisons of this join are within one of its blocks: compare x of one with y of the other"
            raise Rejected(f"{reason}, or omit them for all pairs", at(join.word))
        slot = self._slots.of_place("number", join.window.seconds, join.window.place)
        return SideWindow(slot), SideWindow() if join.is_sequence else SideWindow(slot)

    def _compare(self, condition: ConditionSyntax) -> bool | None:
        """Adds a condition of a join. Returns whether it compares variables of two blocks or of one; None if of
        none.
        """
        if isinstance(condition, NotSyntax):
            return self._negation(condition)
        assert isinstance(condition, ComparisonSyntax), "and, or are multiplied out"
        left, right = condition.left, condition.right
        if condition.op is None or right is None:
            self._require(left)
            return None
        if condition.op.type == "CONDITION":
            operand, on_texts, constant = self._on_texts(condition)
            name = self._operand(operand)[0]
            self._conditions.append(Comparison(name, on_texts.name, self._slots.of_text(constant, on_texts)))
            return None
        op = to_operator(condition.op)
        if isinstance(left, Token):
            if isinstance(right, Token):
                raise Rejected("a comparison of two constants: one side must be a variable", at(left))
            slot = self._slot(left)
            self._conditions.append(Comparison(self._operand(right)[0], MIRRORED[op], slot))
            return None
        compared, side = self._operand(left)
        if isinstance(right, Token):
            self._conditions.append(Comparison(compared, op, self._slot(right)))
            return None
        other, other_side = self._operand(right)
        self._conditions.append(Comparison(compared, op, other))
        if side != other_side:
            for name, operand in ((compared, left), (other, right)):
                self._check_named(name, operand)
        return side != other_side

    def _negation(self, negation: NotSyntax[ComparisonSyntax]) -> bool | None:
        """Adds a negated condition: an absence below a variable, or for two variables the opposite comparison."""
        comparison = negation.part
        assert isinstance(comparison, ComparisonSyntax)
        operands = [side for side in (comparison.left, comparison.right) if isinstance(side, RelativeSyntax)]
        if len(operands) == 2:
            return self._compare(opposite(comparison, operands))
        if not operands:
            raise Rejected("a comparison of two constants: one side must be a variable", at(negation.word))
        (operand,) = operands
        name = self._bound(operand.start)
        if name in self._texts and operand.steps:
            raise Rejected("an attribute has no children", at(operand.steps[0].name))
        node, self._side = self._nodes[name], self._sides[name]
        if operand.conditions:
            raise Rejected("a variable inside not(...) cannot have a predicate: put it on the block", at(operand.start))
        self._absence(node, negation)
        return None

    def _check_named(self, name: str, operand: RelativeSyntax) -> None:
        """Checks an operand: results contain the nodes that value joins compare, and attributes are known by name."""
        node = next(n for _, root in self._blocks for n in root.walk() if name in n.variables)
        if node.step.is_attribute and node.step.name == "*":
            shown = operand.steps[-1].name if operand.steps else operand.start
            raise Rejected("an attribute that is joined needs a name: '@*' may match several", at(shown))

    def _require(self, operand: RelativeSyntax | Token) -> None:
        """Adds an operand that must only exist; `true` always does."""
        if isinstance(operand, Token):
            raise Rejected("expected a comparison of variables, such as x = y", at(operand))
        bare = not operand.steps and not operand.conditions
        if not (bare and variable_name(operand.start).lower() == "true" and "true" not in self._nodes):
            self._operand(operand)

    def _operand(self, operand: RelativeSyntax) -> tuple[str, int]:
        """The variable at the end of an operand and its side."""
        name = self._bound(operand.start)
        if name in self._texts and operand.steps:
            raise Rejected("an attribute has no children", at(operand.steps[0].name))
        node, self._side = self._nodes[name], self._sides[name]
        for condition in operand.conditions:
            self._condition(node, condition)
        if not operand.steps:
            return name, self._side
        return self._variable(self._path(node, operand.steps)), self._side


def opposite(comparison: ComparisonSyntax, operands: Sequence[RelativeSyntax]) -> ComparisonSyntax:
    """The opposite comparison, for two existing values: equal or not."""
    assert comparison.op is not None
    if any(operand.steps or operand.conditions for operand in operands):
        reason = "not(...) compares two variables, not paths below them: bind the nodes to variables"
        raise Rejected(reason, at(operands[0].start))
    op = to_operator(comparison.op)
    if op not in OPPOSITES:
        reason = f"not(... {op} ...) is not supported between variables: values that are not numbers satisfy neither"
        raise Rejected(f"{reason} '{op}' nor its opposite", at(comparison.op))
    return replace(comparison, op=comparison.op.update(value=OPPOSITES[op]))

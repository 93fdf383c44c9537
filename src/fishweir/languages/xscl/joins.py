"""Binding of XSCL's joins: two blocks, the comparisons between them in value-join normal form, the window.

In: a query of two or more blocks. Out: a Shape with two blocks and a window. Steps on a variable inside a
join's predicate grow the pattern below the variable's node, each path by itself, so that what is left compares
variables with each other (MMQJP section 2). A comparison within one block, or with a constant, is a condition
of that block. Of several joins, each but the last is a query of its own, whose results the next one reads
(`xscl_chains`).
"""

from __future__ import annotations

from lark import Token

from fishweir.algebra.nodes import (
    MIRRORED,
    Block,
    Comparison,
    ElementOutput,
    Output,
    Shape,
    Source,
    VariableOutput,
    Window,
)
from fishweir.languages.parsed import ParsedQuery
from fishweir.languages.pieces import Rejected
from fishweir.languages.schedule import Clauses
from fishweir.languages.xscl.binding import Binder, Node, at, operator_of, plain_name, variable_name
from fishweir.languages.xscl.chains import ROOT, Derived, Kept, derived_name, holder, mentioned_after
from fishweir.languages.xscl.syntax import BlockSyntax, ComparisonSyntax, JoinSyntax, QuerySyntax, RelativeSyntax


def bind_joins(query: QuerySyntax, text: str) -> ParsedQuery:
    """The shape and constants of the last join, with the joins before it; Rejected for what does not bind."""
    before: list[ParsedQuery] = []
    left: BlockSyntax | Derived = query.block
    for number, join in enumerate(query.joins[:-1]):
        binder = JoinBinder(number)
        binder.bind_blocks(left, join)
        start, end = at(query.block.source), at(query.joins[number + 1].word)
        made, left = binder.to_derived(mentioned_after(query, number), query.select is None, text[start:end].rstrip())
        before.append(made)
    binder = JoinBinder(len(before))
    binder.bind_blocks(left, query.joins[-1])
    return binder.to_parsed(query, tuple(before))


class JoinBinder(Binder):
    """Binds the blocks first, then the predicate, which may name the variables of both. Of a chain it is the join
    of that number, counted from 0; the left side is then what the join before it made."""

    where = "the blocks do"

    def __init__(self, number: int) -> None:
        super().__init__()
        self._prefix = f"_{number}_" if number else "_"
        self._blocks: list[tuple[str, Node]] = []
        self._window = Window(None, None)
        self._taken: tuple[str, ...] = ()
        self._texts: set[str] = set()
        """Variables that stand for the text of an attribute."""
        self._lasts: list[tuple[Token, Node]] = []
        """The results of the blocks, each with its place in the text."""

    def bind_blocks(self, left: BlockSyntax | Derived, join: JoinSyntax) -> None:
        if isinstance(left, Derived):
            self._derived(left)
        else:
            self._bind_block(left)
        self._side = 1
        self._bind_block(join.block)
        self._window = self._join(join)

    def to_parsed(self, query: QuerySyntax, before: tuple[ParsedQuery, ...]) -> ParsedQuery:
        output = self._default() if query.select is None else tuple(self._output(item) for item in query.select)
        return ParsedQuery(
            self._shape(output), tuple(self._constants), tuple(self._places), query.clauses, before=before
        )

    def to_derived(self, wanted: dict[str, Token], lasts: bool, text: str) -> tuple[ParsedQuery, Derived]:
        """The join as a query of its own, which keeps the variables that are wanted later, and what it makes."""
        ends = {self._variable(node): (token, node) for token, node in self._lasts} if lasts else {}
        places = {name: (token, self._nodes[name]) for name, token in wanted.items() if name in self._nodes} | ends
        kept: list[Kept] = []
        for name, (token, node) in places.items():
            self._shown(node, token)
            kept.append(Kept(f"v{len(kept) + 1}", name, name in self._texts or node.step.is_attribute))
        parts = (ElementOutput(one.tag, (), (VariableOutput(one.variable, one.is_text),)) for one in kept)
        shape = self._shape((ElementOutput(ROOT, (), tuple(parts)),))
        text = f"{text} -- keeps {', '.join(one.variable for one in kept)}"
        name = derived_name(text)
        made = ParsedQuery(shape, tuple(self._constants), tuple(self._places), Clauses(publish=name), text=text)
        found = tuple((name, token) for name, (token, _) in ends.items())
        return made, Derived(name, tuple(kept), found, (*self._taken, *self._nodes))

    def _shape(self, output: tuple[Output, ...]) -> Shape:
        blocks = tuple(Block(Source(source), root.frozen()) for source, root in self._blocks)
        return Shape(blocks, tuple(self._conditions), output, tuple(self._slots), "xscl", self._window)

    def _bind_block(self, block: BlockSyntax) -> None:
        root, last = self._block(block)
        self._blocks.append((plain_name(block.source), root))
        self._lasts.append((block.last, last))

    def _derived(self, left: Derived) -> None:
        """The left side of a later join: the variables that the document of the join before it has kept."""
        root, nodes = Node(holder(ROOT)), dict[str, Node]()
        for one in left.kept:
            node = Node(holder(one.tag))
            root.children.append(node)
            if not one.is_text:
                node.children.append(Node(holder("*")))
                node = node.children[0]
            nodes[one.variable] = node
            self._texts |= {one.variable} if one.is_text else set()
            node.variables.append(one.variable)
            if one.variable[0] != "_":
                self._nodes[one.variable], self._sides[one.variable] = node, 0
        self._lasts += [(token, nodes[name]) for name, token in left.lasts]
        self._taken = left.names
        self._blocks.append((left.source, root))

    def _declare(self, token: Token, node: Node) -> None:
        name = variable_name(token)
        if name in self._taken and name not in self._nodes:
            reason = f"the variable {name} is bound in two blocks: write {name}' in one of them"
            raise Rejected(reason, at(token))
        super()._declare(token, node)

    def _default(self) -> tuple[Output, ...]:
        """A new root with the results of the blocks."""
        for token, node in self._lasts:
            self._shown(node, token)
        parts = [self._variable_output(self._variable(node)) for _, node in self._lasts]
        return (ElementOutput(ROOT, (), tuple(parts)),)

    def _variable_output(self, name: str) -> VariableOutput:
        return VariableOutput(name, name in self._texts)

    def _join(self, join: JoinSyntax) -> Window:
        between = [self._compare(condition) for condition in join.conditions]
        if not any(between):
            reason = "a join needs a comparison between its two blocks, such as x = y with x of one and y of the other"
            raise Rejected(reason, at(join.word))
        slot = self._place("number", join.window.seconds, join.window.place)
        return Window(slot, None, strict=True) if join.is_sequence else Window(slot, slot)

    def _compare(self, condition: ComparisonSyntax) -> bool:
        """Adds a condition of a join; whether it is between the two blocks."""
        left, right = condition.left, condition.right
        if condition.op is None or right is None:
            self._there(left)
            return False
        op = operator_of(condition.op)
        if isinstance(left, Token):
            if isinstance(right, Token):
                raise Rejected("a comparison of two constants: one side must be a variable", at(left))
            slot = self._slot(left)
            self._conditions.append(Comparison(self._operand(right)[0], MIRRORED[op], slot))
            return False
        compared, side = self._operand(left)
        if isinstance(right, Token):
            self._conditions.append(Comparison(compared, op, self._slot(right)))
            return False
        other, other_side = self._operand(right)
        self._conditions.append(Comparison(compared, op, other))
        if side != other_side:
            for name, operand in ((compared, left), (other, right)):
                self._check_named(name, operand)
        return side != other_side

    def _check_named(self, name: str, operand: RelativeSyntax) -> None:
        """A result is over the nodes that value joins compare, and an attribute is known by its name."""
        node = next(n for _, root in self._blocks for n in root.walk() if name in n.variables)
        if node.step.is_attribute and node.step.name == "*":
            shown = operand.steps[-1].name if operand.steps else operand.start
            raise Rejected("an attribute that is joined needs a name: '@*' may stand for several", at(shown))

    def _there(self, operand: RelativeSyntax | Token) -> None:
        """An operand that is not compared must only exist; `true` always does."""
        if isinstance(operand, Token):
            raise Rejected("expected a comparison of variables, such as x = y", at(operand))
        bare = not operand.steps and not operand.conditions
        if not (bare and variable_name(operand.start).lower() == "true" and "true" not in self._nodes):
            self._operand(operand)

    def _operand(self, operand: RelativeSyntax) -> tuple[str, int]:
        """The variable at the end of an operand and the side that it is on."""
        name = self._bound(operand.start)
        if name in self._texts and operand.steps:
            raise Rejected("an attribute has nothing below it", at(operand.steps[0].name))
        node, self._side = self._nodes[name], self._sides[name]
        for condition in operand.conditions:
            self._condition(node, condition)
        if not operand.steps:
            return name, self._side
        return self._variable(self._path(node, operand.steps)), self._side

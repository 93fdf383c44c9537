"""Binding of XSCL's joins: two blocks, the comparisons between them in value-join normal form, the window.

In: a query of two or more blocks. Out: a Shape with two blocks and a window. Steps on a variable inside a
join's predicate grow the pattern below the variable's node, each path by itself, so that what is left compares
variables with each other (MMQJP section 2). A comparison within one block, or with a constant, is a condition
of that block.
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
from fishweir.languages.xscl_binding import Binder, Node, at, operator_of, plain_name, variable_name
from fishweir.languages.xscl_syntax import ComparisonSyntax, JoinSyntax, QuerySyntax, RelativeSyntax

ROOT = "result"
"""The new root of the default output."""


def bind_joins(query: QuerySyntax, text: str) -> ParsedQuery:
    """The shape and constants of a query with joins; Rejected for what does not bind."""
    if len(query.joins) > 1:
        raise Rejected("several joins in one query are not supported yet", at(query.joins[1].word))
    return JoinBinder().bind(query)


class JoinBinder(Binder):
    """Binds the blocks first, then the predicate, which may name the variables of both."""

    where = "the blocks do"

    def bind(self, query: QuerySyntax) -> ParsedQuery:
        (join,) = query.joins
        roots, lasts = [], []
        for self._side, block in enumerate(query.blocks):
            root, last = self._block(block)
            roots.append(root)
            lasts.append(last)
        window = self._join(join)
        if query.select is None:
            output = self._default(query, lasts)
        else:
            output = tuple(self._output(item) for item in query.select)
        blocks = tuple(
            Block(Source(plain_name(block.source)), root.frozen())
            for block, root in zip(query.blocks, roots, strict=True)
        )
        shape = Shape(blocks, tuple(self._conditions), output, tuple(self._slots), "xscl", window)
        return self._parsed(shape, query)

    def _default(self, query: QuerySyntax, lasts: list[Node]) -> tuple[Output, ...]:
        for block, last in zip(query.blocks, lasts, strict=True):
            self._shown(last, block.last)
        return (ElementOutput(ROOT, (), tuple(VariableOutput(self._variable(last)) for last in lasts)),)

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
        return side != other_side

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
        node, self._side = self._nodes[name], self._sides[name]
        for condition in operand.conditions:
            self._condition(node, condition)
        if not operand.steps:
            return name, self._side
        return self._variable(self._path(node, operand.steps)), self._side

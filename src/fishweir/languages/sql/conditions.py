"""Converts SQL conditions to formulas that are true exactly when SQL's three-valued logic yields true.

A formula's Not makes an unknown atom true; SQL's does not. Negation therefore moves inward here, by De Morgan's laws,
which hold for three values, and ends in the opposite comparison: `not (x > 5)` is `x <= 5`, false on NULL as both atoms
are. If there is no opposite (conditions on texts), the value must exist.
"""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from fishweir.algebra.formula import FALSE, TRUE, And, Atom, Formula, Not, Or, RelativePath
from fishweir.algebra.nodes import MIRRORED, OLD, RATIO, Operator, Slot, Step
from fishweir.algebra.operators import Condition, condition_written
from fishweir.languages.roses.literals import SQL_KINDS, Constants, Kind
from fishweir.languages.sql.columns import AGGREGATES, Columns, is_column
from fishweir.languages.statement_text import Rejected

_OPERATORS: dict[type[exp.Expr], Operator] = {
    exp.EQ: "=", exp.NEQ: "!=", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
}  # fmt: skip
_OPPOSITE: dict[Operator, Operator] = {"=": "!=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_TIMES = {exp.DType.DATE, exp.DType.TIMESTAMP, exp.DType.DATETIME, exp.DType.TIMESTAMPTZ}
_BOOLEANS = (TokenType.TRUE, TokenType.FALSE)
_UNKNOWN: tuple[tuple[tuple[type, ...], str], ...] = (
    ((exp.AggFunc,), AGGREGATES),
    ((exp.Connector, exp.Not), "found a condition where a column or a constant is expected"),
    ((exp.Escape,), "'escape' is not supported by this version"),
    ((exp.NullSafeEQ, exp.NullSafeNEQ), "this comparison is not supported: expected = != < <= > or >="),
    ((exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Neg), "arithmetic is not supported by this version"),
    ((exp.Func,), "functions are not supported by this version"),
)
_SUPPORTED = {"this", "expression", "expressions", "low", "high", "negate"}
"""Supported arguments of sqlglot's nodes; nodes with any other argument (`between symmetric`) are rejected."""

_CONDITION = "a condition, such as x > 5"
Side = RelativePath | Slot | None
"""A column, a constant or NULL."""


class Conditions:
    """Binds the conditions of one query; constants get their slots in the order of the text."""

    def __init__(self, scope: Columns, constants: Constants) -> None:
        self._scope, self._constants = scope, constants
        self._booleans = iter([token for token in scope.query.tokens if token.token_type in _BOOLEANS])

    def bind(self, node: exp.Expr, positive: bool = True) -> Formula:
        """The formula that is true if the condition is true or, if negated, false."""
        if {key for key, value in node.args.items() if value} - _SUPPORTED:
            raise self._unknown(node, _CONDITION)
        positive = positive != bool(node.args.get("negate"))
        match node:
            case exp.Paren():
                return self.bind(node.this, positive)
            case exp.Not():
                return self.bind(node.this, not positive)
            case exp.And() | exp.Or():
                parts = tuple(self.bind(part, positive) for part in node.flatten(unnest=False))
                return And(parts) if isinstance(node, exp.And) == positive else Or(parts)
            case exp.Boolean():
                next(self._booleans)
                return TRUE if bool(node.this) == positive else FALSE
            case exp.Null():
                return FALSE
            case exp.Between():
                return self._between(node, positive)
            case exp.In():
                return self._in(node, positive)
            case exp.Is():
                return self._is(node, positive)
            case exp.Like() | exp.ILike() | exp.Glob():
                return self._on_texts(node, positive)
        if type(node) in _OPERATORS:
            return self._chain(node, positive)
        raise self._unknown(node, _CONDITION)

    def _chain(self, node: exp.Expr, positive: bool) -> Formula:
        """`11 < y < 15`: adjacent operands are compared, and all comparisons must hold."""
        operands, operators = _unchained(node)
        if len(operands) == 2 and (scaled := self._scaled(operands, operators[0])) is not None:
            return self._compare(*scaled, positive, node)
        sides = [self._side(operand) for operand in operands]
        pairs = zip(sides, operators, sides[1:], operands, strict=False)
        return _joined([self._compare(a, op, b, positive, at) for a, op, b, at in pairs], positive)

    def _scaled(self, operands: list[exp.Expr], op: Operator) -> tuple[Side, Operator, Side] | None:
        """`price < 0.95 * old.price` compares the ratio of the two, which change documents contain."""
        for one, other, written in ((operands[0], operands[1], op), (operands[1], operands[0], MIRRORED[op])):
            product = other.unnest()
            if not isinstance(product, exp.Mul) or not is_column(one):
                continue
            factors = [product.this.unnest(), product.expression.unnest()]
            columns, numbers = ([f for f in factors if kind(f)] for kind in (is_column, _is_number))
            if len(columns) != 1 or len(numbers) != 1:
                continue
            path, old = self._scope.path(one), self._scope.path(columns[0])
            at = next((i for i, step in enumerate(old) if step == Step(OLD)), len(old))
            if (*old[:at], *old[at + 1 :]) != path:
                raise Rejected(
                    "a product can only be compared with the row's own value: x < 0.95 * old.x", self._place(other)
                )
            return (*old[:at], Step(RATIO), *old[at + 1 :]), written, self._number(numbers[0])
        return None

    def _between(self, node: exp.Between, positive: bool) -> Formula:
        value, low, high = (self._side(node.args[key]) for key in ("this", "low", "high"))
        ends = [self._compare(value, op, end, positive, node) for op, end in ((">=", low), ("<=", high))]  # type: ignore[arg-type]
        return _joined(ends, positive)

    def _in(self, node: exp.In, positive: bool) -> Formula:
        """One comparison per element; a NULL in the list makes `not in` unknown wherever it is not false."""
        if not node.expressions:
            raise Rejected("expected a list of constants after 'in', such as (1, 2)", self._place(node))
        value = self._side(node.this)
        parts = [self._compare(value, "=", self._side(element), positive, node) for element in node.expressions]
        return _joined(parts, not positive)

    def _is(self, node: exp.Is, positive: bool) -> Formula:
        path = self._column(node.this, "is")
        if isinstance(node.expression, exp.Null):
            exists = Atom(path, "exists")
            return Not(exists) if positive else exists
        if isinstance(node.expression, exp.Boolean):
            holds = Atom(path, "=", self._boolean())
            return holds if positive else Not(holds)
        raise Rejected("expected null, true or false after 'is'", self._place(node.expression))

    def _on_texts(self, node: exp.Expr, positive: bool) -> Formula:
        """`like`, `ilike` and the other registered conditions: the text after one identifies it."""
        constant = node.expression
        infix = self._scope.query.infixes.get(self._place(constant)) if isinstance(node, exp.Glob) else None
        word = type(node).__name__.lower() if infix is None else infix.word.text
        path = self._column(node.this, word)
        if not isinstance(constant, exp.Literal) or not constant.is_string:
            raise Rejected(f"expected quoted text after '{word}'", self._place(constant))
        condition = condition_written(word) if infix is None else infix.condition
        if condition is None:
            raise self._unknown(node, _CONDITION)
        share = None if infix is None or infix.share is None else self._share(infix.share, condition)
        slot = self._literal(constant, SQL_KINDS[condition.constant])
        atom = Atom(path, condition.name, slot, threshold=share)
        return atom if positive else And((Atom(path, "exists"), Not(atom)))

    def _share(self, token: Token, condition: Condition) -> Slot:
        if condition.share is None:
            raise Rejected(f"'{condition.written}' does not take a share of words: expected quoted text", token.start)
        return self._constants.slot(self._scope.query.at(token.start, token.end), token.start, "share")

    def _compare(self, left: Side, op: Operator, right: Side, positive: bool, at: exp.Expr) -> Formula:
        if left is None or right is None:
            return FALSE
        op = op if positive else _OPPOSITE[op]
        if isinstance(left, Slot):
            left, op, right = right, MIRRORED[op], left
        if isinstance(left, Slot):
            raise Rejected("a comparison of two constants: one side must be a column", self._place(at))
        if not isinstance(right, Slot):
            return Atom(left, op, right)
        kind = self._constants.places[right.index].kind
        if kind == "keyword" and op not in ("=", "!="):
            raise Rejected("true and false have no order: expected = or !=", self._place(at))
        return Atom(left, op, right, "time" if kind == "date" else "value")

    def _side(self, node: exp.Expr) -> Side:
        match node:
            case exp.Null():
                return None
            case exp.Boolean():
                return self._boolean()
            case exp.Literal():
                return self._literal(node)
            case exp.Neg(this=exp.Literal(is_string=False)):
                return self._number(node.this)
            case exp.Cast() if isinstance(node.this, exp.Literal) and node.this.is_string and node.to.this in _TIMES:
                return self._literal(node.this, "date")
        if isinstance(node, exp.Paren):
            return self._side(node.this)
        if is_column(node):
            return self._scope.path(node)
        raise self._unknown(node, "a column or a constant")

    def _literal(self, node: exp.Expr, kind: Kind = "string") -> Slot:
        if not node.is_string:
            return self._number(node)
        start, end = node.meta["start"], node.meta["end"]
        return self._constants.slot(self._scope.query.at(start, end), start, kind)

    def _number(self, node: exp.Expr) -> Slot:
        """A number with its preceding sign."""
        query, start, sign = self._scope.query, node.meta["start"], ""
        number = query.at(start, node.meta["end"])
        if isinstance(node.parent, exp.Neg):
            start, sign = len(query.masked[:start].rstrip()) - 1, "-"
        return self._constants.slot(sign + number, start, "number")

    def _boolean(self) -> Slot:
        """sqlglot does not record the positions of `true` and `false`, but they are visited in text order."""
        token = next(self._booleans)
        return self._constants.slot(token.text.lower(), token.start, "keyword")

    def _column(self, node: exp.Expr, word: str) -> RelativePath:
        if not is_column(node):
            raise Rejected(f"expected a column before '{word}'", self._place(node))
        return self._scope.path(node)

    def _place(self, node: exp.Expr) -> int:
        return self._scope.place(node)

    def _unknown(self, node: exp.Expr, expected: str) -> Rejected:
        reason = next((reason for kinds, reason in _UNKNOWN if isinstance(node, kinds)), f"expected {expected}")
        return Rejected(reason, self._place(node))


def _is_number(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and not node.is_string


def _unchained(node: exp.Expr) -> tuple[list[exp.Expr], list[Operator]]:
    """Operands and operators of a chain in the order of the text."""
    op = _OPERATORS.get(type(node))
    if op is None:
        return [node], []
    left, right = _unchained(node.this), _unchained(node.expression)
    return left[0] + right[0], [*left[1], op, *right[1]]


def _joined(parts: list[Formula], conjunction: bool) -> Formula:
    if len(parts) == 1:
        return parts[0]
    return And(tuple(parts)) if conjunction else Or(tuple(parts))

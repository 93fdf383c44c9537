"""Syntax nodes of XSCL: created by the transformer and read by the binder; they keep their tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeAlias

from lark import Token

from fishweir.languages.connectives import AndSyntax, Condition, NotSyntax, OrSyntax
from fishweir.languages.lexical import quote
from fishweir.languages.parsed import ConstantPlace
from fishweir.languages.schedule import Clauses
from fishweir.records import dataclass


@dataclass(frozen=True, slots=True)
class ComparisonSyntax:
    """A relative path that must exist, or two operands compared; tokens are constants."""

    left: RelativeSyntax | Token
    op: Token | None = None
    right: RelativeSyntax | Token | None = None

    @property
    def paths(self) -> tuple[RelativeSyntax, ...]:
        return tuple(side for side in (self.left, self.right) if isinstance(side, RelativeSyntax))


@dataclass(frozen=True, slots=True)
class OptionalSyntax(OrSyntax[ComparisonSyntax]):
    """`[b->x]?`: the existing node with its variables, or its absence."""


@dataclass(frozen=True, slots=True)
class PositionSyntax:
    """`[2]`, `[last()]` or `[position() = 2]`."""

    at: Token
    number: int


@dataclass(frozen=True, slots=True)
class CallSyntax:
    """A function as written, before it becomes a condition."""

    name: Token
    arguments: tuple[RelativeSyntax | Token | CallSyntax | UnionSyntax, ...]


@dataclass(frozen=True, slots=True)
class UnionSyntax:
    """`a | b` as an operand, before it becomes an `or`."""

    parts: tuple[RelativeSyntax, ...]


ConditionSyntax: TypeAlias = "Condition[ComparisonSyntax]"


@dataclass(frozen=True, slots=True)
class StepSyntax:
    """A step with its variables and its predicates, all of which must hold. `deep` is set for a preceding `//`. After
    `expanding`, all steps go down: the axis is child or attribute, and there are no node tests left.
    """

    name: Token
    deep: bool = False
    axis: str = "child"
    kind: str = ""
    """A node test instead of a name: node or text."""
    variables: tuple[Token, ...] = ()
    conditions: tuple[ConditionSyntax, ...] = ()
    position: int = 0
    """The position among the siblings that pass the name test, from 1; LAST is the last one, 0 any."""

    @property
    def attribute(self) -> bool:
        return self.axis == "attribute"


@dataclass(frozen=True, slots=True)
class RelativeSyntax:
    """A path from the node of its predicate; without steps, the node itself. `start` is its first token; in the
    predicate of a join, the variable where it begins. The conditions are those of the node at which it begins.
    """

    start: Token
    steps: tuple[StepSyntax, ...]
    conditions: tuple[ConditionSyntax, ...] = ()
    test: Token | None = None
    """Inside not(...), a name that the node would need to have."""

    @property
    def is_variable(self) -> bool:
        return self.start.type in ("VAR", "VARIABLE")


@dataclass(frozen=True, slots=True)
class BlockSyntax:
    """A block; `variables` are those of the whole document, `others` the further blocks of a union."""

    source: Token
    steps: tuple[StepSyntax, ...]
    variables: tuple[Token, ...] = ()
    others: tuple[BlockSyntax, ...] = ()

    @property
    def last(self) -> Token:
        return self.steps[-1].name if self.steps else self.source


@dataclass(frozen=True, slots=True)
class WindowSyntax:
    """The T of a join in seconds, with its position in the text."""

    seconds: float
    place: ConstantPlace


@dataclass(frozen=True, slots=True)
class JoinSyntax:
    """`JOIN{conditions, window} block`, FOLLOWED BY or NOT FOLLOWED BY; `end` is the end of its right side's text."""

    word: Token
    conditions: tuple[ConditionSyntax, ...]
    window: WindowSyntax
    block: BlockSyntax | ChainSyntax
    end: int = 0

    @property
    def is_sequence(self) -> bool:
        return self.word[0] not in "jJ"

    @property
    def is_absence(self) -> bool:
        return self.word[0] in "nN"


@dataclass(frozen=True, slots=True)
class ChainSyntax:
    """A block and the joins after it, one after another, in parentheses."""

    block: BlockSyntax
    joins: tuple[JoinSyntax, ...]


@dataclass(frozen=True, slots=True)
class ElementSyntax:
    """A literal tag of the output; tokens are variables and texts."""

    tag: Token
    attributes: tuple[tuple[Token, Token], ...]
    content: tuple[ElementSyntax | Token, ...] = ()


@dataclass(frozen=True, slots=True)
class Namespaces:
    """The declarations of `with namespace p = 'uri'`."""

    prefixes: Mapping[str, str]

    def __str__(self) -> str:
        declared = ", ".join(f"{prefix} = {quote(uri)}" for prefix, uri in self.prefixes.items())
        return f"with namespace {declared} " if declared else ""


@dataclass(frozen=True, slots=True)
class QuerySyntax:
    """A query; `select` is None for `*`."""

    select: tuple[ElementSyntax | Token, ...] | None
    block: BlockSyntax
    joins: tuple[JoinSyntax, ...]
    clauses: Clauses
    namespaces: Namespaces = Namespaces({})
    optional: frozenset[str] = frozenset()
    """The variables that are bound in optional predicates."""


def comparisons(condition: ConditionSyntax) -> Iterator[ComparisonSyntax]:
    """The comparisons in a condition, negated or not."""
    match condition:
        case NotSyntax(_, part):
            yield from comparisons(part)
        case AndSyntax(parts) | OrSyntax(parts):
            for part in parts:
                yield from comparisons(part)
        case _:
            yield condition


def is_self_step(step: StepSyntax) -> bool:
    """Whether a step leads to the node itself without restricting it, as in `./a`."""
    return step.axis == "self" and step.kind == "node" and not (step.deep or step.conditions or step.variables)


def last_token(node: Any) -> int:
    """The end of the last token of some syntax."""
    if isinstance(node, Token):
        return node.end_pos or 0
    if is_dataclass(node) and not isinstance(node, type):
        node = tuple(getattr(node, one.name) for one in fields(node))
    return max(map(last_token, node), default=0) if isinstance(node, tuple) else 0


def changed(node: Any, change: Callable[[Any], Any]) -> Any:
    """The same syntax with each of its nodes and tokens changed, the inner ones first."""
    if isinstance(node, tuple) and not isinstance(node, Token):
        return tuple(changed(part, change) for part in node)
    if is_dataclass(node) and not isinstance(node, type):
        node = replace(node, **{f.name: changed(getattr(node, f.name), change) for f in fields(node)})
    return change(node)


def nodes_of(node: Any) -> Iterator[Any]:
    """A syntax node and all nodes below it."""
    if isinstance(node, tuple):
        for part in node:
            yield from nodes_of(part)
    elif is_dataclass(node):
        yield node
        for f in fields(node):
            yield from nodes_of(getattr(node, f.name))


def optional_variables(node: Any) -> frozenset[str]:
    """The variables that are bound in optional predicates."""
    optional = (one.parts[0] for one in nodes_of(node) if isinstance(one, OptionalSyntax))
    steps = (step for part in optional for step in nodes_of(part) if isinstance(step, StepSyntax))
    return frozenset(str(token) for step in steps for token in step.variables)

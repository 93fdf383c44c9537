"""Syntax nodes of XSCL: what the transformer makes and the binder reads; they keep their tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeAlias

from lark import Token

from fishweir.languages.connectives import AndSyntax, Condition, NotSyntax, OrSyntax
from fishweir.languages.lexical import quote
from fishweir.languages.parsed import ConstantPlace
from fishweir.languages.schedule import Clauses


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
    """`[b->x]?`: what is there, with its variables, or that it is not there."""


@dataclass(frozen=True, slots=True)
class PositionSyntax:
    """`[2]`, `[last()]` or `[position() = 2]`."""

    at: Token
    number: int


@dataclass(frozen=True, slots=True)
class CallSyntax:
    """A function as it is written, before it becomes a condition."""

    name: Token
    arguments: tuple[RelativeSyntax | Token | CallSyntax | UnionSyntax, ...]


@dataclass(frozen=True, slots=True)
class UnionSyntax:
    """`a | b` as an operand, before it becomes an `or`."""

    parts: tuple[RelativeSyntax, ...]


ConditionSyntax: TypeAlias = "Condition[ComparisonSyntax]"


@dataclass(frozen=True, slots=True)
class StepSyntax:
    """A step with its variables and its predicates; all must hold. `deep` is that of `//` before it. Behind
    `expanding`, all steps go down: the axis is child or attribute, and there are no node tests left."""

    name: Token
    deep: bool = False
    axis: str = "child"
    kind: str = ""
    """A node test instead of a name: node or text."""
    variables: tuple[Token, ...] = ()
    conditions: tuple[ConditionSyntax, ...] = ()
    position: int = 0
    """Which of the siblings that pass the name test it is, from 1; LAST is the last one, 0 any."""

    @property
    def attribute(self) -> bool:
        return self.axis == "attribute"


@dataclass(frozen=True, slots=True)
class RelativeSyntax:
    """A path from the node of its predicate on; without steps the node itself. `start` is its first token, in the
    predicate of a join the variable that it goes down from. The conditions are those of the node that it begins at."""

    start: Token
    steps: tuple[StepSyntax, ...]
    conditions: tuple[ConditionSyntax, ...] = ()
    test: Token | None = None
    """Inside not(...), a name that the node would have to have."""

    @property
    def is_variable(self) -> bool:
        return self.start.type in ("VAR", "VARIABLE")


@dataclass(frozen=True, slots=True)
class BlockSyntax:
    """A block; `variables` are those of the whole document, `others` of a union the blocks beside the first."""

    source: Token
    steps: tuple[StepSyntax, ...]
    variables: tuple[Token, ...] = ()
    others: tuple[BlockSyntax, ...] = ()

    @property
    def last(self) -> Token:
        return self.steps[-1].name if self.steps else self.source


@dataclass(frozen=True, slots=True)
class WindowSyntax:
    """The T of a join in seconds, with its place in the text."""

    seconds: float
    place: ConstantPlace


@dataclass(frozen=True, slots=True)
class JoinSyntax:
    """`JOIN{conditions, window} block`, FOLLOWED BY or NOT FOLLOWED BY; `end` is where the text of its right side
    ends."""

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
    """A block and the joins behind it, one after the other, in parentheses."""

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
    """What `with namespace p = 'uri'` declares."""

    prefixes: Mapping[str, str]

    def __str__(self) -> str:
        declared = ", ".join(f"{prefix} = {quote(uri)}" for prefix, uri in self.prefixes.items())
        return f"with namespace {declared} " if declared else ""


@dataclass(frozen=True, slots=True)
class QuerySyntax:
    """`select` None is `*`."""

    select: tuple[ElementSyntax | Token, ...] | None
    block: BlockSyntax
    joins: tuple[JoinSyntax, ...]
    clauses: Clauses
    namespaces: Namespaces = Namespaces({})
    optional: frozenset[str] = frozenset()
    """The variables that are bound in optional predicates."""


def comparisons(condition: ConditionSyntax) -> Iterator[ComparisonSyntax]:
    """What a condition is made of, whether it must hold or not."""
    match condition:
        case NotSyntax(_, part):
            yield from comparisons(part)
        case AndSyntax(parts) | OrSyntax(parts):
            for part in parts:
                yield from comparisons(part)
        case _:
            yield condition


def stays(step: StepSyntax) -> bool:
    """Whether a step leads to the node itself and says nothing of it, as in `./a`."""
    return step.axis == "self" and step.kind == "node" and not (step.deep or step.conditions or step.variables)


def last_token(node: Any) -> int:
    """Where the last token of some syntax ends."""
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
    """All syntax nodes below a node, and itself."""
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

"""Upward axes as conditions on ancestors: `//b/..` is `//*[b]`, and `//b[ancestor::c]` is `//c//b`.

A route is a path that is rewritten step by step and only goes down. Going up from one of its nodes leads to the
previous node or, below a `//`, to a node in between, which then becomes a separate step. So an upward step has one or
more targets, and each is an alternative.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from lark import Token

from fishweir.algebra.nodes import LAST
from fishweir.languages.statement_text import Rejected
from fishweir.languages.xscl.syntax import ComparisonSyntax, ConditionSyntax, RelativeSyntax, StepSyntax, is_self_step
from fishweir.records import dataclass

CONTEXT = -1
"""The position of the node at which a relative path begins."""
UP = ("self", "parent", "ancestor", "ancestor-or-self")


@dataclass(frozen=True, slots=True)
class Route:
    """The downward steps so far, from the document or from the node of a predicate; `context` contains conditions on
    that start.
    """

    from_document: bool
    steps: tuple[StepSyntax, ...] = ()
    context: tuple[ConditionSyntax, ...] = ()

    @property
    def is_document(self) -> bool:
        """Whether the route has not left the document node."""
        return self.from_document and not self.steps

    def extended(self, step: StepSyntax) -> Route:
        return replace(self, steps=(*self.steps, step))

    def conditioned(self, index: int, condition: ConditionSyntax) -> Route:
        """The route with a condition on the node at a position."""
        if index == CONTEXT:
            return replace(self, context=(*self.context, condition))
        step = self.steps[index]
        return self.changed(index, replace(step, conditions=(*step.conditions, condition)))

    def bound(self, index: int, variables: tuple[Token, ...]) -> Route:
        if not variables:
            return self
        return self.changed(index, replace(self.steps[index], variables=(*self.steps[index].variables, *variables)))

    def changed(self, index: int, step: StepSyntax) -> Route:
        return replace(self, steps=(*self.steps[:index], step, *self.steps[index + 1 :]))

    def folded(self, index: int) -> Route | None:
        """The route to one of its nodes, with the steps after it as a condition there; None if that is impossible. For
        the document, the condition is on its element, as soon as the route goes down again.
        """
        kept, behind = self.steps[: index + 1], self.steps[index + 1 :]
        route = replace(self, steps=kept)
        if not behind:
            return route
        if index == CONTEXT and self.from_document:
            if behind[0].attribute or behind[0].position not in (0, 1, LAST):
                return None
            behind = (replace(behind[0], axis="self", position=0), *behind[1:])
        return route.conditioned(index, ComparisonSyntax(RelativeSyntax(behind[0].name, behind)))


def down_again(route: Route, step: StepSyntax) -> Iterator[Route]:
    """The routes from the document to a step, with the document element first."""
    without = replace(route, context=())
    yield without.extended(replace(step, deep=False))
    if step.deep:
        yield without.extended(StepSyntax(step.name.update("STAR", "*"))).extended(step)


def on_document_element(comparison: ComparisonSyntax) -> ComparisonSyntax | None:
    """Converts a comparison whose path begins at the document to one whose path begins at its element; None if there is
    no such node.
    """
    (path,) = comparison.paths
    first = path.steps[0] if path.steps else None
    if first is None or first.axis not in ("child", "descendant") or first.position not in (0, 1, LAST):
        return None
    deep = first.deep or first.axis == "descendant"
    moved = replace(first, axis="descendant-or-self" if deep else "self", deep=False, position=0)
    return with_path(comparison, path, replace(path, steps=(moved, *path.steps[1:])))


def targets(route: Route, index: int, step: StepSyntax) -> Iterator[tuple[Route, int]]:
    """The targets of an upward step from a node of a route: the route, possibly with an additional step, and the
    position in it.
    """
    if index == CONTEXT:
        if not route.from_document:
            raise Rejected(f"{step.name} leads above the node that the path begins at", step.name.start_pos or 0)
        return
    between = StepSyntax(step.name.update("STAR", "*"), deep=True)
    own = route.steps[index]
    if step.axis == "parent":
        near = route.changed(index, replace(own, deep=False))
        yield near, index - 1
        if own.deep:
            yield replace(near, steps=(*near.steps[:index], between, *near.steps[index:])), index
        return
    for place in range(index, -1, -1):
        if route.steps[place].deep:
            yield replace(route, steps=(*route.steps[:place], between, *route.steps[place:])), place
        yield route, place - 1


def narrowed(route: Route, index: int, step: StepSyntax) -> Route | None:
    """The route with the name test of a step on one of its nodes; None if no name passes both tests."""
    if step.kind == "node":
        return route
    if index == CONTEXT:
        if route.from_document:
            return None
        return route.conditioned(CONTEXT, ComparisonSyntax(RelativeSyntax(step.name, (_self(step),))))
    own = route.steps[index]
    if own.attribute:
        return None
    name = _both(own.name, step.name)
    if name is None:
        return None
    if own.position and name != own.name:
        raise Rejected("a position counts the nodes of its own step: put the name test there", step.name.start_pos or 0)
    return route.changed(index, replace(own, name=name))


def _self(step: StepSyntax) -> StepSyntax:
    return StepSyntax(step.name, axis="self", kind=step.kind)


def _both(one: Token, two: Token) -> Token | None:
    """The intersection of two tests; a name without a namespace matches any."""
    (space, name), (other_space, other) = _parted(one), _parted(two)
    if name != "*" != other and name != other:
        return None
    if space is not None and other_space is not None and space != other_space:
        return None
    local, namespace = other if name == "*" else name, space if space is not None else other_space
    if namespace is not None:
        return one.update("CLARK", f"{{{namespace}}}{local}")
    return one.update("STAR" if local == "*" else "TAG", local)


def _parted(name: Token) -> tuple[str | None, str]:
    space, brace, local = name.rpartition("}")
    return (space[1:], local) if brace else (None, str(name))


def is_led(comparison: ComparisonSyntax) -> bool:
    """Whether a comparison begins with a step that restricts the node itself, or one above it."""
    led = [path for path in comparison.paths if not path.is_variable and _leads(path.steps)]
    if led and len(comparison.paths) > 1:
        step = next(step for step in led[0].steps if step.axis in UP)
        raise Rejected(
            "a comparison of two paths begins at one node: bind a variable instead", step.name.start_pos or 0
        )
    return bool(led)


def _leads(steps: tuple[StepSyntax, ...]) -> bool:
    """Whether steps restrict the node itself or one above it. Steps to the node itself, as in `./a`, are skipped."""
    first = next((step for step in steps if not is_self_step(step)), None)
    return first is not None and first.axis in UP and not first.deep


def without_lead(comparison: ComparisonSyntax) -> tuple[StepSyntax, ComparisonSyntax | None]:
    """The first step of a comparison, and the comparison after it; None if it is an existence test that ends there."""
    (path,) = comparison.paths
    steps = path.steps
    while is_self_step(steps[0]):
        steps = steps[1:]
    lead, rest = steps[0], replace(path, steps=steps[1:])
    if comparison.op is None and not rest.steps:
        return lead, None
    return lead, with_path(comparison, path, rest)


def from_there(comparison: ComparisonSyntax, lead: StepSyntax) -> ConditionSyntax:
    """A condition on an ancestor, applied to the node where its path begins: that node, or one above it."""
    (path,) = comparison.paths
    place = path.steps.index(lead)
    moved = replace(path, steps=(replace(lead, axis="ancestor-or-self"), *path.steps[place + 1 :]))
    return with_path(comparison, path, moved)


def with_path(comparison: ComparisonSyntax, path: RelativeSyntax, other: RelativeSyntax) -> ComparisonSyntax:
    return replace(comparison, left=other) if comparison.left is path else replace(comparison, right=other)

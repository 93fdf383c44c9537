"""Expands `or` and rewrites axes: converts an XSCL query to plain tree patterns, any of which may match.

In: syntax nodes with conditions under and, or, not, and steps on any axis. Out: the same nodes, one for each
alternative, with downward steps and conjunctions of comparisons and negated comparisons. A path exists if it does for
one of the alternatives of its own predicates, so negated conditions are expanded too: none of their alternatives may
hold. Upward steps are moved to their targets (axes.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from lark import Token

from fishweir.languages.connectives import AndSyntax, NotSyntax, all_of, conjunctions, limited
from fishweir.languages.statement_text import Rejected
from fishweir.languages.xscl.axes import (
    CONTEXT,
    Route,
    down_again,
    from_there,
    is_led,
    narrowed,
    on_document_element,
    targets,
    with_path,
    without_lead,
)
from fishweir.languages.xscl.syntax import (
    BlockSyntax,
    ComparisonSyntax,
    ConditionSyntax,
    JoinSyntax,
    QuerySyntax,
    RelativeSyntax,
    StepSyntax,
    is_self_step,
)

Literal = ConditionSyntax
"""A comparison or a negated one."""
Conjunction = tuple[Literal, ...]


def expand_query(query: QuerySyntax) -> list[QuerySyntax]:
    """The alternatives of a query with one block."""
    return [replace(query, block=block) for block in expand_block(query.block)]


def expand_block(block: BlockSyntax) -> list[BlockSyntax]:
    """The alternatives of a block; for a union, those of all its parts."""
    if not block.others and _are_plain(block.steps):
        return [block]
    found = []
    for part in (replace(block, others=()), *block.others):
        _check_end(part)
        routes = [route for route in _routes(part.steps, from_document=True) if route.steps or not part.steps]
        found += [replace(part, steps=route.steps) for route in routes]
    if not found:
        raise Rejected("the path leads above the document element: it selects nothing", _at(block.last))
    return limited(found)


def expand_predicate(join: JoinSyntax) -> list[Conjunction]:
    """The alternatives of a join's predicate."""
    return _all(join.conditions)


def _check_end(block: BlockSyntax) -> None:
    if block.steps and block.steps[-1].kind == "text":
        raise Rejected("text() can be compared, but not selected: select its element", _at(block.steps[-1].name))


def _routes(steps: Iterable[StepSyntax], from_document: bool) -> list[Route]:
    """The possible routes of a path; a plain path is its only route."""
    steps = tuple(steps)
    if _are_plain(steps):
        return [Route(from_document, steps)]
    found = [Route(from_document)]
    for i, step in enumerate(steps):
        found = limited([new for route in found for new in _advance(route, step, last=i == len(steps) - 1)])
    return found


def _are_plain(steps: tuple[StepSyntax, ...]) -> bool:
    """Whether a path only goes down, and its predicates are comparisons of such paths."""
    return all(
        step.axis in ("child", "attribute") and not step.kind and all(map(_is_plain, step.conditions)) for step in steps
    )


def _is_plain(condition: ConditionSyntax) -> bool:
    return isinstance(condition, ComparisonSyntax) and all(
        not path.conditions and _are_plain(path.steps) for path in condition.paths
    )


def _advance(route: Route, step: StepSyntax, last: bool) -> list[Route]:
    """The routes with one more step."""
    if step.kind == "text":
        step = _text(step, route, last)
    match step.axis:
        case "child" | "attribute" | "descendant":
            if step.kind == "node" and last:
                raise Rejected("node() at the end of a path also matches texts: write '*' or text()", _at(step.name))
            return _down(route, step)
        case "self" | "descendant-or-self" if step.deep or step.axis == "descendant-or-self":
            return [*_here(route, replace(step, deep=False)), *_down(route, replace(step, axis="descendant"))]
        case "self":
            return [route] if is_self_step(step) else _here(route, step)
    if step.deep:
        raise Rejected(f"'//' before {step.axis}:: is not supported", _at(step.name))
    found = _here(route, step) if step.axis == "ancestor-or-self" else []
    for moved, index in targets(route, len(route.steps) - 1, step):
        folded = moved.folded(index)
        if folded is not None and not (last and folded.is_document):
            found += _here(folded, step)
    return found


def _text(step: StepSyntax, route: Route, last: bool) -> StepSyntax:
    """`a/text()` is the text of `a`, which must have some."""
    if step.deep or not last or step.axis != "child" or (route.steps and route.steps[-1].attribute):
        raise Rejected("text() is only allowed at the end of a path, for one element", _at(step.name))
    some = ComparisonSyntax(
        RelativeSyntax(step.name, ()), step.name.update("OP", "!="), step.name.update("NOTHING", "")
    )
    return replace(step, axis="self", kind="node", conditions=(some, *step.conditions))


def _down(route: Route, step: StepSyntax) -> list[Route]:
    """One step to a child, an attribute or a descendant."""
    deep, axis = step.deep or step.axis == "descendant", "attribute" if step.axis == "attribute" else "child"
    name = step.name.update("STAR", "*") if step.kind else step.name
    bare = replace(step, name=name, kind="", deep=deep, axis=axis, conditions=())
    routes = [route.extended(bare)]
    if route.from_document and route.context:
        routes = [new for again in down_again(route, bare) for new in _with(again, 0, route.context)]
    return [new for one in routes for new in _with_all(one, len(one.steps) - 1, step.conditions)]


def _here(route: Route, step: StepSyntax) -> list[Route]:
    """The current node of the route, if it passes the test of a step."""
    index = len(route.steps) - 1
    found = narrowed(route, index, step)
    if found is None:
        return []
    if route.is_document and step.conditions:
        raise Rejected("a document cannot have conditions: put them on its element", _at(step.name))
    if index == CONTEXT and step.variables:
        raise Rejected("only a step to a child or descendant can bind a variable", _at(step.variables[0]))
    return _with_all(found.bound(index, step.variables), index, step.conditions)


def _with_all(route: Route, index: int, conditions: Iterable[ConditionSyntax]) -> list[Route]:
    return [new for conjunction in _all(conditions) for new in _with(route, index, conjunction)]


def _with(route: Route, index: int, conjunction: Conjunction) -> list[Route]:
    """The route with conditions on one of its nodes. Upward conditions may insert steps above it, so positions are
    counted from the end.
    """
    found, behind = [route], len(route.steps) - index
    for literal in conjunction:
        found = limited([new for one in found for new in _attached(one, len(one.steps) - behind, literal)])
    return found


def _attached(route: Route, index: int, literal: Literal) -> list[Route]:
    """The possible routes with one condition on a node. A condition that leads up from the start of a relative path is
    left to the path that contains this node.
    """
    positive = not isinstance(literal, NotSyntax)
    comparison = literal.part if isinstance(literal, NotSyntax) else literal
    assert isinstance(comparison, ComparisonSyntax)
    if not is_led(comparison) or (index == CONTEXT and not route.from_document):
        return [route.conditioned(index, literal)]
    lead, rest = without_lead(comparison)
    if not positive and (lead.axis not in ("self", "parent") or lead.conditions):
        what = f"{lead.axis}::" if not lead.conditions else "a predicate there"
        raise Rejected(f"{what} is not supported inside not(...); self:: and '..' are", _at(lead.name))
    found = _led(route, index, lead, rest, positive) if lead.axis in ("self", "ancestor-or-self") else []
    for moved, place in targets(route, index, lead) if lead.axis != "self" else ():
        if place == CONTEXT and route.from_document:
            found += _from_document(moved, lead, rest, positive)
        elif place == CONTEXT and lead.axis != "parent":
            found.append(moved.conditioned(CONTEXT, from_there(comparison, lead)))
        else:
            found += _led(moved, place, lead, rest, positive)
    return found


def _from_document(route: Route, lead: StepSyntax, rest: ComparisonSyntax | None, positive: bool) -> list[Route]:
    """Applies a condition to the document node, which has one child, the first node of the route, and no name."""
    if lead.kind != "node" or lead.conditions:
        return [] if positive else [route]
    if rest is None:
        return [route] if positive else []
    below = on_document_element(rest)
    if below is None:
        return [] if positive else [route]
    return [new for conjunction in _comparison(below, positive) for new in _with(route, 0, conjunction)]


def _led(route: Route, index: int, lead: StepSyntax, rest: ComparisonSyntax | None, positive: bool) -> list[Route]:
    """Applies a condition to the node that it leads to: its name, its predicates, and the rest of the path."""
    if not positive and lead.kind != "node":
        return _negate(route, index, lead, rest)
    here = narrowed(route, index, lead)
    if here is None:
        return []
    if lead.variables:
        here = here.bound(index, lead.variables)
    more = _comparison(rest, positive) if rest is not None else [()] if positive else []
    return [new for own, also in all_of([_all(lead.conditions), more]) for new in _with(here, index, (*own, *also))]


def _negate(route: Route, index: int, lead: StepSyntax, rest: ComparisonSyntax | None) -> list[Route]:
    """The routes on which a node does not have a name or, if it does, the rest does not hold."""
    if index != CONTEXT and route.steps[index].attribute:
        return [route]
    of_name = RelativeSyntax(lead.name, (), test=lead.name)
    if rest is None:
        return [route.conditioned(index, NotSyntax(lead.name, ComparisonSyntax(of_name)))]
    (path,) = rest.paths
    for conjunction in _comparison(with_path(rest, path, replace(path, test=lead.name)), False):
        for literal in conjunction:
            route = route.conditioned(index, literal)
    return [route]


def _all(conditions: Iterable[ConditionSyntax]) -> list[Conjunction]:
    return conjunctions(AndSyntax(tuple(conditions)), _comparison)


def _comparison(comparison: ComparisonSyntax, positive: bool) -> list[Conjunction]:
    """The alternatives of a comparison: it holds if one of the alternatives of its operands does, and fails if none
    does. A comparison that leads up is left unchanged, for the node that it belongs to.
    """
    if is_led(comparison):
        return [(comparison if positive else NotSyntax(_first(comparison), comparison),)]
    found = [
        (replace(comparison, left=left, right=right), (*above, *also))  # type: ignore[arg-type]
        for left, above in _operand(comparison.left)
        for right, also in _operand(comparison.right)
    ]
    if positive:
        return [(one, *above) for one, above in found]
    return [tuple(chosen) for chosen in all_of([_failures(one, conditions) for one, conditions in found])]


def _failures(comparison: ComparisonSyntax, conditions: Conjunction) -> list[ConditionSyntax]:
    """The ways in which an alternative can fail: by itself, or by a condition on the node at which it begins."""
    negated: list[ConditionSyntax] = [NotSyntax(_first(comparison), comparison)]
    for condition in conditions:
        own = condition.part if isinstance(condition, NotSyntax) else NotSyntax(_first(comparison), condition)
        negated.append(own)
    return negated


def _operand(operand: RelativeSyntax | Token | None) -> list[tuple[RelativeSyntax | Token | None, Conjunction]]:
    """The alternatives of an operand, each with its conditions on the node at which it begins."""
    if not isinstance(operand, RelativeSyntax):
        return [(operand, ())]
    choices = [
        (route.steps, (*conditions, *route.context))
        for conditions in _all(operand.conditions)
        for route in _routes(operand.steps, from_document=False)
    ]
    if operand.is_variable:
        return [(replace(operand, conditions=conditions, steps=steps), ()) for steps, conditions in choices]
    return [(replace(operand, conditions=(), steps=steps), conditions) for steps, conditions in choices]


def _first(comparison: ComparisonSyntax) -> Token:
    """The first token of a comparison."""
    return comparison.left.start if isinstance(comparison.left, RelativeSyntax) else comparison.left


def _at(token: Token) -> int:
    return token.start_pos or 0

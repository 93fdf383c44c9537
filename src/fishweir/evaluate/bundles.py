"""Assigns the groups of a segment to bundles: each bundle has one strategy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module

from fishweir.evaluate.group import Bundle, Group, Strategy
from fishweir.evaluate.statistics import Statistics


def to_bundles(
    groups: Mapping[int, Group], rules: Iterable[Strategy], statistics: Statistics, outline: bool = False
) -> tuple[Bundle, ...]:
    """Assigns all groups, given by place, to bundles. Each rule in turn takes the groups that it evaluates best. With
    `outline`, bundles may lack parameters and arrays."""
    left, bundles = dict(groups), list[Bundle]()
    for rule in rules:
        own = {place: group for place, group in left.items() if group.kind == rule.kind}
        take = rule.outline if outline else rule.take
        for bundle in take(own, statistics) if own else ():
            bundles.append(bundle)
            for place in bundle.groups:
                del left[place]
    assert not left, f"no strategy evaluates groups of kind {', '.join({group.kind for group in left.values()})}"
    return tuple(bundles)


def requested_strategy(bundle: Bundle) -> Strategy | None:
    """The strategy of a bundle that was requested by name, imported if necessary; None for a default strategy."""
    if not bundle.module:
        return None
    strategies: dict[str, Strategy] = import_module(bundle.module).STRATEGIES
    return strategies[bundle.strategy]

"""The published algorithms that can be requested by name: `--strategy KIND=NAME`, `fishweir.open(strategies=)`.

In: a name for each kind that the default strategies should not evaluate. Out: the strategies, in the order of OFFERED.
A module is imported when one of its strategies is requested; a worker imports it by the name in the segment.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module

from fishweir.errors import QueryError
from fishweir.evaluate.group import Strategy

_SELECTIONS = "fishweir.papers.spatialjoin.selections"
_FILTERS = "fishweir.papers.roses.filters"
_JOINS = "fishweir.papers.mmqjp.joins"
_WINDOW_JOINS = "fishweir.papers.spatialjoin.window_joins"

OFFERED: dict[str, dict[str, str]] = {
    "joins": dict.fromkeys(("mmqjp", "mmqjp-views", "sequential"), _JOINS),
    "selections": dict.fromkeys(("sj-batch", "sj-immediate", "ibs"), _SELECTIONS),
    "window-joins": dict.fromkeys(("sj-join", "ibs-js"), _WINDOW_JOINS),
    "filters": dict.fromkeys(("sta", "vca", "naive"), _FILTERS),
}
"""The module that has the strategy in its STRATEGIES, by kind and name."""


def named_strategies(requested: Mapping[str, str]) -> tuple[Strategy, ...]:
    """The requested strategies. Raises QueryError if a kind has no strategy of that name."""
    for kind, name in requested.items():
        if kind not in OFFERED:
            raise QueryError(f"there is no kind of strategy {kind}; there are: {', '.join(OFFERED)}")
        if name not in OFFERED[kind]:
            raise QueryError(f"there is no strategy {kind}={name}; there are: {', '.join(OFFERED[kind])}")
    return tuple(
        _strategy(modules[requested[kind]], requested[kind]) for kind, modules in OFFERED.items() if kind in requested
    )


def parse_options(options: Iterable[str]) -> dict[str, str]:
    """Parses the `KIND=NAME` options of the command line, each kind once."""
    found: dict[str, str] = {}
    for option in options:
        kind, equals, name = option.partition("=")
        if not equals:
            raise QueryError(f"--strategy {option}: write KIND=NAME, as in {_example()}")
        if kind in found:
            raise QueryError(f"--strategy {option}: {kind}={found[kind]} is already requested")
        found[kind] = name
    return found


def _strategy(module: str, name: str) -> Strategy:
    strategies: dict[str, Strategy] = import_module(module).STRATEGIES
    return strategies[name]


def _example() -> str:
    kind, names = next(iter(OFFERED.items()))
    return f"{kind}={next(iter(names))}"

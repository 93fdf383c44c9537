"""The cost model: the equations of section 3.2 and the storing pattern sets of figure 6."""

from __future__ import annotations

import pytest

from fishweir.languages.script import parse_script
from fishweir.shedding.cost import (
    Constants,
    ElementCounts,
    PatternCounts,
    buffering,
    locating,
    manipulation,
    saved_locating,
    storing_set,
    unit_cost,
)
from fishweir.shedding.patterns import PatternTree, to_tree

COST = Constants(transit=5, null=2, backtrack=1, buffer=3, compare=7, join=11)


def tree_of(text: str) -> PatternTree:
    (statement,) = parse_script(text)
    return to_tree(statement.shape)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("returned", "stored"),
    [
        ("$a/p1, $a/p1/p2, $a/p1/p3, $a/p1/p4", {"p1"}),
        ("$a/p1, $a/p1/p2, $a/p1/p3, $a/p1/p3/p4", {"p1"}),
        ("$a/p1/p2, $a/p1/p3, $a/p1/p4", {"p2", "p3", "p4"}),
    ],
)
def test_storing_pattern_sets_of_figure_6(returned: str, stored: set[str]) -> None:
    tree = tree_of(f"for $a in stream('S')/t return {returned}")
    assert {tree.patterns[i].names[-1] for i in storing_set(tree, tree.full)} == stored


def test_the_equations() -> None:
    tree = tree_of("for $a in stream('S')/t where $a/p > 1 return $a/x, $a/y")
    place = {pattern.names[-1]: i for i, pattern in enumerate(tree.patterns)}
    of = {"p": PatternCounts(1, 3, 1, 0.5), "x": PatternCounts(2, 10, 2), "y": PatternCounts(1, 4, 3)}
    counts = ElementCounts(20, 1, tuple(of[pattern.names[-1]] for pattern in tree.patterns))
    assert locating(counts, tree.full, COST) == 7 * (5 + 1) + 13 * (2 + 1)
    assert buffering(tree, counts, tree.full, COST) == (3 + 20 + 4) * 3
    assert manipulation(tree, counts, tree.full, COST) == 7 + 0.5 * 3 * 11
    without_x = tree.full - {place["x"]}
    saved = locating(counts, tree.full, COST) - locating(counts, without_x, COST)
    assert saved == saved_locating(counts, {place["x"]}, COST) == 2 * (5 - 2)
    assert unit_cost(tree, counts, frozenset(), COST) == 0
    assert unit_cost(tree, counts, without_x, COST) < unit_cost(tree, counts, tree.full, COST)


def test_removing_a_selection_may_cost_more() -> None:
    tree = tree_of("for $a in stream('S')/t where $a/p > 1 return $a/x")
    selected = next(i for i, pattern in enumerate(tree.patterns) if pattern.selected)
    counts = ElementCounts(
        100, 1, tuple(PatternCounts(1, 1, 1, 0.01) if p.selected else PatternCounts(50, 1, 50) for p in tree.patterns)
    )
    assert unit_cost(tree, counts, tree.full - {selected}, COST) > unit_cost(tree, counts, tree.full, COST)

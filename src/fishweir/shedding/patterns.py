"""Query pattern trees and their shed queries (utility-driven shedding, section 2).

In: the shape of a query. Out: its patterns, each an absolute path with its roles: `r` (returned), `s` (selected by a
condition). Steps without a role exist only for the patterns below them. A shed query keeps the root and some of the
patterns; removing a pattern removes those below it. So all leaves are `r` or `s` patterns, as section 2.2 requires, and
with B patterns there are between B and 2^B shed queries.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import product

from fishweir.algebra.feeds import Selection
from fishweir.algebra.formula import And, Atom, Formula, Not, Or
from fishweir.algebra.nodes import ElementOutput, Output, PatternNode, Shape, Slot, Step, VariableOutput
from fishweir.algebra.normal import dotted
from fishweir.algebra.returns import ForOutput, PathCondition, PathOutput, ReturnOutput
from fishweir.records import dataclass

AbsolutePath = tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Pattern:
    """A path that a query returns or selects by. `parent` is the nearest pattern above it, or -1."""

    path: AbsolutePath
    returned: bool
    selected: bool
    parent: int = -1

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"@{step.name}" if step.is_attribute else step.name for step in self.path)

    @property
    def key(self) -> str:
        """The path as text, equal for equal patterns of different queries."""
        return dotted(self.path)

    def __str__(self) -> str:
        return "/".join(self.names)


@dataclass(frozen=True, slots=True)
class PatternTree:
    """A query's patterns, parents before children, below the path of its first variable."""

    root: AbsolutePath
    patterns: tuple[Pattern, ...]

    def children(self, parent: int) -> list[int]:
        return [i for i, pattern in enumerate(self.patterns) if pattern.parent == parent]

    def is_below(self, pattern: int, above: int) -> bool:
        while pattern >= 0 and pattern != above:
            pattern = self.patterns[pattern].parent
        return pattern == above

    @property
    def full(self) -> frozenset[int]:
        return frozenset(range(len(self.patterns)))


def shed_queries(tree: PatternTree) -> list[frozenset[int]]:
    """The patterns of each shed query, the original first, the empty query last."""
    found = [frozenset(kept) for kept in _kept_below(tree, -1)]
    return sorted(found, key=lambda kept: (-len(kept), sorted(kept)))


def _kept_below(tree: PatternTree, parent: int) -> Iterator[tuple[int, ...]]:
    """All choices of patterns to keep below one: each child is removed entirely, or kept with some of its subtree."""
    ways = [[(), *((child, *below) for below in _kept_below(tree, child))] for child in tree.children(parent)]
    for chosen in product(*ways):
        yield tuple(one for part in chosen for one in part)


@lru_cache(maxsize=100_000)
def to_tree(shape: Shape | Selection) -> PatternTree:
    """The pattern tree of a query over one stream. For a join, that of its first block, which is shed as a whole."""
    if isinstance(shape, Selection):
        return _of_columns(shape)
    (block, *_) = shape.blocks
    places = places_of(shape)
    roles: dict[AbsolutePath, set[str]] = {}
    for condition in shape.conditions:
        if isinstance(condition.right, Slot) and condition.left in places:
            roles.setdefault(places[condition.left], set()).add("s")
    for path in returned_paths(shape.output, places):
        roles.setdefault(path, set()).add("r")
    return _tree(_root(block.pattern), roles)


def is_alone(shape: object) -> bool:
    """Whether a query reads one document at a time, so that its patterns form one tree."""
    if isinstance(shape, Selection):
        return not shape.joins
    return isinstance(shape, Shape) and len(shape.blocks) == 1 and not shape.windows and shape.unless is None


def places_of(shape: Shape) -> dict[str, AbsolutePath]:
    """The path of each variable of a query's first block."""
    return dict(_places(shape.blocks[0].pattern, ()))


def _of_columns(shape: Selection) -> PatternTree:
    """The pattern tree of an SQL selection's columns. A feed's filter selects and returns items as a whole."""
    roles: dict[AbsolutePath, set[str]] = {}
    for one in shape.filters:
        for path in _compared(one.formula):
            roles.setdefault(path, set()).add("s")
    for _, path in shape.output.columns if shape.output else ():
        roles.setdefault(tuple(path), set()).add("r")
    return _tree((), roles)


def _compared(formula: Formula) -> Iterator[AbsolutePath]:
    match formula:
        case And(parts) | Or(parts):
            for part in parts:
                yield from _compared(part)
        case Not(part):
            yield from _compared(part)
        case Atom():
            yield tuple(formula.path)


def _tree(root: AbsolutePath, roles: dict[AbsolutePath, set[str]]) -> PatternTree:
    paths = sorted(roles, key=lambda path: (len(path), list(roles).index(path)))
    patterns = []
    for path in paths:
        above = [i for i, other in enumerate(paths) if len(other) < len(path) and path[: len(other)] == other]
        patterns.append(Pattern(path, "r" in roles[path], "s" in roles[path], above[-1] if above else -1))
    return PatternTree(root, tuple(patterns))


def _root(pattern: PatternNode) -> AbsolutePath:
    """The steps down to the first node that a variable is bound to."""
    path: AbsolutePath = (pattern.step,)
    while not pattern.variables and len(pattern.children) == 1:
        pattern = pattern.children[0]
        path = (*path, pattern.step)
    return path


def _places(node: PatternNode, above: AbsolutePath) -> Iterator[tuple[str, AbsolutePath]]:
    path = (*above, node.step)
    for name in node.variables:
        yield name, path
    for child in node.children:
        yield from _places(child, path)


def returned_paths(parts: tuple[Output, ...], places: dict[str, AbsolutePath]) -> Iterator[AbsolutePath]:
    for part in parts:
        match part:
            case VariableOutput(name) if name in places:
                yield places[name]
            case PathOutput():
                yield _absolute(part, places)
            case ElementOutput(_, attributes, children):
                yield from returned_paths(tuple(value for _, value in attributes), places)
                yield from returned_paths(children, places)
            case ReturnOutput(_, inner):
                yield from returned_paths(inner, places)
            case ForOutput(variable, over, _, inner):
                yield from returned_paths(inner, {**places, variable: _absolute(over, places)})


def _absolute(part: PathOutput | PathCondition, places: dict[str, AbsolutePath]) -> AbsolutePath:
    path = part if isinstance(part, PathOutput) else part.at
    return (*places.get(path.variable, ()), *path.path)

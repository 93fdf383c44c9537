"""Join graphs, canonical variables, and the graph minor by three rules (MMQJP 2, 4.1 and 4.2).

In: a join's Shape with its constants. Out: a JoinGraph (a tree of variables per side and the value joins between the
two) and its minor. Shared: a variable is its definition, the source and the path from the pattern's root, so the same
definition in two queries, or on two sides, is one variable. The conditions of a block besides its value joins (branches
that must only exist, comparisons with constants) are part of the definition, as predicates on a step, and are therefore
decided when the witnesses are found (stage 1). An output node stays in the graph like a node of a value join, since a
result is over it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from fishweir.algebra.joins import Edge, edge, edge_variables, named, nodes_named, reduced
from fishweir.algebra.nodes import MIRRORED, Comparison, Constant, Operator, PatternNode, Shape, Slot, Source, Step
from fishweir.errors import QueryError

Test = tuple[Operator, Constant]


class UnsupportedJoin(QueryError):
    """A join that MMQJP's relations cannot express. The fast strategy evaluates such joins."""


@dataclass(frozen=True, slots=True)
class Part:
    """One step of a definition, with its conditions: comparisons with constants, branches that exist."""

    step: Step
    tests: tuple[Test, ...] = ()
    branches: tuple[Part, ...] = ()

    def __str__(self) -> str:
        conditions = [f"[. {op} {constant!r}]" for op, constant in self.tests]
        conditions += [f"[.{branch}]" for branch in self.branches]
        slash = "//" if self.step.is_deep else "/"
        return f"{slash}{str(self.step).removeprefix('.')}{''.join(conditions)}"


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable's definition, which is also its canonical name: `S//book[./isbn]//author`."""

    source: Source
    parts: tuple[Part, ...]

    @property
    def path(self) -> tuple[Step, ...]:
        return tuple(part.step for part in self.parts)

    def __str__(self) -> str:
        return f"{self.source}{''.join(map(str, self.parts))}"


@dataclass(frozen=True, slots=True)
class GraphNode:
    """`parent` is a position among the nodes of its side, -1 at the root; `names` are those that the query uses."""

    parent: int
    variable: Variable
    names: tuple[str, ...]
    is_shown: bool
    """Whether a result is over the node."""


@dataclass(frozen=True, slots=True)
class JoinGraph:
    """Nodes per side in preorder. A structural edge leads from a parent to its child, with the child's axis. In the
    minor it leads to a descendant."""

    left: tuple[GraphNode, ...]
    right: tuple[GraphNode, ...]
    edges: tuple[Edge, ...]

    @property
    def sides(self) -> tuple[tuple[GraphNode, ...], tuple[GraphNode, ...]]:
        return self.left, self.right

    def kept(self, side: int) -> set[int]:
        """The nodes that no rule may remove: those of value joins and of the output."""
        joined = {(edge.left, edge.right)[side] for edge in self.edges}
        return joined | {i for i, node in enumerate(self.sides[side]) if node.is_shown}


def to_join_graph(shape: Shape, constants: Sequence[Constant] = ()) -> JoinGraph:
    """The join graph of a query in value-join normal form."""
    _check(shape)
    patterns = [named(block.pattern, f"_n{side}") for side, block in enumerate(shape.blocks)]
    places = [{name: i for i, node in enumerate(pattern.walk()) for name in node.variables} for pattern in patterns]
    for condition in shape.conditions:
        if isinstance(condition.right, str) and any({condition.left, condition.right} <= own.keys() for own in places):
            raise UnsupportedJoin(f"{condition.left} {condition.op} {condition.right} compares within one document")
    edges = {_edge(c, places) for c in shape.conditions if isinstance(c.right, str)}
    trees = [_tree(shape, constants, side, pattern) for side, pattern in enumerate(patterns)]
    return JoinGraph(trees[0], trees[1], tuple(sorted(edges, key=lambda e: (e.left, e.right, e.op))))


def _check(shape: Shape) -> None:
    if len(shape.blocks) != 2 or not shape.windows:
        raise UnsupportedJoin("a join must have two blocks and a window")
    if not any(edge_variables(shape, 0)):
        raise UnsupportedJoin("a join without a comparison between its blocks is not part of MMQJP")
    if any(window.rows for window in shape.windows):
        raise UnsupportedJoin("windows of rows are not part of MMQJP")
    if shape.alternatives or any(node.absent for block in shape.blocks for node in block.pattern.walk()):
        raise UnsupportedJoin("'or' and 'not' are not part of MMQJP")
    on_texts = [condition.op for condition in shape.conditions if condition.op not in MIRRORED]
    if on_texts:
        raise UnsupportedJoin(f"'{on_texts[0]}' is not part of MMQJP, which only compares values")


def _edge(condition: Comparison, places: Sequence[dict[str, int]]) -> Edge:
    assert isinstance(condition.right, str)
    one, two = ((int(name in places[1]), name) for name in (condition.left, condition.right))
    return edge((one[0], places[one[0]][one[1]]), condition.comparison, (two[0], places[two[0]][two[1]]))


def _tree(shape: Shape, constants: Sequence[Constant], side: int, pattern: PatternNode) -> tuple[GraphNode, ...]:
    joined = nodes_named(pattern, set(edge_variables(shape, side)))
    mentioned = nodes_named(pattern, set(shape.output_variables))
    shown, kept = reduced(pattern, joined) | mentioned, joined | mentioned
    for node in pattern.walk():
        if id(node) in kept and node.step.is_attribute and node.step.name == "*":
            raise UnsupportedJoin("a variable on any attribute, @*, has no node id")
    tests: dict[str, list[Test]] = {}
    for condition in shape.conditions:
        if isinstance(condition.right, Slot):
            tests.setdefault(condition.left, []).append((condition.comparison, constants[condition.right.index]))
    found: list[GraphNode] = []

    def part(node: PatternNode, branches: Iterable[PatternNode]) -> Part:
        own = sorted({test for name in node.variables for test in tests.get(name, ())}, key=repr)
        below = sorted({part(branch, branch.children) for branch in branches}, key=str)
        return Part(node.step, tuple(own), tuple(below))

    def visit(node: PatternNode, parent: int, above: tuple[Part, ...]) -> None:
        idle = [child for child in node.children if not any(id(one) in kept for one in child.walk())]
        parts, place = (*above, part(node, idle)), len(found)
        variable = Variable(shape.blocks[side].source, parts)
        found.append(GraphNode(parent, variable, node.variables, id(node) in shown))
        for child in node.children:
            visit(child, place, parts)

    visit(pattern, -1, ())
    return tuple(found)


# The minor. A tree maps each node, by number, to its parent; -1 for the root.

Tree = dict[int, int]


def to_minor(graph: JoinGraph) -> JoinGraph:
    """The join graph after the three rules of section 4.2, with nodes renumbered in the same order."""
    trees = []
    for side, nodes in enumerate(graph.sides):
        tree, kept = {i: node.parent for i, node in enumerate(nodes)}, graph.kept(side)
        for rule in (without_idle_leaves, below_common_ancestor, without_single_children):
            tree = rule(tree, kept)
        trees.append(tree)
    numbers = [{old: new for new, old in enumerate(sorted(tree))} for tree in trees]
    left, right = (
        tuple(replace(nodes[old], parent=number.get(tree[old], -1)) for old in sorted(tree))
        for nodes, tree, number in zip(graph.sides, trees, numbers, strict=True)
    )
    edges = (replace(e, left=numbers[0][e.left], right=numbers[1][e.right]) for e in graph.edges)
    return JoinGraph(left, right, tuple(sorted(edges, key=lambda e: (e.left, e.right, e.op))))


def without_idle_leaves(tree: Tree, kept: set[int]) -> Tree:
    """First rule: removes leaves that take part in no value join, repeatedly."""
    while idle := tree.keys() - tree.values() - kept:
        tree = {node: parent for node, parent in tree.items() if node not in idle}
    return tree


def below_common_ancestor(tree: Tree, kept: set[int]) -> Tree:
    """Second rule: removes nodes that are not at or below the least common ancestor of the remaining nodes."""
    (root,) = (node for node, parent in tree.items() if parent == -1)
    while root not in kept and len(below := _children(tree, root)) == 1:
        tree = {node: -1 if parent == root else parent for node, parent in tree.items() if node != root}
        (root,) = below
    return tree


def without_single_children(tree: Tree, kept: set[int]) -> Tree:
    """Third rule: removes intermediate nodes with a single child; the child takes their place."""
    for node in [n for n in tree if n not in kept and tree[n] != -1 and len(_children(tree, n)) == 1]:
        above = tree[node]
        tree = {n: above if parent == node else parent for n, parent in tree.items() if n != node}
    return tree


def _children(tree: Tree, node: int) -> list[int]:
    return [child for child, parent in tree.items() if parent == node]

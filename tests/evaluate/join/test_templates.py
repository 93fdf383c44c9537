"""Join graphs, minors and templates: the paper's examples, table 3, and agreement with the algebra."""

from __future__ import annotations

from itertools import combinations, product

import pytest
from hypothesis import given

from fishweir.algebra.joins import nodes_named, reduced, row_variables
from fishweir.algebra.nodes import Comparison, PatternNode, Slot, Step, VariableOutput
from fishweir.papers.mmqjp.isomorphism import Structure, canonical
from fishweir.papers.mmqjp.join_graph import UnsupportedJoin, to_join_graph, to_minor
from fishweir.papers.mmqjp.templates import QueryTemplates, to_template, up_to_exchange
from tests import strategies as st
from tests.evaluate.join.support import FOLLOWED_BY, JOIN, Q1, Q2, Q3, join, node
from tests.generators import patterns


def trees(leaves):
    """All trees over some leaves in which each node above them has at least two children, as nested tuples."""
    if len(leaves) == 1:
        yield leaves[0]
        return
    for parts in partitions(leaves):
        if len(parts) > 1:
            yield from product(*(list(trees(part)) for part in parts))


def partitions(items):
    if not items:
        yield []
        return
    first, rest = items[0], items[1:]
    for size in range(len(rest) + 1):
        for others in combinations(rest, size):
            left = [item for item in rest if item not in others]
            for more in partitions(left):
                yield [[first, *others], *more]


def pattern(tree, side):
    """A pattern of such a tree below a root that the minor does not need."""
    if isinstance(tree, tuple):
        return PatternNode(Step("n"), (), tuple(pattern(part, side) for part in tree))
    return PatternNode(Step(f"leaf{tree}", "descendant"), (f"{side}{tree}",))


def bipartite(edges):
    """All sets of this many edges between the leaves of two sides in which each leaf has one, up to order."""
    found = {}
    for lefts, rights in product(range(1, edges + 1), repeat=2):
        for chosen in combinations(list(product(range(lefts), range(rights))), edges):
            if {a for a, _ in chosen} == set(range(lefts)) and {b for _, b in chosen} == set(range(rights)):
                flat = query(tuple(range(lefts)), chosen, tuple(range(rights)))
                template, _ = to_template(to_minor(to_join_graph(flat, (1.0,))), FOLLOWED_BY)
                found.setdefault(template, (lefts, chosen, rights))
    return found


def query(left, edges, right):
    sides = [PatternNode(Step("r"), (), (pattern(tree, side),)) for tree, side in ((left, "l"), (right, "r"))]
    return join(sides[0], [(f"l{a}", "=", f"r{b}") for a, b in edges], sides[1])


@pytest.mark.parametrize(("edges", "count"), [(1, 1), (2, 3), (3, 6), (4, 16)])
def test_table_3_flat_schemas(edges, count):
    assert len(bipartite(edges)) == count


@pytest.mark.parametrize(("edges", "count"), [(1, 1), (2, 3), (3, 16)])
def test_table_3_complex_schemas(edges, count):
    assert len(complex_templates(edges)) == count


def test_table_3_complex_schemas_of_four_value_joins():
    """The paper says less than 230."""
    assert len(complex_templates(4)) == 215


def complex_templates(edges):
    templates = QueryTemplates()
    for lefts, chosen, rights in bipartite(edges).values():
        for left, right in product(trees(list(range(lefts))), trees(list(range(rights)))):
            templates.assign(0, query(left, chosen, right), (1.0,))
    return templates.relations


def test_sides_are_distinguished_in_table_3_but_not_in_section_6():
    """Up to exchange of the sides there are fewer: of two value joins, the two that share a leaf are one."""
    assert [len({up_to_exchange(t) for t in complex_templates(edges)}) for edges in (1, 2, 3)] == [1, 2, 10]


def test_the_three_queries_of_table_2_have_one_template():
    templates = QueryTemplates()
    relations = [templates.assign(i, shape, (1.0,)) for i, shape in enumerate((Q1, Q2, Q3), 1)]
    assert len(templates) == 1
    assert {relation.name for relation in relations} == {"RT1"}


def test_join_and_followed_by_have_different_templates():
    templates = QueryTemplates()
    for window in (FOLLOWED_BY, JOIN):
        templates.assign(0, join(node("a->x"), [("x", "=", "y")], node("b->y"), window), (1.0,))
    assert [relation.template.ends for relation in templates.relations.values()] == [("wl",), ("wl", "wr")]


def test_variables_of_one_definition_are_one():
    graph = to_join_graph(Q3, (1.0,))
    assert [str(n.variable) for n in graph.left] == ["S//blog", "S//blog//author", "S//blog//title"]
    assert [n.variable for n in graph.left] == [n.variable for n in graph.right]


def test_child_and_descendant_are_different_variables_of_one_template():
    templates = QueryTemplates()
    for step in ("author->x", "//author->x"):
        shape = join(node("book", node(step)), [("x", "=", "y")], node("book", node("title->y")))
        templates.assign(0, shape, (1.0,))
    assert len(templates) == 1
    assert {str(variable) for variable in templates.variables} == {"S/book/author", "S/book//author", "S/book/title"}


def test_existence_conditions_are_part_of_the_definition():
    left = node("book", node("isbn"), node("price->p"), node("author->x"))
    shape = join(
        left,
        [("x", "=", "y")],
        node("blog", node("author->y")),
        more=(Comparison("p", "<", Slot(1, "number")),),
        slots=(Slot(1, "number"),),
    )
    minor = to_minor(to_join_graph(shape, (1.0, 20.0)))
    assert [str(n.variable) for n in minor.left] == ["S/book[./isbn][./price[. < 20.0]]/author"]


def test_joins_that_relations_cannot_express_are_refused():
    left = node("a->x", node("b->z"))
    for shape in (
        join(left, [("x", "=", "y"), ("x", "=", "z")], node("b->y")),
        join(node("a", node("@*->x")), [("x", "=", "y")], node("b->y")),
    ):
        with pytest.raises(UnsupportedJoin):
            to_join_graph(shape, (1.0,))


@st.composite
def graphs(draw):
    """A join of random patterns, on any of their nodes, with any of them in the output."""
    sides, names = [], []
    for side in "lr":
        sides.append(renamed(draw(patterns(iter(range(1000)), 3)), side, iter(range(1000))))
        names.append([n.variables[0] for n in sides[-1].walk()])
    on = draw(st.lists(st.tuples(*(st.sampled_from(some) for some in names)), min_size=1, max_size=5))
    shown = draw(st.lists(st.sampled_from(names[0] + names[1]), max_size=2, unique=True))
    ops = [draw(st.sampled_from(["=", "=", "<", "!="])) for _ in on]
    edges = [(a, op, b) for (a, b), op in zip(on, ops, strict=True)]
    return join(sides[0], edges, sides[1], output=tuple(map(VariableOutput, shown)))


def renamed(tree, side, numbers):
    own = (f"{side}{next(numbers)}",)
    return PatternNode(tree.step, own, tuple(renamed(child, side, numbers) for child in tree.children))


@given(graphs())
@st.examples(60)
def test_the_rules_agree_with_the_algebra(shape):
    minor = to_minor(to_join_graph(shape, (1.0,)))
    for side, nodes in enumerate(minor.sides):
        pattern = shape.blocks[side].pattern
        wanted = {c.left if side == 0 else c.right for c in shape.conditions} | set(shape.output_variables)
        left = reduced(pattern, nodes_named(pattern, wanted))
        assert [n.names for n in nodes] == [n.variables for n in pattern.walk() if id(n) in left]
        assert tuple(n.names[0] for n in nodes if n.is_shown) == row_variables(shape, side)


@given(graphs(), st.randoms(use_true_random=False))
@st.examples(60)
def test_the_order_of_siblings_does_not_matter(shape, random):
    def shuffled(tree):
        children = [shuffled(child) for child in tree.children]
        random.shuffle(children)
        return PatternNode(tree.step, tree.variables, tuple(children))

    left, right = (shuffled(block.pattern) for block in shape.blocks)
    conditions = list(shape.conditions)
    random.shuffle(conditions)
    other = join(left, [(c.left, c.op, c.right) for c in conditions], right, output=shape.output)
    first, second = (to_template(to_minor(to_join_graph(s, (1.0,))), FOLLOWED_BY) for s in (shape, other))
    assert first[0] == second[0]


def test_many_symmetries_are_cheap_and_similar_graphs_distinguished():
    """Two rings of six leaves and one of twelve cannot be distinguished locally."""

    def rings(*sizes):
        edges, start = [], 0
        for size in sizes:
            half = size // 2
            edges += [(start + i, "=", start + (i + step) % half) for i in range(half) for step in (0, 1)]
            start += half
        lefts = start + 1
        parents = (-1, *[0] * start, -1, *[lefts] * start)
        moved = tuple((a + 1, op, lefts + 1 + b) for a, op, b in edges)
        return Structure(parents, lefts, tuple(sorted(moved)), ())

    assert canonical(rings(6, 6))[0] != canonical(rings(12))[0]
    matching = Structure((-1, *[0] * 12, -1, *[13] * 12), 13, tuple((i, "=", 26 - i) for i in range(1, 13)), ())
    assert canonical(matching)[0].edges == tuple((i, "=", 13 + i) for i in range(1, 13))

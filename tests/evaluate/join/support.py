"""Join queries as shapes in a short notation, random join queries, and the oracle's results."""

from __future__ import annotations

from itertools import count

from fishweir.algebra.documents import Document, parse_document
from fishweir.algebra.join_oracle import evaluate_join
from fishweir.algebra.joins import row_variables
from fishweir.algebra.nodes import (
    OPERATORS,
    Block,
    Comparison,
    PatternNode,
    Shape,
    SideWindow,
    Slot,
    Source,
    Step,
    VariableOutput,
)
from fishweir.papers.mmqjp.join_graph import to_join_graph, to_minor
from fishweir.papers.mmqjp.relations import ATTRIBUTE
from fishweir.papers.mmqjp.templates import reach_of, to_template
from tests import strategies as st

WL = Slot(0, "number")
FOLLOWED_BY, JOIN = (SideWindow(WL), SideWindow()), (SideWindow(WL), SideWindow(WL))
PRECEDED_BY = (SideWindow(), SideWindow(WL))


def node(text, *children):
    """`//author->x2` with its children; the name alone is a child step."""
    path, _, variable = text.partition("->")
    name = path.lstrip("/")
    attribute = name.startswith("@")
    axis = ("descendant-attribute" if attribute else "descendant") if path.startswith("//") else "child"
    axis = "attribute" if attribute and axis == "child" else axis
    return PatternNode(Step(name.lstrip("@"), axis), (variable,) if variable else (), children)


def join(left, on, right, windows=FOLLOWED_BY, output=(), source="S", more=(), slots=()):
    """A shape of two patterns; `on` is a list of (left variable, op, right variable)."""
    conditions = tuple(Comparison(a, op, b) for a, op, b in on)
    blocks = (Block(Source(source), left), Block(Source(source), right))
    return Shape(blocks, (*conditions, *more), output, (WL, *slots), windows, windows == FOLLOWED_BY)


def block(kind, root, *leaves):
    return node(f"//{kind}->{root}", *(node(f"//{name}->{variable}") for name, variable in leaves))


# Table 2.
Q1 = join(
    block("book", "x1", ("author", "x2"), ("title", "x3")),
    [("x2", "=", "x5"), ("x3", "=", "x6")],
    block("blog", "x4", ("author", "x5"), ("title", "x6")),
)
Q2 = join(
    block("book", "x1", ("author", "x2"), ("category", "x7")),
    [("x2", "=", "x5"), ("x7", "=", "x8")],
    block("blog", "x4", ("author", "x5"), ("category", "x8")),
)
Q3 = join(
    block("blog", "x4", ("author", "x5"), ("title", "x6")),
    [("x5", "=", "x5'"), ("x6", "=", "x6'")],
    block("blog", "x4'", ("author", "x5'"), ("title", "x6'")),
)


# Random joins. Few names and values, so that many pairs match; times on a small grid, so that windows end exactly.


VALUES = ["", "1", "1", "2", "x"]


@st.composite
def documents(draw):
    """Up to five documents, possibly late or with equal times: r over a's over b's, c's and attributes."""
    times = st.sampled_from([0.0, 1.0, 1.5, 2.0, 3.0])
    texts = draw(st.lists(st.tuples(trees(3), times), min_size=2, max_size=5))
    return [
        (Source("S"), Document(f"d{i}", time, parse_document(text.encode()))) for i, (text, time) in enumerate(texts)
    ]


@st.composite
def trees(draw, depth):
    name = {3: "r", 2: "a"}.get(depth) or draw(st.sampled_from("bc"))
    own = draw(st.sampled_from(VALUES))
    if depth == 1 and draw(st.integers(0, 5)):
        return f"<{name}>{own}</{name}>"
    below = draw(st.lists(trees(max(depth - 1, 1)), min_size=depth > 1, max_size=3 if depth > 1 else 1))
    return f'<{name} k="{own}">{"".join(below)}</{name}>'


@st.composite
def queries(draw, ops=("=", "=", "=", "=", "=", "!=", "<", ">=")):
    sides, names = [], []
    for side in "lr":
        sides.append(numbered(draw(patterns()), side, count()))
        names.append([n.variables[0] for n in sides[-1].walk()])
    on = draw(st.lists(st.tuples(*(st.sampled_from(some[1:]) for some in names)), min_size=1, max_size=3))
    edges = [(a, draw(st.sampled_from(ops)), b) for a, b in on]
    shown = draw(st.lists(st.sampled_from(names[0] + names[1]), max_size=1))
    more, slots, constants = [], [], [draw(st.sampled_from([1.0, 1.5, 2.0, float("inf")]))]
    if draw(st.integers(0, 3)) == 0:
        slots.append(Slot(1, draw(st.sampled_from(["string", "number"]))))
        more.append(Comparison(draw(st.sampled_from(names[0] + names[1])), draw(st.sampled_from(OPERATORS)), slots[0]))
        constants.append(draw(st.sampled_from([1.0, 2.0] if slots[0].type == "number" else VALUES)))
    windows = draw(st.sampled_from([FOLLOWED_BY, JOIN, JOIN, PRECEDED_BY]))
    output = tuple(VariableOutput(name) for name in shown)
    return join(sides[0], edges, sides[1], windows, output, more=tuple(more), slots=tuple(slots)), tuple(constants)


@st.composite
def patterns(draw):
    """r, or a below it at any depth, over branches that such documents mostly have."""
    leaf = st.builds(node, st.sampled_from(["//b", "//c", "//@k", "//b", "//c"]))
    near = st.builds(node, st.sampled_from(["b", "c", "@k", "//b", "//*"]))
    middle = st.lists(near, min_size=1, max_size=3).map(lambda below: node("a", *below))
    below = draw(st.lists(st.one_of(leaf, middle, middle), min_size=1, max_size=2))
    return draw(st.one_of(st.just(node("r", *below)), middle.map(lambda one: node("//a", *one.children))))


def numbered(pattern, side, numbers):
    """The pattern with a separate variable at each node."""
    own = (f"{side}{next(numbers)}",)
    return PatternNode(pattern.step, own, tuple(numbered(child, side, numbers) for child in pattern.children))


def expected(joins, arrivals):
    """What the oracle finds: (query, left document, right document, ids of the nodes)."""
    given = [document for _, document in arrivals]
    found = set()
    for number, (shape, constants) in enumerate(joins):
        over = [name for side in (0, 1) for name in row_variables(shape, side)]
        for pair in evaluate_join(shape, constants, [given, given]):
            nodes = tuple(pair.binding[name].id for name in over)
            found.add((number, *(one.id for one in pair.sides), nodes))
    return found


def processed(strategy, joins, arrivals, size):
    """The same by a strategy that gets the documents in batches of a size, and the number of its rows."""
    strategy.register(joins)
    found, rows = set(), 0
    for start in range(0, len(arrivals), size):
        for part in strategy.process(arrivals[start : start + size]):
            for row in part.rows.to_pylist():
                shape, constants = joins[row["qid"]]
                found.add(readable(strategy, shape, constants, row))
                rows += 1
    return found, rows


def readable(strategy, shape, constants, row):
    minor = to_minor(to_join_graph(shape, constants))
    _, order = to_template(minor, reach_of(shape))
    places = {node: i + 1 for i, node in enumerate(order)}
    attributes = {number: name for (name, _), number in strategy.finder.attributes.items()}
    ids = []
    for i, node in enumerate((*minor.left, *minor.right)):
        if node.is_shown:
            value = row[f"node{places[i]}"]
            name = attributes.get(value >> ATTRIBUTE)
            ids.append(f"{value & ((1 << ATTRIBUTE) - 1)}" + (f"@{name}" if name else ""))
    return row["qid"], f"d{row['docid1']}", f"d{row['docid2']}", tuple(ids)

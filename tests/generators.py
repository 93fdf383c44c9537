"""Random documents and queries that often match: few names, few values, nested and repeated nodes."""

from __future__ import annotations

from fishweir.algebra.nodes import (
    OPERATORS,
    Block,
    Comparison,
    ElementOutput,
    PatternNode,
    Shape,
    SideWindow,
    Slot,
    Source,
    Step,
    TextOutput,
    VariableOutput,
)
from tests import strategies as st

NAMES = ["a", "b", "c"]
NAMESPACE = "urn:n"
TEXTS = ["", "1", "2", "2.0", " 3 ", "10", "x", "y", "x y", "nan", "é<&>"]
NUMBERS = [0.0, 1.0, 2.0, 2.5, 3.0, 10.0, -1.0]


@st.composite
def documents(draw: st.DrawFn, depth: int = 3) -> str:
    """An XML text; attributes k and l, elements a, b, c, values from a small pool."""
    name = draw(st.sampled_from(NAMES))
    attributes = draw(st.dictionaries(st.sampled_from(["k", "l"]), st.sampled_from(TEXTS), max_size=2))
    shown = "".join(f' {key}="{escape(value)}"' for key, value in attributes.items())
    text = escape(draw(st.sampled_from(TEXTS)))
    children = draw(st.lists(documents(depth - 1), max_size=3)) if depth else []
    tail = escape(draw(st.sampled_from(TEXTS)))
    comment = draw(st.sampled_from(["", "", "<!--no--><?pi no?>"]))
    shown += draw(st.sampled_from(["", "", "", f' xmlns="{NAMESPACE}"', f' xmlns:p="{NAMESPACE}" p:k="2"']))
    return f"<{name}{shown}>{text}{comment}{''.join(children)}{tail}</{name}>"


def escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


@st.composite
def shapes(
    draw: st.DrawFn, source: str = "S", depth: int = 2, deep: bool = False
) -> tuple[Shape, tuple[str | float, ...]]:
    """A shape over one source, and constants for it; `deep`: with descendants, wildcards and namespaces."""
    counter = iter(range(1000))
    pattern = draw(patterns(counter, depth, deep))
    names = [name for node in pattern.walk() for name in node.variables]
    slots: list[Slot] = []
    constants: list[str | float] = []
    conditions = []
    for left in draw(st.lists(st.sampled_from(names), max_size=4)) if names else []:
        op = draw(st.sampled_from(OPERATORS))
        kind = draw(st.sampled_from(["string", "number", "number", "variable"]))
        if kind == "variable":
            conditions.append(Comparison(left, op, draw(st.sampled_from(names))))
            continue
        slots.append(Slot(len(slots), kind))
        constants.append(draw(st.sampled_from(NUMBERS if kind == "number" else TEXTS)))
        conditions.append(Comparison(left, op, slots[-1]))
    steps = {name: node.step for node in pattern.walk() for name in node.variables}
    shown = [name for name in names if not (steps[name].is_attribute and steps[name].name == "*")]
    chosen = draw(st.lists(st.sampled_from(shown), max_size=2, unique=True)) if shown else []
    output = tuple(VariableOutput(n, content=draw(st.booleans())) for n in chosen)
    if draw(st.booleans()):
        output = (ElementOutput("r", (), (TextOutput("t"), *output)),)
    return Shape((Block(Source(source), pattern),), tuple(conditions), output, tuple(slots)), tuple(constants)


@st.composite
def patterns(draw: st.DrawFn, counter, depth: int, deep: bool = False) -> PatternNode:  # type: ignore[no-untyped-def]
    children = draw(st.lists(patterns(counter, depth - 1, deep), max_size=2)) if depth else []
    if draw(st.integers(0, 3)) == 0:
        children.append(PatternNode(draw(steps(["k", "l"], "attribute", deep)), variables(draw, counter)))
    return PatternNode(draw(steps(NAMES, "child", deep)), variables(draw, counter), tuple(children))


@st.composite
def steps(draw: st.DrawFn, names: list[str], axis: str, deep: bool) -> Step:
    if not deep:
        return Step(draw(st.sampled_from(names)), axis)
    below = "descendant" if axis == "child" else "descendant-attribute"
    name, namespace = draw(st.sampled_from([*names, *names, "*"])), draw(st.sampled_from([None, None, "", NAMESPACE]))
    return Step(name, draw(st.sampled_from([axis, below])), namespace)


def variables(draw: st.DrawFn, counter) -> tuple[str, ...]:  # type: ignore[no-untyped-def]
    return (f"v{next(counter)}",) if draw(st.booleans()) else ()


def to_text(shape: Shape, constants: tuple[str | float, ...]) -> str:
    """A shape as an XML-QL query; every variable is bound to an element or attribute."""
    (block,) = shape.blocks
    conditions = [f", ${c.left} {c.op} {_operand(c.right, constants)}" for c in shape.conditions]
    output = ", ".join(_output(part) for part in shape.output) or "<none/>"
    return f"where {_pattern(block.pattern)} in '{block.source.name}'{''.join(conditions)} construct {output}"


def _operand(right: Slot | str, constants: tuple[str | float, ...]) -> str:
    if isinstance(right, str):
        return f"${right}"
    constant = constants[right.index]
    return f"'{constant}'" if isinstance(constant, str) else repr(constant)


def _pattern(node: PatternNode) -> str:
    attributes = [c for c in node.children if c.step.axis == "attribute"]
    shown = "".join(f" {c.step.name}=${(c.variables or ('unused' + c.step.name,))[0]}" for c in attributes[:1])
    inner = " ".join(_pattern(c) for c in node.children if c.step.axis == "child")
    named = f" element_as ${node.variables[0]}" if node.variables else ""
    return f"<{node.step.name}{shown}>{inner}</>{named}"


def _output(part) -> str:  # type: ignore[no-untyped-def]
    match part:
        case VariableOutput(name):
            return f"${name}"
        case TextOutput(text):
            return f'"{text}"'
    return f"<{part.tag}>{' '.join(_output(child) for child in part.children)}</{part.tag}>"


@st.composite
def feed_items(draw: st.DrawFn) -> str:
    """An item with few names and values, some repeated, some in groups: two items have much in common."""
    values = st.sampled_from(["", "1", "2", "x"])
    leaf = st.tuples(st.sampled_from(NAMES), values).map(lambda p: f"<{p[0]}>{p[1]}</{p[0]}>")
    group = st.tuples(st.sampled_from(["1", "x"]), st.lists(leaf, max_size=3)).map(
        lambda p: f"<g k='{p[0]}'>{''.join(p[1])}</g>"
    )
    each = [f"<{name}>{draw(values)}</{name}>" for name in NAMES] if draw(st.booleans()) else []
    more = draw(st.lists(leaf | group, max_size=2 if each else 5))
    return f"<r k='{draw(st.sampled_from(['1', '2']))}'>{''.join([*each, *more])}</r>"


@st.composite
def item_patterns(draw: st.DrawFn, side: str, deep: bool) -> PatternNode:
    """A pattern over such items in which every node has a variable."""
    counter = iter(range(100))
    axis = st.sampled_from(["child", "descendant"] if deep else ["child"])

    def node(name: str, kind: str, children: tuple[PatternNode, ...] = ()) -> PatternNode:
        return PatternNode(Step(name, kind), (f"{side}{next(counter)}",), children)

    def leaves(most: int) -> tuple[PatternNode, ...]:
        names = draw(st.lists(st.sampled_from([*NAMES, "@k"]), min_size=1, max_size=most))
        return tuple(node("k", "attribute") if n == "@k" else node(n, draw(axis)) for n in names)

    children = leaves(3)
    if draw(st.integers(0, 2)) == 0:
        children = (*children, node("g", draw(axis), leaves(2)))
    return node(draw(st.sampled_from(["r", "r", "r", "g"])) if deep else "r", draw(axis), children)


@st.composite
def joins(draw: st.DrawFn, sources: tuple[str, str] = ("S", "S"), deep: bool = False):  # type: ignore[no-untyped-def]
    """A join of two blocks and constants for it: edges between variables, often equalities alone, and a window."""
    plain = draw(st.booleans())
    sides = [draw(item_patterns(side, deep)) for side in ("x", "y")]
    ends = [[node.variables[0] for node in side.walk() if not node.children] for side in sides]
    every = [[node.variables[0] for node in side.walk()] for side in sides]
    slots: list[Slot] = []
    constants: list[str | float] = []
    conditions = []
    for _ in range(draw(st.integers(1, 3))):
        op = "=" if plain else draw(st.sampled_from(["=", "=", "=", *OPERATORS]))
        of = every if draw(st.integers(0, 5)) == 0 else ends
        conditions.append(Comparison(draw(st.sampled_from(of[0])), op, draw(st.sampled_from(of[1]))))
    for _ in range(0 if plain else draw(st.integers(0, 2))):
        kind = draw(st.sampled_from(["string", "number", "variable"]))
        own = ends[draw(st.integers(0, 1))]
        op = draw(st.sampled_from(OPERATORS))
        if kind == "variable":
            conditions.append(Comparison(draw(st.sampled_from(own)), op, draw(st.sampled_from(own))))
            continue
        slots.append(Slot(len(slots), kind))
        constants.append(draw(st.sampled_from([1.0, 2.0] if kind == "number" else ["", "1", "2", "x"])))
        conditions.append(Comparison(draw(st.sampled_from(own)), op, slots[-1]))
    slots.append(Slot(len(slots), "number"))
    constants.append(draw(st.sampled_from([0.0, 1.0, 2.0, 5.0, float("inf")])))
    strict = draw(st.booleans())
    windows = SideWindow(slots[-1]), SideWindow() if strict else SideWindow(slots[-1])
    shown = draw(st.lists(st.sampled_from([*every[0], *every[1]]), max_size=2, unique=True))
    blocks = tuple(Block(Source(s), p) for s, p in zip(sources, sides, strict=True))
    output = tuple(VariableOutput(name) for name in shown)
    return Shape(blocks, tuple(conditions), output, tuple(slots), windows, strict), tuple(constants)

"""Random tree patterns in the part of XPath that XSCL and lxml both support, and small documents for them."""

from __future__ import annotations

from tests import strategies as st

NAMES = ["a", "b", "*"]
DOWN = [
    "/", "/", "//", "/child::", "/descendant::", "//child::", "/descendant-or-self::", "/self::", "//self::",
    "/node()/", "/descendant-or-self::node()/",
]  # fmt: skip
COMPARED = ["", " = '1'", " != '1'"]
UP = ["/..", "/parent::", "/ancestor::", "/ancestor-or-self::"]
PARENTS = [
    "../b", "../@k", "../b = '1'", "../../a", "not(../b)", "not(../@k = '1')", "not(parent::a)", "not(self::b/a)",
    "not(self::b)", "not(parent::b/@k = '1')",
]  # fmt: skip
PLACES = ["[1]", "[2]", "[last()]", "[position() = 2]", "[3 = position()]", "[position() = last()]"]


@st.composite
def absolute_paths(draw: st.DrawFn, depth: int = 2) -> str:
    """A path from the document on, without the stream's name."""
    text = draw(first_steps(depth)) + "".join(draw(st.lists(steps(depth), max_size=2)))
    return text + (draw(ups(depth)) if draw(st.integers(0, 4)) == 0 else "")


@st.composite
def first_steps(draw: st.DrawFn, depth: int) -> str:
    return draw(st.sampled_from(["/", "//"])) + draw(st.sampled_from(NAMES)) + draw(predicates(depth))


@st.composite
def steps(draw: st.DrawFn, depth: int, negated: bool = False) -> str:
    axis = draw(st.sampled_from([*["/", "//"] * 3, *DOWN]))
    text = axis + draw(st.sampled_from(NAMES))
    if axis in ("/", "//", "/child::", "//child::") and draw(st.integers(0, 4)) == 0:
        text += draw(st.sampled_from(PLACES))
    return text + draw(predicates(depth, negated))


@st.composite
def ups(draw: st.DrawFn, depth: int) -> str:
    axis = draw(st.sampled_from(UP))
    return axis if axis == "/.." else axis + draw(st.sampled_from(NAMES)) + draw(predicates(depth))


@st.composite
def predicates(draw: st.DrawFn, depth: int, negated: bool = False) -> str:
    return f"[{draw(conditions(depth, negated))}]" if depth and draw(st.booleans()) else ""


@st.composite
def conditions(draw: st.DrawFn, depth: int, negated: bool = False) -> str:
    """Conditions of predicates: a path, a comparison, a condition on a text, or a combination with and, or, not."""
    kinds = ["path", "text", "leaf", "number", "paths", "function", "union", "and", "or", "not", "not", "parent", "up"]
    kind = draw(st.sampled_from(kinds[:-2] if negated else kinds))
    if kind in ("and", "or"):
        left, right = draw(conditions(depth - 1, negated)), draw(conditions(depth - 1, negated))
        return f"({left} {kind} {right})"
    if kind == "not":
        return f"not({draw(conditions(depth - 1, True))})"
    if kind == "up":
        return draw(st.sampled_from(["ancestor::", "ancestor-or-self::", "self::", "parent::"])) + draw(
            st.sampled_from(["a", "b", "*", "a/b", "a[@k = '1']", "b//a", "*[b]/@k"])
        )
    path = draw(relative_paths(depth - 1, negated))
    if kind == "parent":
        return draw(st.sampled_from(PARENTS))
    if kind == "text":
        return f"{path} {draw(st.sampled_from(['=', '!=']))} '{draw(st.sampled_from(['', '1', '12']))}'"
    if kind == "leaf":  # text() is the whole text of an element, as in XPath if it has no child elements
        return f".//{draw(st.sampled_from(NAMES))}[not(*)]/text(){draw(st.sampled_from(COMPARED))}"
    if kind == "number":
        return f"{path} {draw(st.sampled_from(['=', '<', '>=']))} {draw(st.sampled_from([1, 2]))}"
    if kind == "paths":
        return f"{path} {draw(st.sampled_from(['=', '!=', '<']))} {draw(relative_paths(0, True))}"
    if kind == "function":
        return (
            f"{draw(st.sampled_from(['contains', 'starts-with']))}(., '{draw(st.sampled_from(['1', '2', '21', '']))}')"
        )
    if kind == "union":
        return f"({path} | {draw(relative_paths(0, negated))} = '1')"
    return path


@st.composite
def relative_paths(draw: st.DrawFn, depth: int, negated: bool = False) -> str:
    if depth < 0 or draw(st.integers(0, 3)) == 0:
        return draw(st.sampled_from([".", "@k", ".//@k", "attribute::k"]))
    return "." + "".join(draw(st.lists(steps(depth, negated), min_size=1, max_size=2)))


@st.composite
def trees(draw: st.DrawFn, depth: int = 3) -> str:
    name, key = draw(st.sampled_from(["a", "b"])), draw(st.sampled_from(["", ' k="1"', ' k="2"']))
    inner = "".join(draw(st.lists(trees(depth - 1), max_size=3))) if depth else draw(st.sampled_from(["", "1", "2"]))
    return f"<{name}{key}>{inner}</{name}>"

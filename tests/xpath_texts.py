"""Random tree patterns in the part of XPath that XSCL and lxml both read, and small documents for them."""

from __future__ import annotations

from hypothesis import strategies as st

NAMES = ["a", "b", "*"]


@st.composite
def absolute_paths(draw: st.DrawFn, depth: int = 2) -> str:
    """A path from the document on, without the stream's name."""
    return "".join(draw(st.lists(steps(depth), min_size=1, max_size=3)))


@st.composite
def steps(draw: st.DrawFn, depth: int) -> str:
    text = draw(st.sampled_from(["/", "//"])) + draw(st.sampled_from(NAMES))
    if depth and draw(st.booleans()):
        text += f"[{draw(conditions(depth))}]"
    return text


@st.composite
def conditions(draw: st.DrawFn, depth: int) -> str:
    """What a predicate may say: a path, a comparison, and these under and, or, not."""
    kind = draw(st.sampled_from(["path", "text", "number", "paths", "and", "or", "not", "not"]))
    if kind in ("and", "or"):
        left, right = draw(conditions(depth - 1)), draw(conditions(depth - 1))
        return f"({left} {kind} {right})"
    if kind == "not":
        return f"not({draw(conditions(depth - 1))})"
    path = draw(relative_paths(depth - 1))
    if kind == "text":
        return f"{path} {draw(st.sampled_from(['=', '!=']))} '{draw(st.sampled_from(['', '1', '12']))}'"
    if kind == "number":
        return f"{path} {draw(st.sampled_from(['=', '<', '>=']))} {draw(st.sampled_from([1, 2]))}"
    if kind == "paths":
        return f"{path} {draw(st.sampled_from(['=', '!=', '<']))} {draw(relative_paths(0))}"
    return path


@st.composite
def relative_paths(draw: st.DrawFn, depth: int) -> str:
    if depth < 0 or draw(st.integers(0, 3)) == 0:
        return draw(st.sampled_from([".", "@k", ".//@k"]))
    return "." + "".join(draw(st.lists(steps(depth), min_size=1, max_size=2)))


@st.composite
def trees(draw: st.DrawFn, depth: int = 3) -> str:
    name, key = draw(st.sampled_from(["a", "b"])), draw(st.sampled_from(["", ' k="1"', ' k="2"']))
    inner = "".join(draw(st.lists(trees(depth - 1), max_size=3))) if depth else draw(st.sampled_from(["", "1", "2"]))
    return f"<{name}{key}>{inner}</{name}>"

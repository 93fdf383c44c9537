"""Views over views: their resolution, cycles, and constants that stay separate."""

from __future__ import annotations

import pytest
from hypothesis import given

from fishweir.algebra.feeds import (
    FeedJoin,
    FeedName,
    FeedQuery,
    FeedUnion,
    VariableCondition,
    join_filters,
)
from fishweir.algebra.formula import And, Atom, Formula, Not, Or
from fishweir.algebra.nodes import SideWindow, Slot, Step
from fishweir.algebra.views import Publication, Resolved, definitions, readers, resolve
from fishweir.errors import QueryError
from tests import strategies as st

TITLE = (Step("title"),)


def publication(names: list[str], word: str | None = None, joined: list[str] | None = None) -> Publication:
    """`from (names) as $x [join last item on joined ...] [where $x[title contains word]]`."""
    condition = VariableCondition("x", Atom(TITLE, "contains", Slot(0, "string")))
    joins = tuple(FeedJoin(SideWindow(rows=True), FeedName(name), "x", And()) for name in joined or [])
    main = FeedUnion(tuple(map(FeedName, names)), "x")
    return Publication(FeedQuery(main, joins, (condition,) if word else ()), (word,) if word else ())


def is_source(name: str) -> bool:
    return name.startswith("s")


def words(formula: Formula, resolved: Resolved) -> list[str]:
    """The words of a conjunction of `contains`, in order."""
    match formula:
        case Atom(right=Slot(index)):
            return [str(resolved.constants[index])]
        case And(parts) | Or(parts):
            return [word for part in parts for word in words(part, resolved)]
        case Not(part):
            return words(part, resolved)
    raise AssertionError(formula)


def shown(resolved: Resolved) -> list[tuple[str, list[str]]]:
    return [(str(f.source), words(f.formula, resolved)) for f in resolved.filters]


def test_conditions_of_all_levels() -> None:
    published = {
        "a": publication(["s1", "s2"], "one"),
        "b": publication(["a", "s3"], "two"),
        "c": publication(["b", "a", "b"], "three"),
    }
    find = definitions(published, is_source)
    assert shown(resolve("c", find)) == [
        ("s1", ["one", "two", "three"]),
        ("s2", ["one", "two", "three"]),
        ("s3", ["two", "three"]),
        ("s1", ["one", "three"]),
        ("s2", ["one", "three"]),
        ("s1", ["one", "two", "three"]),
        ("s2", ["one", "two", "three"]),
        ("s3", ["two", "three"]),
    ]


def test_a_view_is_resolved_once() -> None:
    memo: dict[str, Resolved] = {}
    published = {"a": publication(["s"], "one"), "b": publication(["a"])}
    resolve("b", definitions(published, is_source), memo)
    assert list(memo) == ["a", "b"]
    kept = memo["a"]
    resolve("a", definitions(published, is_source), memo)
    assert memo["a"] is kept


def test_depth_is_not_limited() -> None:
    published = {"v0": publication(["s"])} | {f"v{i}": publication([f"v{i - 1}"]) for i in range(1, 5000)}
    assert shown(resolve("v4999", definitions(published, is_source))) == [("s", [])]


def test_cycles_are_named() -> None:
    published = {"a": publication(["s", "b"]), "b": publication(["c"]), "c": publication(["s", "a"])}
    with pytest.raises(QueryError, match="the feeds read each other: b -> c -> a -> b"):
        resolve("b", definitions(published, is_source))
    published = {"o": publication(["a"]), "a": publication(["s"], joined=["a"])}
    with pytest.raises(QueryError, match="the feeds read each other: a -> a"):
        resolve("o", definitions(published, is_source))


def test_unknown_feeds_are_named() -> None:
    find = definitions({"a": publication(["s", "b"])}, is_source)
    with pytest.raises(QueryError, match="there is no feed 'b'"):
        resolve("a", find)
    with pytest.raises(QueryError, match="there is no feed 'x'"):
        resolve("x", find)
    with pytest.raises(QueryError, match="'s' is a source"):
        resolve("s", find)


def test_joins_are_resolved_with_filters() -> None:
    published = {
        "v": publication(["s2"], "zero"),
        "j": publication(["s1"], "one", joined=["v"]),
        "a": publication(["j", "s3"], "two", joined=["s4"]),
    }
    resolved = resolve("a", definitions(published, is_source))
    assert shown(resolved) == [("s1", ["one", "two"]), ("s3", ["two"])]
    assert [f.joins for f in resolved.filters] == [(0, 1), (0,)], "its own join, and that of the feed it reads"
    assert [[str(f.source) for f in join.filters] for join in resolved.joins] == [["s4"], ["s2"]]
    assert words(resolved.joins[1].filters[0].formula, resolved) == ["zero"]


def test_a_window_reads_the_published_items_of_a_feed_that_joins() -> None:
    """The same holds for a feed that only reads such a feed. As primary feeds, both are resolved to their sources."""
    published = {
        "j": publication(["s1"], joined=["s2"]),
        "v": publication(["j"]),
        "a": publication(["s3", "j"], joined=["j", "v", "s4"]),
    }
    resolved = resolve("a", definitions(published, is_source))
    assert [part.source.name for part in resolved.filters] == ["s3", "s1"]
    windows = [[part.source.name for part in join.filters] for join in resolved.joins]
    assert windows == [["j"], ["v"], ["s4"], ["s2"]]


def test_conditions_on_secondary_feeds() -> None:
    secondary = FeedUnion((FeedName("s2", "m"), FeedName("s3")))
    join = FeedJoin(SideWindow(), secondary, "x", And())
    condition = VariableCondition("m", Atom(TITLE, "exists"))
    query = FeedQuery(FeedName("s1", "x"), (join,), (condition,))
    assert [str(f.formula) for f in join_filters(query, join, lambda _: None)] == ["exists title", str(And())]
    assert resolve("q", definitions({"q": Publication(query)}, is_source)).filters[0].formula == And()


def test_doubling_is_refused() -> None:
    published = {"v0": publication(["s"])} | {f"v{i}": publication([f"v{i - 1}"] * 2) for i in range(1, 40)}
    with pytest.raises(QueryError, match="expands to 131,072 sources"):
        resolve("v39", definitions(published, is_source))


def test_readers_of_feeds() -> None:
    published = {"a": publication(["s"]), "b": publication(["a"]), "c": publication(["s"], joined=["b"])}
    assert readers("s", published) == {"a", "b", "c"}
    assert readers("b", published) == {"c"}
    assert readers("c", published) == set()


graphs = st.lists(st.lists(st.integers(0, 7), min_size=1, max_size=3), min_size=1, max_size=6)


@given(graphs)
def test_resolved_or_cyclic(graph: list[list[int]]) -> None:
    """Numbers outside the graph are sources. Either there is a cycle below v0, or its leaves are found."""
    published = {
        f"v{i}": publication([f"v{n}" if n < len(graph) else f"s{n}" for n in read], f"w{i}")
        for i, read in enumerate(graph)
    }

    def expand(i: int, above: tuple[int, ...]) -> list[tuple[str, list[str]]]:
        if i in above:
            raise RecursionError
        found = []
        for n in graph[i]:
            below = expand(n, (*above, i)) if n < len(graph) else [(f"s{n}", [])]
            found += [(source, [*inner, f"w{i}"]) for source, inner in below]
        return found

    try:
        expected = expand(0, ())
    except RecursionError:
        with pytest.raises(QueryError, match="read each other"):
            resolve("v0", definitions(published, is_source))
        return
    assert shown(resolve("v0", definitions(published, is_source))) == expected

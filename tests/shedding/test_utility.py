"""Pattern trees, shed queries and utilities: the figures of the paper."""

from __future__ import annotations

import pytest

from fishweir.algebra.nodes import CreateQuery
from fishweir.languages.script import parse_script
from fishweir.shedding.patterns import PatternTree, shed_queries, to_tree
from fishweir.shedding.utility import otherwise, unnamed, utilities

Q1 = """for $a in stream("transactions")/list/transaction where $a/order/price > 100
return $a//name, $a/contact/tel, $a/contact/email, $a/contact/addr, $a/order/items"""
FIGURE_7 = "v(name)=0.2, v(tel)=0.1, v(email)=0.1, v(addr)=0.05, v(price)=0.25, v(items)=0.2"


def query(text: str) -> CreateQuery:
    (statement,) = parse_script(text)
    assert isinstance(statement, CreateQuery)
    return statement


def tree_of(text: str) -> PatternTree:
    return to_tree(query(text).shape)  # type: ignore[arg-type]


def worth(text: str) -> dict[str, float]:
    statement = query(text)
    tree = to_tree(statement.shape)  # type: ignore[arg-type]
    found = utilities(tree, statement.preference)
    return {pattern.names[-1]: value for pattern, value in zip(tree.patterns, found.of, strict=True)}


def test_the_patterns_of_figure_2() -> None:
    tree = tree_of(Q1)
    roles = {pattern.names[-1]: (pattern.returned, pattern.selected) for pattern in tree.patterns}
    returned = dict.fromkeys(("name", "tel", "email", "addr", "items"), (True, False))
    assert roles == {**returned, "price": (False, True)}
    assert [step.name for step in tree.root] == ["list", "transaction"]


def test_figure_7() -> None:
    statement = query(f"{Q1} pref {FIGURE_7}")
    tree = to_tree(statement.shape)  # type: ignore[arg-type]
    found = utilities(tree, statement.preference)
    assert found.total(tree.full) == pytest.approx(0.9)
    assert found.normalized(tree.full) == pytest.approx(1.0)
    assert found.normalized(()) == 0
    without_contact = [i for i, pattern in enumerate(tree.patterns) if "contact" not in pattern.names]
    assert found.normalized(without_contact) == pytest.approx(0.65 / 0.9)


def test_ranked_patterns_are_worth_powers_of_one_half() -> None:
    """Section 4.2: name is worth 1/2, tel, the third, 1/2^3."""
    found = worth(f"{Q1} pref $a//name > $a/order/price > $a/contact/tel > items > email > addr")
    assert found == {"name": 1 / 2, "price": 1 / 4, "tel": 1 / 8, "items": 1 / 16, "email": 1 / 32, "addr": 1 / 64}


def test_patterns_without_preference() -> None:
    """Leaves are the least / 2^w, a parent is the sum of its children (section 4.3)."""
    found = worth("for $a in stream('S')/t return $a/x, $a/y, $a/p, $a/p/q, $a/p/r pref v(x) = 0.4, v(q) = 0.2")
    assert found == {"x": 0.4, "q": 0.2, "y": 0.05, "r": 0.05, "p": 0.25}
    assert worth("for $a in stream('S')/t return $a/x, $a/y") == {"x": 0.25, "y": 0.25}


def test_names_that_are_not_patterns() -> None:
    statement = query(f"{Q1} pref v(name) = 0.5, v(nothing) = 0.4")
    assert statement.preference is not None
    assert unnamed(to_tree(statement.shape), statement.preference) == [("nothing",)]  # type: ignore[arg-type]


def test_values_of_documents() -> None:
    statement = query(f"{Q1} pref v(order[price > 1000]) = 0.9, v(order[price > 500]) = 0.5")
    assert statement.preference is not None
    assert otherwise(statement.preference.by_value) == 0.25


def test_shed_queries_are_valid_and_between_b_and_2_to_the_b() -> None:
    flat = tree_of(Q1)
    assert len(shed_queries(flat)) == 2 ** len(flat.patterns)
    deep = tree_of("for $a in stream('S')/t return $a/x, $a/x/y, $a/x/y/z, $a/x/y/z/w")
    assert [len(kept) for kept in shed_queries(deep)] == [4, 3, 2, 1, 0]
    mixed = tree_of("for $a in stream('S')/t return $a/x, $a/x/y, $a/x/z, $a/w")
    queries = shed_queries(mixed)
    assert len(mixed.patterns) <= len(queries) - 1 < 2 ** len(mixed.patterns)
    for kept in queries:
        for i in kept:
            assert mixed.patterns[i].parent in (-1, *kept)
    assert queries[0] == mixed.full
    assert queries[-1] == frozenset()
    assert len(set(queries)) == len(queries)


def test_trees_of_other_languages() -> None:
    assert {str(p) for p in tree_of("select name, price from R where price > 5 and volume > 3").patterns} == {
        "name",
        "price",
        "volume",
    }
    xscl = tree_of("select x, y from S//book[author->x and title->y][price < 20]")
    assert {str(p) for p in xscl.patterns} == {"book/author", "book/title", "book/price"}
    nested = tree_of("for $a in stream('S')/t return <r>{for $b in $a/o where $b/p > 1 return $b/q}</r>")
    assert [str(p) for p in nested.patterns] == ["t/o/q"]

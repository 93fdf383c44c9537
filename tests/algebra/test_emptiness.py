"""No tuple satisfies a formula that is called empty, and two comparisons that exclude each other are recognized."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given

from fishweir.algebra.documents import tuple_to_document
from fishweir.algebra.emptiness import emptiness_of
from fishweir.algebra.formula import And, Atom, Not, Or
from fishweir.algebra.nodes import OPERATORS, Slot, Step
from fishweir.algebra.oracle import item_holds
from tests import strategies as st

X, Y = (Step("x"),), (Step("y"),)
CONSTANTS = [0.0, 1.0, 2.0, "a", "b"]
VALUES = [None, "-1", "0", "0.5", "1", "1.5", "2", "3", "", "a", "aa", "b", "c"]
ROOTS = [tuple_to_document("R", {"x": x, "y": y}) for x in VALUES for y in VALUES]

numbers = st.builds(lambda path, op, i: Atom(path, op, Slot(i, "number")), st.just(X), st.sampled_from(OPERATORS),
                    st.integers(0, 2))  # fmt: skip
texts = st.builds(lambda path, op, i: Atom(path, op, Slot(i, "string")), st.sampled_from([X, Y]),
                  st.sampled_from(OPERATORS), st.integers(3, 4))  # fmt: skip
others = st.sampled_from([Atom(X, "exists"), Not(Atom(X, "exists")), Atom(X, "<", Y), Atom(X, "=", Y)])
formulas = st.recursive(
    numbers | texts | others,
    lambda inner: st.lists(inner, max_size=3).map(tuple).flatmap(lambda some: st.sampled_from([And(some), Or(some)])),
    max_leaves=6,
)


def satisfiable(formula) -> bool:
    return any(item_holds(formula, CONSTANTS, root, columns=True) for root in ROOTS)


def is_empty(formula) -> bool:
    emptiness = emptiness_of(formula)
    return emptiness is not None and emptiness.of(CONSTANTS) is not None


@st.examples(150)
@given(formulas)
def test_nothing_satisfies_an_empty_formula(formula):
    assert not (is_empty(formula) and satisfiable(formula))


@st.examples(150)
@given(st.lists(numbers, min_size=1, max_size=4))
def test_two_conditions_that_exclude_each_other_are_recognised(atoms):
    exclude = any(not satisfiable(And(pair)) for pair in combinations(atoms, 2))
    assert is_empty(And(tuple(atoms))) == exclude

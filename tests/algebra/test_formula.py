"""Normal forms mean the same as the formula, for every assignment of its atoms."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given

from fishweir.algebra.formula import And, Atom, Formula, Not, Or, to_cnf, to_dnf
from fishweir.algebra.nodes import Slot, Step
from fishweir.errors import QueryError
from tests import strategies as st

ATOMS = [Atom((Step(name),), "contains", Slot(i, "string")) for i, name in enumerate("abcd")]

formulas = st.recursive(
    st.sampled_from(ATOMS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda parts: And(tuple(parts))),
        st.lists(inner, max_size=3).map(lambda parts: Or(tuple(parts))),
        inner.map(Not),
    ),
    max_leaves=8,
)


def holds(formula: Formula, true: set[Atom]) -> bool:
    match formula:
        case Atom():
            return formula in true
        case And(parts):
            return all(holds(part, true) for part in parts)
        case Or(parts):
            return any(holds(part, true) for part in parts)
        case Not(part):
            return not holds(part, true)


@given(formulas)
def test_normal_forms_mean_the_same(formula):
    dnf, cnf = to_dnf(formula, 10_000), to_cnf(formula, 10_000)
    for values in product([False, True], repeat=len(ATOMS)):
        true = {atom for atom, value in zip(ATOMS, values, strict=True) if value}
        expected = holds(formula, true)
        assert any(all((x.atom in true) == x.positive for x in clause) for clause in dnf) == expected
        assert all(any((x.atom in true) == x.positive for x in clause) for clause in cnf) == expected


def test_no_clause_contains_another():
    a, b, c, _ = ATOMS
    assert to_dnf(Or((a, And((a, b)), And((c, Not(c)))))) == to_dnf(a)


def test_an_explosion_is_refused():
    pairs = [Or((Atom((Step(f"x{i}"),), "exists"), Atom((Step(f"y{i}"),), "exists"))) for i in range(12)]
    with pytest.raises(QueryError, match="more than 256 alternatives"):
        to_dnf(And(tuple(pairs)))
    assert len(to_cnf(And(tuple(pairs)))) == 12

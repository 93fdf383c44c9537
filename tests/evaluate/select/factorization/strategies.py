"""Random predicates and selectivities for the property tests."""

from __future__ import annotations

from fishweir.evaluate.select.factorization.cost import independent
from tests import strategies as st

ATOMS = 7


def predicates(max_size: int, longest: int = 4, atoms: int = ATOMS):
    """Predicates, including duplicates and `true`."""
    return st.lists(st.frozensets(st.integers(0, atoms - 1), max_size=longest), max_size=max_size)


def from_sample(documents):
    """Selectivity as the share of some documents: correlated atoms, many ties, zeros."""

    def selectivity(predicate):
        return sum(predicate <= d for d in documents) / len(documents)

    return selectivity


independents = st.lists(st.floats(0, 1) | st.sampled_from([0.0, 0.1, 0.5, 1.0]), min_size=ATOMS, max_size=ATOMS).map(
    independent
)
samples = st.lists(st.frozensets(st.integers(0, ATOMS - 1)), min_size=1, max_size=12).map(from_sample)
selectivities = independents | samples
truths = st.frozensets(st.integers(0, ATOMS - 1))

"""Generates predicates like the RoSeS experiments (section 6), for tests and benchmarks.

In: numbers of predicates and keywords, a random generator. Out: predicates, and the selectivities of their atoms. A
keyword is drawn in proportion to its document frequency, which is also its selectivity. The paper took about 200
keywords of real feeds. Here the frequencies follow Zipf's law, so the figures are comparable in shape, not in exact
numbers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fishweir.evaluate.select.factorization.cost import Predicate

Floats = NDArray[np.float64]
CHUNK = 10_000


def keyword_frequencies(keywords: int = 200, top: float = 0.1, exponent: float = 1.0) -> Floats:
    """Document frequencies by keyword: `top` for the first, decreasing with the rank."""
    return top / np.arange(1, keywords + 1, dtype=np.float64) ** exponent


def keyword_predicates(
    n: int, keywords: Floats, rng: np.random.Generator, shortest: int = 1, longest: int = 3
) -> list[Predicate]:
    """Experiment I: conjunctions of `shortest` to `longest` different keywords; duplicates are possible."""
    predicates: list[Predicate] = []
    for start in range(0, n, CHUNK):
        size = min(CHUNK, n - start)
        lengths = rng.integers(shortest, longest + 1, size)
        # The smallest exponential waiting times are a weighted draw without replacement.
        waits = rng.exponential(size=(size, len(keywords))) / keywords
        drawn = np.argsort(waits, axis=1)[:, :longest].tolist()
        predicates += [frozenset(row[:k]) for row, k in zip(drawn, lengths.tolist(), strict=True)]
    return predicates


def cnf_predicates(
    n: int,
    keywords: Floats,
    rng: np.random.Generator,
    conjuncts: tuple[int, int] = (1, 5),
    disjuncts: tuple[int, int] = (1, 5),
) -> tuple[list[Predicate], Floats]:
    """Experiment II: conjunctions of disjunctions of keywords; each distinct disjunction is one atom.

    Returns the predicates and the selectivity of each atom.
    """
    lengths = rng.integers(conjuncts[0], conjuncts[1] + 1, n).tolist()
    drawn = keyword_predicates(sum(lengths), keywords, rng, *disjuncts)
    number: dict[Predicate, int] = {}
    atoms = iter([number.setdefault(disjunction, len(number)) for disjunction in drawn])
    predicates = [frozenset(next(atoms) for _ in range(k)) for k in lengths]
    return predicates, np.array([1.0 - np.prod(1.0 - keywords[list(words)]) for words in number])

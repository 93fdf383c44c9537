"""Random shedding (utility-driven shedding, section 6.2): the original query for as many elements as fit.

Relational systems do this: they drop whole elements, whatever their value.
"""

from __future__ import annotations

from collections.abc import Sequence

from fishweir.shedding.problem import Candidate, Choice


def random_shed(candidates: Sequence[Candidate], elements: int, budget: float) -> Choice:
    """The choice of random shedding; the first candidate is the original query."""
    original = candidates[0]
    fit = elements if original.cost <= 0 else int(budget / original.cost + 1e-9)
    counts = [0] * len(candidates)
    counts[0] = min(fit, elements)
    return Choice(tuple(counts), elements - counts[0])

"""OptShed (utility-driven shedding, section 5.3): the best choice, by dynamic programming over cost and elements.

In: candidates with integer costs, the number of arrived elements, the budget. Out: the choice with the greatest
utility. The paper's recursion is over the cost alone. Its problem also requires that a choice takes no more elements
than there are (equation 9), so the number of elements is a second dimension here: best[m][c] is the greatest utility of
at most m elements at a cost of at most c. Time and memory grow with elements times budget, which is why the job uses
FastShed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fishweir.shedding.problem import Candidate, Choice


def opt_shed(candidates: Sequence[Candidate], elements: int, budget: int) -> Choice:
    costs = [int(one.cost) for one in candidates]
    best = np.zeros(budget + 1)
    chosen = np.full((elements, budget + 1), -1, np.int32)
    for element in range(elements):
        taken = best.copy()
        for number, (one, cost) in enumerate(zip(candidates, costs, strict=True)):
            if cost > budget:
                continue
            better = best[: budget + 1 - cost] + one.utility
            improved = better > taken[cost:]
            taken[cost:][improved] = better[improved]
            chosen[element, cost:][improved] = number
        if np.array_equal(taken, best):
            chosen = chosen[:element]
            break
        best = taken
    counts, left = [0] * len(candidates), budget
    for row in chosen[::-1]:
        number = int(row[left])
        if number >= 0:
            counts[number] += 1
            left -= costs[number]
    return Choice(tuple(counts), elements - sum(counts))

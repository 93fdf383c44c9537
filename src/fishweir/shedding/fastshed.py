"""FastShed (utility-driven shedding, section 5.4, algorithm 1): greedy, by the utility of each candidate alone.

If a candidate is faster than the arrival rate, it reaches its utility times that rate, not times its speed:

    gamma = utility * min(arrival rate, 1 / cost)

Candidates are taken in the order of gamma, each for as many elements as are left and fit into the budget.
"""

from __future__ import annotations

from collections.abc import Sequence

from fishweir.shedding.problem import Candidate, Choice


def fast_shed(candidates: Sequence[Candidate], elements: int, budget: float) -> Choice:
    rate = elements / budget if budget > 0 else 0.0
    order = sorted(range(len(candidates)), key=lambda i: -reached(candidates[i], rate))
    counts, left, room = [0] * len(candidates), elements, budget
    for i in order:
        fit = left if candidates[i].cost <= 0 else int(room / candidates[i].cost + 1e-9)
        counts[i] = min(fit, left)
        room -= counts[i] * candidates[i].cost
        left -= counts[i]
        if room <= 0 or left <= 0:
            break
    return Choice(tuple(counts), left)


def reached(candidate: Candidate, rate: float) -> float:
    """The utility per time that a candidate reaches by itself."""
    return candidate.utility * (min(rate, 1 / candidate.cost) if candidate.cost > 0 else rate)

"""OptShed, FastShed and Random: the paper's worked examples, and OptShed against brute force."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import pytest

from fishweir.shedding.fastshed import fast_shed, reached
from fishweir.shedding.optshed import opt_shed
from fishweir.shedding.problem import Candidate, Choice
from fishweir.shedding.random_shed import random_shed


def candidates(*pairs: tuple[float, float]) -> list[Candidate]:
    return [Candidate(*pair) for pair in pairs]


def test_eighty_milliseconds() -> None:
    """Section 5.2: with Q2 and Q3 for an element each, the utility is 1.5; with two shed queries only, 1.2."""
    three = candidates((1, 55), (0.9, 45), (0.6, 30))
    best = opt_shed(three, 3, 80)
    assert best == Choice((0, 1, 1), 1)
    assert best.utility(three) == pytest.approx(1.5)
    assert random_shed(three, 3, 80).utility(three) == 1


def test_thirty_elements_a_second() -> None:
    """Section 5.4: Q2 reaches 27, since there are not more than 30 elements."""
    four = candidates((1, 40), (0.9, 25), (0.8, 20), (0.7, 50))
    assert [round(reached(one, 0.03) * 1000, 6) for one in four] == [25, 27, 24, 14]
    chosen = fast_shed(four, 30, 1000)
    assert chosen == Choice((0, 30, 0, 0), 0)
    assert chosen.utility(four) == pytest.approx(27)
    best = opt_shed(four, 30, 1000)
    assert best.utility(four) >= 27
    assert best.cost(four) <= 1000


def test_optshed_equals_brute_force() -> None:
    draw = random.Random(11)
    for _ in range(60):
        some = candidates(*((draw.random(), draw.randrange(1, 9)) for _ in range(draw.randrange(1, 5))))
        elements, budget = draw.randrange(1, 7), draw.randrange(0, 25)
        best = opt_shed(some, elements, budget)
        assert sum(best.counts) + best.dropped == elements
        assert best.cost(some) <= budget
        most = max(choice.utility(some) for choice in all_choices(some, elements, budget))
        assert best.utility(some) == pytest.approx(most)
        for shed in (fast_shed, random_shed):
            other = shed(some, elements, budget)
            assert other.cost(some) <= budget
            assert sum(other.counts) + other.dropped == elements
            assert other.utility(some) <= most + 1e-9


def test_below_capacity_nothing_is_lost() -> None:
    some = candidates((1, 10), (0.9, 5), (0.5, 2))
    for shed in (opt_shed, fast_shed, random_shed):
        assert shed(some, 8, 100) == Choice((8, 0, 0), 0)


def all_choices(some: Sequence[Candidate], elements: int, budget: float) -> Iterator[Choice]:
    def counts(number: int, left: int, room: float) -> Iterator[tuple[int, ...]]:
        if number == len(some):
            yield ()
            return
        for n in range(left + 1):
            if n * some[number].cost <= room:
                for rest in counts(number + 1, left - n, room - n * some[number].cost):
                    yield (n, *rest)

    for found in counts(0, elements, budget):
        yield Choice(found, elements - sum(found))

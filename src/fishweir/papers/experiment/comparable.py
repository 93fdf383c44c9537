"""Compares two runs of an experiment: gives each measured time a name that is the same in both runs.

In: the figures of a run, of any class. The `point()` of a figure returns the figure it belongs to, its position on the
x axis, and the answers found there. Out: rows for the JSON file, which `scripts/compare-bench` reads. The names contain
nothing that depends on the run: no time, and no size that was chosen by time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

TIMES = {
    "seconds": "",
    "seconds_per_tuple": "",
    "match_seconds": ", matching",
    "cold_seconds": ", first time",
    "first_seconds": ", first time",
    "expand_seconds": ", expanding",
    "register_seconds": ", registration",
    "build_seconds": ", registration",
}
"""The measured fields of all classes of figures, and the suffix that each adds to the contestant's name."""


@dataclass(frozen=True)
class Comparable:
    """One time. `answers` is what was found, the same in every run over the same data."""

    figure: str
    series: str
    x: float
    seconds: float
    answers: float | None


class MeasuredFigure(Protocol):
    @property
    def contestant(self) -> str: ...

    def point(self) -> tuple[str, float, float | None]:
        """The figure, x, and the answers found."""
        ...


def comparable(figures: Iterable[MeasuredFigure]) -> list[Comparable]:
    rows = []
    for one in figures:
        figure, x, answers = one.point()
        for name, words in TIMES.items():
            seconds = getattr(one, name, None)
            if seconds is not None:
                rows.append(Comparable(figure, one.contestant + words, x, seconds, answers))
    return rows

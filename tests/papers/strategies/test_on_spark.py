"""The published strategies on Spark: one of each kind in the same job, with the default's results.

A Spark job takes seconds to start and for each micro-batch, so the histories of all kinds are played at once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain, zip_longest
from pathlib import Path

import pytest

from fishweir.papers.strategies import OFFERED
from tests.papers.strategies import test_filters, test_joins, test_selections, test_window_joins
from tests.papers.strategies.support import REOPEN, Event, Execute, Publish, Together, inline, on_spark, play

pytest.importorskip("duckdb")

HISTORIES = {
    "joins": test_joins.history,
    "filters": test_filters.history,
    "selections": test_selections.history,
    "window-joins": test_window_joins.history,
}
ROUNDS = [
    {kind: name for kind, name in zip(OFFERED, names, strict=True) if name} for names in zip_longest(*OFFERED.values())
]
_NAMES = re.compile(r"\b(R|S|T|News|[fq]\d+)\b")


def renamed(event: Event, kind: str) -> Event:
    """Gives each kind its own streams and queries."""
    before = kind.replace("-", "_") + "_"
    match event:
        case Execute(script):
            return Execute(_NAMES.sub(rf"{before}\1", script))
        case Publish(stream, items, timestamps):
            return Publish(before + stream, items, timestamps)
        case Together(publications):
            return Together([Publish(before + one.stream, one.items, one.timestamps) for one in publications])
    return event


def publications(event: Event) -> Sequence[Publish]:
    match event:
        case Publish():
            return [event]
        case Together(together):
            return together
    return []


def parts(history: list[Event]) -> list[list[Event]]:
    """Splits a history where the weir is reopened."""
    found: list[list[Event]] = [[]]
    for event in history:
        if event == REOPEN:
            found.append([])
        else:
            found[-1].append(event)
    return found


def all_kinds(seed: int) -> list[Event]:
    """The histories at once: in each part first all statements, then the first publication of every kind, and so on."""
    cut = [parts([renamed(event, kind) for event in history(seed)]) for kind, history in HISTORIES.items()]
    whole: list[Event] = []
    for part in zip(*cut, strict=True):
        statements = [event for events in part for event in events if isinstance(event, Execute)]
        published = [[together for event in events if (together := publications(event))] for events in part]
        batches = [Together([*chain(*batch)]) for batch in zip_longest(*published, fillvalue=())]
        whole += [*([REOPEN] if whole else []), *statements, *batches]
    return whole


def test_every_strategy_is_tested() -> None:
    assert OFFERED.keys() == HISTORIES.keys()
    ran = {(kind, name) for chosen in ROUNDS for kind, name in chosen.items()}
    assert ran == {(kind, name) for kind, names in OFFERED.items() for name in names}


@pytest.mark.parametrize("chosen", ROUNDS, ids=lambda chosen: "+".join(chosen.values()))
def test_results_match_the_default(chosen: dict[str, str], tmp_path: Path, spark) -> None:  # type: ignore[no-untyped-def]
    expected = play(inline(tmp_path / "default", {}), all_kinds(7))
    kinds = {result["query"].rpartition("_")[0].replace("_", "-") for result in expected}
    assert kinds == HISTORIES.keys(), "each kind has results"
    assert play(on_spark(tmp_path / "spark", chosen, spark), all_kinds(7)) == expected

"""Reading entries together gives the same results as reading them one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fishweir import testing
from fishweir.pipeline import chunks

ORDINARY = [f"<item><title>word{i % 7} Ünï {i}</title><n>{i}</n></item>" for i in range(80)]
ODD = [*ORDINARY[:40], '<!DOCTYPE item [<!ENTITY e "word3">]><item><title>&e;</title></item>', "<item>", *ORDINARY[40:]]


def found(home: Path, documents: list[str], times: list[float] | None) -> tuple[list[Any], list[Any]]:
    """All results with their times, and the documents set aside."""
    weir = testing.open(home, clock=testing.Clock(5.0))
    with weir:
        weir.execute("""
            create stream S;
            create query three as select title, n from S where title contains 'word3';
            create query few as select n from S where n < 20;
        """)
        weir.publish("S", documents, times)
        while weir.step():
            continue
        results = [
            (r.query, r.documents, r.timestamp, r.output) for name in ("three", "few") for r in weir.results(name)
        ]
        aside = [row for commit in weir.table.commits() for row in weir.table.aside(commit).to_pylist()]
    return results, aside


@pytest.mark.parametrize("documents", [ORDINARY, ODD])
@pytest.mark.parametrize("timed", [False, True])
def test_reading_together_matches_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, documents: list[str], timed: bool
) -> None:
    times = [1.5 * i for i in range(len(documents))] if timed else None
    monkeypatch.setattr(chunks, "TOGETHER", 10**9)
    alone = found(tmp_path / "alone", documents, times)
    monkeypatch.setattr(chunks, "TOGETHER", 1)
    together = found(tmp_path / "together", documents, times)
    assert together == alone
    assert len(alone[0]) >= 31
    assert len(alone[1]) == (documents is ODD)

"""The stages of a micro-batch: one part and several give the same results, and values are counted from time to time."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from fishweir import testing
from fishweir.pipeline import stages
from fishweir.pipeline.parts import Parts
from fishweir.pipeline.stages import COUNT_EVERY, COUNTED, Counting

QUERIES = """
create stream R (k int, v int);
create stream T (k int);
create query s as select v from R where v > 50;
create query j as select R.v from R [range 100 seconds], T [range 100 seconds] where R.k = T.k;
"""
STREAMS = """
create stream R (k int, v int, at double) timestamp at late by 1 hour;
create stream T (k int, at double) timestamp at late by 1 hour;
"""
WINDOW = (
    "create query $name as select R.v from R [range $window seconds], T [range $window seconds] "
    "where R.k = T.k and R.v >= 5"
)


def results(home: Path, parallelism: int) -> tuple[list[tuple[str, tuple[str, ...]]], set[str]]:
    with testing.open(home, parallelism=parallelism) as weir:
        weir.execute(QUERIES)
        for step in range(3):
            rows = [{"k": (7 * i + step) % 40, "v": i} for i in range(100)]
            weir.publish_together([
                ("R", rows, [100.0 * step + i for i in range(100)]),
                ("T", [{"k": row["k"]} for row in rows], [100.0 * step + i for i in range(100)]),
            ])  # fmt: skip
            while weir.step():
                pass
        files = {name for commit in weir.table.commits() for name in commit.files}
        return sorted((result.query, tuple(result.documents)) for result in weir.results()), files


def test_one_part_and_several_have_the_same_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Parts, "count", lambda self, entries, most: most)
    one, files = results(tmp_path / "one", 1)
    assert files == {f"{stage}-{batch:09d}-00000.arrow" for stage in ("match", "probe") for batch in range(3)}
    several, files = results(tmp_path / "several", 3)
    assert "probe-000000002-00002.arrow" in files
    assert one == several
    assert {query for query, _ in one} == {"s", "j"}


def test_values_are_counted_from_time_to_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_000.0
    monkeypatch.setattr(stages.time, "monotonic", lambda: now)
    counting = Counting()
    assert all(counting() for _ in range(COUNTED))
    assert not counting()
    now += COUNT_EVERY
    assert [counting(), counting()] == [True, False]


def test_window_joins_equal_the_oracle_over_restarts(tmp_path: Path) -> None:
    """Both streams of a micro-batch become one state, whichever of them have entries: in order, late, repeated, and
    with the job opened again in between."""
    pick, at, found = random.Random(5), 0.0, set[tuple[str, ...]]()
    rows: dict[str, list[tuple[dict[str, int], float]]] = {"R": [], "T": []}
    for step, streams in enumerate(["RT", "R", "T", "", "TR", "RT", "RTR"]):
        with testing.open(tmp_path / "home") as weir:
            if not step:
                weir.execute(STREAMS)
                weir.register_many(WINDOW, [{"name": f"w{window}", "window": window} for window in (30, 7)])
            for stream in streams:
                times = [at + pick.choice([0, 1, 2, -40]) + i for i in range(pick.choice([1, 80]))]
                new = [
                    {"k": pick.randint(0, 20), **({"v": pick.randint(0, 9)} if stream == "R" else {})} for _ in times
                ]
                weir.publish(stream, new, times)
                rows[stream] += zip(new, times, strict=True)
            at += 20
            while weir.step():
                pass
            found = {(result.query, *sorted(result.documents)) for result in weir.results()}
            assert len(found) == len(list(weir.results())), "each result once"
    wanted = {
        (f"w{window}", f"R-{i}", f"T-{j}")
        for window in (30, 7)
        for i, (r, t) in enumerate(rows["R"], 1)
        for j, (s, u) in enumerate(rows["T"], 1)
        if r["k"] == s["k"] and r["v"] >= 5 and abs(t - u) <= window
    }
    assert found == wanted
    assert len(wanted) > 100

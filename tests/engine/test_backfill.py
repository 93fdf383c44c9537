"""A query whose start is in the past has all results since then, each once."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from fishweir import testing
from fishweir.engine import backfill_run
from fishweir.engine.backfill_run import JobSnapshot
from fishweir.engine.weir import Weir


@pytest.fixture
def clock() -> testing.Clock:
    return testing.Clock(1_000.0)


@pytest.fixture
def timed(tmp_path: Path, clock: testing.Clock, monkeypatch: pytest.MonkeyPatch) -> testing.Weir:
    monkeypatch.chdir(tmp_path)
    weir = testing.open(tmp_path / "home", clock=clock)
    weir.execute("create stream R (x int); create stream S")
    return weir


def arrive(weir: Weir, clock: testing.Clock, *values: int) -> None:
    for x in values:
        clock.advance(10)
        weir.publish("R", [{"x": x}])


def values(weir: Weir, name: str) -> list[int]:
    return [result.output["x"] for result in weir.results(name)]  # type: ignore[index]


LATER = "create query late as select x from R where x > 2 start '1970-01-01T00:17:00Z'"  # 1,020 seconds


@pytest.mark.parametrize("before", [0, 2, 4])
def test_results_since_the_start_and_then_live(timed: testing.Weir, clock: testing.Clock, before: int) -> None:
    """Regardless of how much had been evaluated when the query was registered."""
    some = (5, 1, 6, 7)  # they arrive at 1,010 to 1,040
    arrive(timed, clock, *some[:before])
    timed.run(until_idle=True)
    arrive(timed, clock, *some[before:])
    timed.execute(LATER)
    timed.run(until_idle=True)
    arrive(timed, clock, 8, 2)
    timed.run(until_idle=True)
    expected = [6, 7, 8] if before else [5, 6, 7, 8]  # what waits is evaluated with the query, whenever it arrived
    assert sorted(values(timed, "late")) == expected


def test_restarts_repeat_no_result(timed: testing.Weir, clock: testing.Clock, tmp_path: Path) -> None:
    arrive(timed, clock, 5, 6, 7)
    timed.run(until_idle=True)
    timed.execute(LATER)
    for x in (8, 9):
        timed.step()
        timed.close()
        timed = testing.open(tmp_path / "home", clock=clock)
        arrive(timed, clock, x)
        timed.run(until_idle=True)
    assert values(timed, "late") == [6, 7, 8, 9]
    timed.execute("create query other as select x from R where x > 2")
    timed.run(until_idle=True)
    assert values(timed, "late") == [6, 7, 8, 9]
    assert values(timed, "other") == []
    timed.close()


@pytest.mark.parametrize("text", ["select x from R where x > 2", "R->a FOLLOWED BY{a/x < b/x, 1 hour} R->b"])
def test_queries_whose_backfills_differ_in_progress(
    timed: testing.Weir, clock: testing.Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """After a restart, the second query is not taken for as far as the first, though both begin and end alike."""
    monkeypatch.setattr(backfill_run, "ENTRIES_PER_STEP", 2)
    arrive(timed, clock, 3, 5, 6, 7, 8)
    timed.run(until_idle=True)
    timed.execute(f"create query one as {text} start '1970-01-01'")
    timed.step()
    timed.step()
    timed.execute(f"create query two as {text} start '1970-01-01'")
    timed.close()
    with testing.open(tmp_path / "home", clock=clock) as again:
        again.run(until_idle=True)
        one, two = (sorted(result.documents for result in again.results(name)) for name in ("one", "two"))
    assert one == two
    assert len(one) >= 5


def test_actions_get_backfilled_results(timed: testing.Weir, clock: testing.Clock) -> None:
    arrive(timed, clock, 5, 6)
    timed.run(until_idle=True)
    timed.execute(f"{LATER} do append 'late.jsonl'")
    timed.run(until_idle=True)
    arrive(timed, clock, 7)
    timed.run(until_idle=True)
    assert len(Path("late.jsonl").read_text().splitlines()) == 2


def test_documents_of_every_kind(timed: testing.Weir, clock: testing.Clock) -> None:
    timed.publish("S", ["<a><k>1</k></a>", "<a><k>2</k></a>"])
    timed.run(until_idle=True)
    clock.advance(100)
    timed.execute("""
        create path where <a><k>$k</></> in S construct $k start '1970-01-01';
        create query tree as S//a[k = '2'] start '1970-01-01';
        create query words as from S as $s where $s[k contains '1'] start '1970-01-01';
    """)
    timed.run(until_idle=True)
    found = {name: [result.documents for result in timed.results(name)] for name in ("path", "tree", "words")}
    assert found == {"path": [["S-1"], ["S-2"]], "tree": [["S-2"]], "words": [["S-1"]]}


def test_backfill_while_the_job_runs(spark_weir: Weir) -> None:
    spark_weir.execute("create stream R (x int)")
    spark_weir.publish("R", [{"x": x} for x in range(10)])
    spark_weir.run(until_idle=True)
    spark_weir.execute("create query late as select x from R where x > 5 start '2020-01-01'")
    spark_weir.publish("R", [{"x": 10}])
    spark_weir.run(until_idle=True)
    assert sorted(values(spark_weir, "late")) == [6, 7, 8, 9, 10]


def test_a_run_knows_streams_that_are_newer_than_the_last_micro_batch(tmp_path: Path) -> None:
    """Otherwise, their watermarks would be those of ordinary streams."""
    with testing.open(tmp_path / "home") as weir:
        weir.execute("create stream R (x int); create query q as select x from R")
        runner = weir._new_runner(threading.Event(), weir._new_rebuilder())
        weir.publish("R", [{"x": 1}])
        assert runner.job.step()
        weir.execute("create query P as select x from R publish P; create query Pr as select x from P")
        published, _ = weir.catalog.streams()["P"]
        for with_plan in (False, True):
            assert published in JobSnapshot.of(runner.batches, weir.catalog.version(), with_plan).published

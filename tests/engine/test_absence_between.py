"""`NOT FOLLOWED BY`: what changes between two micro-batches, in backfills and in published streams."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fishweir import testing
from fishweir.engine import backfill_run
from fishweir.engine.absences import Absences
from fishweir.engine.weir import Weir
from fishweir.pipeline.commits import Commit, ResultsTable
from tests.engine.test_absence import declare, document, found

BEATS = "beats->x NOT FOLLOWED BY{x/host = y/host, 30 seconds} beats->y"
STREAMS = "create stream A timestamp /*/t late by 5; create stream B timestamp /*/t late by 5"
ALONE = "A->x NOT FOLLOWED BY{x/k = y/k, 5} B->y"


@pytest.mark.parametrize("other", [False, True])
def test_documents_from_before_the_registration_are_no_matches(weir: Weir, other: bool) -> None:
    """Another query may retain them."""
    declare(weir, late=100)
    query = "S//a->x NOT FOLLOWED BY{x/k = y/k, 5} S//b->y"
    if other:
        weir.execute(f"create query early as {query}")
    weir.publish("S", [document("b", 12, 1)])
    weir.run(until_idle=True)
    weir.execute(f"create query later as {query}")
    weir.publish("S", [document("a", 10, 1), document("c", 500, 0)])
    weir.run(until_idle=True)
    assert found(weir, "later") == [(["S-2"], 15.0)]
    assert not other or found(weir, "early") == []


@pytest.mark.parametrize(
    "query",
    [
        "S//a->x NOT FOLLOWED BY{x/k = y/k, 5} S//b->y NOT FOLLOWED BY{x/k = z/k, 3} S//c->z",
        "S//a->x FOLLOWED BY{x/k = y/k, 20} S//d->y NOT FOLLOWED BY{y/k = z/k, 3} S//c->z",
        "P->x NOT FOLLOWED BY{x/k = y/k, 5} P->y NOT FOLLOWED BY{x/k = z/k, 3} P->z",
    ],
)
def test_documents_from_before_the_registration_are_no_results(weir: Weir, query: str) -> None:
    """Another query may have the stream of an inner join, or of the documents without a match."""
    declare(weir)
    weir.execute(f"create stream P (k int, t double) timestamp t late by 4; create query early as {query}")
    weir.publish("S", [document("a", 10, 1)])
    weir.publish("P", [{"k": 1, "t": 10.0}])
    weir.run(until_idle=True)
    weir.execute(f"create query later as {query}")
    for time in (12, 100, 200, 300):
        weir.publish("S", [document("d", time, 1)])
        weir.publish("P", [{"k": -time, "t": float(time)}])
        weir.run(until_idle=True)
    assert next(result.timestamp for result in weir.results("early")) in (15.0, 18.0)
    assert all(result.timestamp > 18 for result in weir.results("later"))


@pytest.mark.parametrize("is_busy", [False, True])
def test_streams_and_subscribers_added_since_the_last_micro_batch_get_results(tmp_path: Path, is_busy: bool) -> None:
    clock, boxes = testing.Clock(1000.0), [tmp_path / f"{n}.jsonl" for n in range(2)]
    with testing.open(tmp_path / "home", clock=clock) as weir:
        weir.execute("create stream beats (host string); create stream others (x int)")
        weir.execute(f"{BEATS} publish down; subscribe to down output append '{boxes[0]}'")
        weir.publish("beats", [{"host": "a"}])
        weir.run(until_idle=True)
        weir.execute("create query hosts as select host from down")
        weir.execute(f"unsubscribe from down; subscribe to down output append '{boxes[1]}'")
        if is_busy:
            weir.publish("others", [{"x": 1}])
            weir.run(until_idle=True)
        clock.advance(40)
        weir.run(until_idle=True)
        assert [result.output for result in weir.results("hosts")] == [{"host": "a"}]
    assert not boxes[0].exists()
    assert [json.loads(line)["documents"] for line in boxes[1].read_text().splitlines()] == [["beats-1"]]


def in_the_past(weir: Weir) -> None:
    """Declares a query whose backfill begins with documents that the job has long passed."""
    weir.execute(f"{STREAMS}; create query pairs as A->x JOIN{{x/k = y/k, 3}} B->y")
    for stream, time, key in [("A", 10, 1), ("A", 11, 2), ("B", 12, 1), ("B", 500, 7), ("A", 500, 8)]:
        weir.publish(stream, [f"<d><t>{time}</t><k>{key}</k></d>"])
        weir.run(until_idle=True)
    weir.execute(f"create query past as {ALONE} start '1970-01-01'")


def test_a_backfill_has_its_own_watermarks(weir: Weir, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even for a stream of which it has not read anything."""
    monkeypatch.setattr(backfill_run, "ENTRIES_PER_STEP", 1)
    in_the_past(weir)
    weir.run(until_idle=True)
    assert found(weir, "past") == [(["A-2"], 16.0)]


@pytest.mark.parametrize("steps", [2, 3, 4])
def test_a_restarted_backfill_commits_only_what_is_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    monkeypatch.setattr(backfill_run, "ENTRIES_PER_STEP", 1)
    with testing.open(tmp_path / "home") as weir:
        in_the_past(weir)
        for _ in range(steps):
            weir.step()
    with testing.open(tmp_path / "home") as weir:
        weir.run(until_idle=True)
        assert found(weir, "past") == [(["A-2"], 16.0)]
        evaluated = [sum(commit.upto.values()) for commit in weir.table.commits() if commit.past]
        assert evaluated == sorted(evaluated)


def test_runs_of_one_micro_batch_each_know_the_watermarks_of_published_streams(weir: Weir) -> None:
    declare(weir)
    weir.execute("create query q as S//a->x NOT FOLLOWED BY{x/k = y/k, 5} (S//b->y FOLLOWED BY{y/k = z/k, 5} S//c->z)")
    for row in [("a", 1, 1), ("a", 2, 2), ("b", 3, 2), ("c", 4, 2), ("d", 100, 0), ("d", 200, 0), ("d", 300, 0)]:
        weir.publish("S", [document(*row)])
        weir.run(until_idle=True)
    assert found(weir, "q") == [(["S-1"], 6.0)]


def test_a_micro_batch_is_settled_with_the_absences_that_follow_it(tmp_path: Path) -> None:
    """A stream of documents without a match lacks some until it contains those of this commit."""
    table = ResultsTable(tmp_path / "results")
    for batch, absences in enumerate([False, True, False, True, False]):
        table.commit(Commit(batch, 1, absences=absences))
    assert [table.settled([], batch).batch for batch in range(5)] == [-1, 0, 0, 2, 4]


def test_commits_before_the_registration_settle_nothing(tmp_path: Path) -> None:
    """A query may start in the past: its backfill has yet to find old results."""
    table = ResultsTable(tmp_path / "results")
    for batch, commit in enumerate([Commit(0, 1), Commit(1, 2, hidden=[7]), Commit(2, 2, past=[7]), Commit(3, 2)]):
        table.commit(commit)
        assert table.settled([7], batch, since=2).batch == [-1, -1, 2, 3][batch]


def test_the_job_counts_as_busy_until_absences_are_committed(weir: Weir, monkeypatch: pytest.MonkeyPatch) -> None:
    working: list[bool] = []
    write = Absences._write

    def spy(self: Absences, *given: object) -> object:
        working.append(self.working)
        return write(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(Absences, "_write", spy)
    declare(weir)
    weir.execute("create query gone as S//a->x NOT FOLLOWED BY{x/k = y/k, 5} S//b->y")
    weir.publish("S", [document("a", 1, 1), document("c", 50, 0)])
    weir.run(until_idle=True)
    assert working == [True]

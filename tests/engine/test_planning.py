"""Planning outside the job: bulk registrations bring their segments, and a separate process merges them."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from fishweir.engine import planner_process, segments
from fishweir.engine.planner_process import PlannerProcess
from fishweir.evaluate.plan.planner import Planner

ABOVE = "create query $name as select x from R where x > $low"


def rows(first: int, count: int) -> list[dict[str, object]]:
    return [{"name": f"q-{i}", "low": i} for i in range(first, first + count)]


def fired(weir, x: int) -> list[str]:
    weir.publish("R", [{"x": x}])
    before = {(r.query, r.timestamp, *r.documents) for r in weir.results()}
    weir.step()
    return sorted(r.query for r in weir.results() if (r.query, r.timestamp, *r.documents) not in before)


@pytest.fixture
def bulk(weir, monkeypatch):
    monkeypatch.setattr(segments, "BULK", 10)
    monkeypatch.setattr(segments, "MOST", 50)
    monkeypatch.setattr("fishweir.catalog.change.CHUNK", 50)
    monkeypatch.setattr("fishweir.languages.many.CHUNK", 50)
    weir.execute("create stream R (x int)")
    return weir


def test_a_registration_in_bulk_writes_its_segments(bulk):
    bulk.register_many(ABOVE, rows(0, 120))
    bulk.execute("create query small as select x from R where x > 1; delete q-0")
    written = bulk.catalog.segments(0)
    assert [size for _, _, size, _, _ in written] == [50, 50, 20]
    planner: Planner = bulk.planning.planner()
    reads = []
    planner.registered = RecordedReads(planner.registered, reads)
    planner.refresh(bulk.catalog.version(), {})
    assert reads == [0, written[-1][1]], "the job builds only the queries before and after the bulk"
    assert fired(bulk, 3) == ["q-1", "q-2", "small"]


def test_a_registration_that_fails_leaves_no_segment(bulk):
    bad = [*rows(0, 60), {"name": "q-0", "low": 7}]
    with pytest.raises(Exception, match="already exists"):
        bulk.register_many(ABOVE, bad)
    assert bulk.catalog.segments(0) == []
    bulk.register_many(ABOVE, rows(5, 60))
    assert fired(bulk, 7) == ["q-5", "q-6"]


class RecordedReads:
    """Records the changes from which queries are read."""

    def __init__(self, registered, reads: list[int]) -> None:
        self.registered, self.reads = registered, reads

    def planned(self, after: int, upto: int):
        self.reads.append(after)
        return self.registered.planned(after, upto)

    def __getattr__(self, name: str):
        return getattr(self.registered, name)


def test_words_that_many_queries_search_for(weir, monkeypatch):
    monkeypatch.setattr("fishweir.evaluate.select.anchors.MANY", 3)
    weir.execute("create stream S")
    words = [("fish", "weir"), ("fish", "trap"), ("net", "fish"), ("trap", "net")]
    both = [{"name": f"{a}-{b}", "a": a, "b": b} for a, b in words]
    weir.register_many("create query $name as select t from S where t contains $a and t contains $b", both)
    texts = ["fish trap", "a net, a trap", "fish weir trap", "fish"]
    weir.publish("S", [f"<i><t>{text}</t></i>" for text in texts])
    weir.run(until_idle=True)
    found = {(r.query, r.documents[0]) for r in weir.results()}
    wanted = {(f"{a}-{b}", f"S-{n}") for n, t in enumerate(texts, 1) for a, b in words if a in t and b in t}
    assert found == wanted
    assert len(wanted) == 4


def until_done(planner: Planner, version: int) -> None:
    ends = time.monotonic() + 600
    while planner.rebuilder.busy:
        assert time.monotonic() < ends
        time.sleep(0.01)
        planner.refresh(version, {})


def test_a_separate_process_merges_and_is_restarted(bulk, monkeypatch, caplog):
    monkeypatch.setattr(planner_process, "SMALL_WORK", 0)
    monkeypatch.setattr("fishweir.evaluate.plan.planner.SMALL", 0)
    process = PlannerProcess(Path(bulk.home.plan), {})
    planner = bulk.planning.planner(process)
    try:
        bulk.register_many(ABOVE, rows(0, 100))
        planner.refresh(bulk.catalog.version(), {})
        assert [piece.size for piece in planner.pieces] == [50, 50], "adopted at once, merged later"
        until_done(planner, bulk.catalog.version())
        assert [piece.size for piece in planner.pieces] == [100]
        assert process.process is not None
        os.kill(process.process.pid, signal.SIGKILL)
        bulk.register_many(ABOVE, rows(100, 100))
        planner.refresh(bulk.catalog.version(), {})
        until_done(planner, bulk.catalog.version())
        assert [piece.size for piece in planner.pieces] == [200]
        assert "the planner process ended (-9); it will be restarted" in caplog.text
    finally:
        process.close()
    assert len(fired(bulk, 130)) == 130


def test_tables_become_regions_when_the_values_turn_out_to_be_different(weir) -> None:
    """The first documents satisfy no condition of the anchor, so it seems to be enough. Later ones satisfy many."""
    boxes = [{"name": f"q{i}", "a": i, "b": i + 300, "c": 600 - i, "d": 900 - i} for i in range(600)]
    weir.execute("create stream R (x int, y int); create query first as select x from R where x > 5 and y > 5")
    weir.publish("R", [{"x": 2_000_000 + i, "y": 0} for i in range(100)])
    weir.step()
    weir.register_many("create query $name as select x from R where x > $a and x < $b and y > $c and y < $d", boxes)
    weir.publish("R", [{"x": 2_000_000, "y": 0}])
    weir.step()
    assert "signature x > number and x < number in R" in weir.explain("q7")
    for count in (600, 600, 1):
        weir.publish("R", [{"x": i % 900, "y": 7 * i % 900} for i in range(count)])
        weir.step()
    assert "signature box over x, y in R" in weir.explain("q7")
    results = [result for result in weir.results() if result.query == "q7"]
    expected = [(i % 900, 7 * i % 900) for count in (600, 600, 1) for i in range(count)]
    assert len(results) == sum(7 < x < 307 and 593 < y < 893 for x, y in expected) > 0

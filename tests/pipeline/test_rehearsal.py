"""A new segment is opened before a micro-batch needs it: concurrently, for every kind of query."""

from __future__ import annotations

import os
import threading
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fishweir import testing
from fishweir.engine.planner_process import PlannerProcess
from fishweir.evaluate.plan import plan
from fishweir.pipeline.rehearsal import Rehearsal
from fishweir.pipeline.spark.worker_pool import WorkerPool
from fishweir.pipeline.summary import Summary

SCRIPT = """
create stream R (x int, y int, w string);
create stream S;
create stream news;
create query joined as select A.x from R [range 60] as A, R [range 60] as B where A.x = B.y;
create query followed as S/a[k->x] followed by{x = y, 60} S/b[k->y];
create query filtered as from news as $n where $n[title contains 'fish'];
create query first as select x from R where x > 3 distinct on y within 1 hour;
"""
DOCUMENTS: dict[str, list[Any]] = {
    "R": [{"x": i % 7, "y": i % 5, "w": "fish weir"} for i in range(30)],
    "S": ["<a><k>1</k></a>", "<b><k>1</k></b>", "<a><c>2</c></a>"],
    "news": ["<item><title>a fish</title></item>"],
}


@pytest.fixture
def all_kinds(weir: testing.Weir) -> testing.Weir:
    weir.execute(SCRIPT)
    boxes = [{"name": f"box-{i}", "a": i, "b": i + 2, "c": i % 5} for i in range(50)]
    weir.register_many("create query $name as select x from R where x >= $a and x < $b and y > $c", boxes)
    weir.register_many("create query $name as S/a[c = $c]", [{"name": f"twig-{i}", "c": f"{i}"} for i in range(20)])
    publish(weir)
    return weir


def publish(weir: testing.Weir) -> None:
    for stream, documents in DOCUMENTS.items():
        for document in documents:
            weir.publish(stream, [document])
    weir.run(until_idle=True)


def found(weir: testing.Weir) -> list[tuple[str, tuple[str, ...]]]:
    return sorted((result.query, tuple(result.documents)) for result in weir.results())


def test_a_rehearsal_warms_caches_and_writes_nothing(all_kinds: testing.Weir, caplog: pytest.LogCaptureFixture) -> None:
    before = found(all_kinds)
    assert {name.partition("-")[0] for name, _ in before} == {"joined", "followed", "filtered", "first", "box", "twig"}
    files = sorted(path for path in all_kinds.home.path.rglob("*") if path.is_file())
    plan.forget_plans()
    caplog.set_level("INFO", "fishweir.plan")
    for id in all_kinds.planning.planner().segments:
        Rehearsal.of(all_kinds.home, id, all_kinds.table.offsets())()
        read = plan._segment.cache_info().misses
        operators = plan.cached_segment(all_kinds.home.plan, id).operators
        assert plan._segment.cache_info().misses == read, "it is open"
        selections = operators.get("selections", ())
        warm = [one for one in selections if "region_set" in vars(one) or any("index" in vars(t) for t in one.tables)]
        assert not selections or warm, "structures that are built on first use exist"
    assert not caplog.records
    assert found(all_kinds) == before
    assert sorted(path for path in all_kinds.home.path.rglob("*") if path.is_file()) == files


def test_results_are_the_same_after_a_rehearsal(all_kinds: testing.Weir) -> None:
    plan.forget_plans()
    for id in all_kinds.planning.planner().segments:
        Rehearsal.of(all_kinds.home, id, all_kinds.table.offsets())()
    before = Counter(name for name, documents in found(all_kinds) if len(documents) == 1)
    publish(all_kinds)
    after = Counter(name for name, documents in found(all_kinds) if len(documents) == 1)
    assert after == {name: count if name == "first" else 2 * count for name, count in before.items()}


def test_a_damaged_segment_is_left_to_the_micro_batch(
    all_kinds: testing.Weir, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "fishweir.plan")
    Rehearsal.of(all_kinds.home, "missing", all_kinds.table.offsets())()
    assert "segment missing could not be rehearsed" in caplog.text


def test_a_segment_is_adopted_after_its_rehearsal(
    weir: testing.Weir, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("fishweir.engine.planner_process.SMALL_WORK", 0)
    monkeypatch.setattr("fishweir.evaluate.plan.planner.SMALL", 0)
    weir.execute("create stream R (x int)")
    process, go_on, seen = PlannerProcess(Path(weir.home.plan), {}), threading.Event(), list[tuple[str, bool]]()
    planner = weir.planning.planner(process)

    def rehearse(segment: str) -> None:
        go_on.wait()
        seen.append((segment, segment in planner.segments))

    process.rehearse = rehearse
    try:
        for name in "ab":
            weir.execute(f"create query {name} as select x from R where x > 1")
            planner.refresh(weir.catalog.version(), {})
        assert len(planner.segments) == 2
        weir.execute("create query c as select x from R where x > 2")
        planner.refresh(weir.catalog.version(), {})
        assert len(planner.segments) == 3, "a new query takes effect while a segment is rehearsed"
        go_on.set()
        while len(planner.segments) > 1 or process.busy:
            planner.refresh(weir.catalog.version(), {})
    finally:
        process.close()
    assert seen
    assert not any(adopted for _, adopted in seen)
    assert planner.segments[0] in {segment for segment, _ in seen}


@dataclass(frozen=True)
class Waiting:
    """A rehearsal that ends when a file exists."""

    path: Path

    def __call__(self) -> None:
        while not self.path.exists():
            pass


@dataclass(frozen=True)
class Writing:
    path: Path

    def __call__(self) -> Summary:
        self.path.touch()
        return Summary(documents=os.getpid())


class Dying:
    def __call__(self) -> None:
        os._exit(9)


def test_calls_run_concurrently_with_a_rehearsal(spark: Any, tmp_path: Path) -> None:
    pool = WorkerPool(spark.sparkContext)
    try:
        (before,) = pool.run([Writing(tmp_path / "before")])
        beside = threading.Thread(target=pool.rehearse, args=(Waiting(tmp_path / "called"),))
        beside.start()
        (after,) = pool.run([Writing(tmp_path / "called")])
        beside.join()
        assert before.documents == after.documents, "by the same process"
        pool.rehearse(Dying())  # type: ignore[arg-type]
    finally:
        pool.shut_down()

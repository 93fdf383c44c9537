"""One micro-batch by hand: the worker's own task over all that has arrived, without Spark."""

from __future__ import annotations

from dataclasses import asdict

import pyarrow as pa

from fishweir.engine.weir import Weir
from fishweir.evaluate.plan.planner import Planner
from fishweir.evaluate.plan.source_plan import cached_stage
from fishweir.evaluate.statistics import PathStatistics
from fishweir.pipeline.commits import Commit
from fishweir.pipeline.home import open_log
from fishweir.pipeline.joining import JoinTask
from fishweir.pipeline.retained import RunFile, remove_others, retained
from fishweir.pipeline.spark.job import load_statistics, save_statistics
from fishweir.pipeline.summary import Summary
from fishweir.pipeline.walked import add_walked
from fishweir.pipeline.worker import MatchTask


def micro_batch(weir: Weir, at: float = 0.0) -> None:
    """Plans, matches, counts and commits, as the job does."""
    statistics, version = load_statistics(weir.home), weir.catalog.version()
    planner = Planner(weir.home.plan, weir.catalog.planned, weir.catalog.dropped)
    planner.refresh(version, weir.catalog.living, statistics)
    batch, done = len(weir.table.commits()), weir.table.offsets()
    heads = {id: open_log(weir.home.streams, id).head() for id in weir.home.stream_ids()}
    rows = [{"stream": id, "after": done.get(str(id), 0), "upto": head} for id, head in heads.items()]
    folder, plan, segments = weir.table.batch_folder(batch), weir.home.plan, planner.segments
    task = MatchTask(weir.home.streams, plan, segments, folder, weir.home.state, version, batch)
    summary = _told(task, pa.RecordBatch.from_pylist(rows))
    old, new = [RunFile(**run) for run in weir.table.newest_runs()], tuple(summary.runs)
    if new:
        join = JoinTask(plan, segments, weir.home.state, new, tuple(r.name for r in old), folder, weir.table.sets, 1)
        summary.add(Summary.load(*join.run([0])))
    runs = retained(weir.home.state, cached_stage(plan, segments), batch, old, new, weir.catalog.dropped())
    for key, counted in summary.statistics.items():
        statistics[key] = statistics.get(key, PathStatistics()).merge(counted)
    save_statistics(weir.home, statistics)
    add_walked(weir.home, {}, summary.walked)
    counts = summary.documents, summary.matches, summary.aside, summary.offsets
    weir.table.commit(Commit(batch, version, summary.files, *counts, at, 0.0, [asdict(run) for run in runs]))
    remove_others(weir.home.state, runs)


def _told(task: MatchTask, batch: pa.RecordBatch) -> Summary:
    (told,) = task(iter([batch]))
    return Summary.load(told.column("summary")[0].as_py())

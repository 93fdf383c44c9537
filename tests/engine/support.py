"""One micro-batch by hand: the worker's own task over all that has arrived, without Spark."""

from __future__ import annotations

import pyarrow as pa

from fishweir.engine.weir import Weir
from fishweir.pipeline.commits import Commit
from fishweir.pipeline.home import open_log
from fishweir.pipeline.job import load_statistics, save_statistics
from fishweir.pipeline.worker import MatchTask, Summary
from fishweir.sharing.planner import Planner
from fishweir.sharing.statistics import PathStatistics


def micro_batch(weir: Weir, at: float = 0.0) -> None:
    """Plans, matches, counts and commits, as the job does."""
    statistics, version = load_statistics(weir.home), weir.catalog.version()
    planner = Planner(weir.home.plan, weir.catalog.planned, weir.catalog.dropped)
    planner.refresh(version, weir.catalog.living, statistics)
    batch, done = len(weir.table.commits()), weir.table.offsets()
    heads = {id: open_log(weir.home.streams, id).head() for id in weir.home.stream_ids()}
    rows = [{"stream": id, "after": done.get(str(id), 0), "upto": head} for id, head in heads.items()]
    task = MatchTask(weir.home.streams, weir.home.plan, planner.segments, weir.table.batch_folder(batch))
    (told,) = task(iter([pa.RecordBatch.from_pylist(rows)]))
    summary = Summary.load(told.column("summary")[0].as_py())
    for key, counted in summary.statistics.items():
        statistics[key] = statistics.get(key, PathStatistics()).merge(counted)
    save_statistics(weir.home, statistics)
    weir.table.commit(
        Commit(batch, version, summary.files, summary.documents, summary.matches, summary.aside, summary.offsets, at)
    )

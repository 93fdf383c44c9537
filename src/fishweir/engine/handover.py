"""Hands joins whose windows never end over from their backfill to the job: the job gets the state of their past.

In: such queries, and the entries between their start and their first micro-batch. Out: state files as the job keeps
them (`load`), for the operators of its plan that evaluate these queries. Instead of a catalog version (`since`), the
documents in them have the *tag* of their run, a negative number. A result row with such a document counts only for the
queries of that run (ResultsTable.tags), although they share operators and state with other queries.

This requires that a result has at most one document from the past: joins of two streams. Windows that count rows, and
rows of changing files, are not handed over: the job drops the entry that replaces a row if it does not have the row.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from fishweir.algebra.nodes import Shape, StreamDefinition, sources_of
from fishweir.catalog.catalog import Query
from fishweir.evaluate.group import Stage
from fishweir.evaluate.plan.plan import cached_plan
from fishweir.pipeline.commits import handover_tag
from fishweir.pipeline.home import Home
from fishweir.pipeline.offsets import Offsets, first_arrived, slices_between
from fishweir.pipeline.states import SUFFIX, StateFile, cached_states, write_states
from fishweir.pipeline.worker import MatchTask

ENTRIES = 20_000
"""The number of entries whose state is one file."""


def can_be_handed_over(query: Query, streams: Iterable[StreamDefinition]) -> bool:
    """Whether the past of a query can become state of the job."""
    shape = query.shape
    if not isinstance(shape, Shape) or len(shape.blocks) != 2 or shape.distinct is not None or shape.unless is not None:
        return False
    read = set(shape.sources)
    changing = any(stream.rows is not None and read.intersection(sources_of(stream)) for stream in streams)
    return not changing and not any(window.rows for window in shape.windows)


def load(
    home: Home, sets: Path, segments: Sequence[str], queries: Sequence[int], begin: Offsets, live: Offsets, folder: Path
) -> list[StateFile] | None:
    """Writes the state of the entries between two offsets to a folder, as the job with this plan would keep it. None if
    the plan does not have all of the queries.
    """
    shutil.rmtree(folder, ignore_errors=True)
    own = tuple(id for id in segments if _stages(home, (id,), queries))
    stages = _stages(home, own, queries)
    if not any(stage.evaluates(queries) for stage in stages.values()):
        return None
    found: list[StateFile] = []
    at, step = dict(begin), 0
    while at != live:
        step += 1
        end = first_arrived(home, at, live, ENTRIES)
        task = MatchTask(
            home.streams, home.plan, own, folder / "rows", sets, folder, handover_tag(queries), step, {}, sees_all=True
        )  # fmt: skip
        for name in sorted(task(0, slices_between(at, end)).states):
            states = cached_states(folder / name)
            kept = {kind: stage.merged([states[kind]]) for kind, stage in stages.items() if kind in states}
            if kept:
                found.append(write_states(folder / f"kept-{step:06d}{SUFFIX}", kept))
        at = end
    return found


def _stages(home: Home, segments: tuple[str, ...], queries: Sequence[int]) -> dict[str, Stage]:
    """By kind, the operators of some segments that evaluate some of the queries."""
    stages = cached_plan(home.plan, segments).stages.items()
    return {kind: own for kind, stage in stages if (own := stage.only(queries)) is not None}

"""Annotation joins by the oracle and by runs, over the same micro-batches."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fishweir.algebra.annotations import to_annotation
from fishweir.algebra.clauses import constants_of
from fishweir.algebra.documents import Document, parse_document
from fishweir.algebra.join_oracle import Arrival, annotate
from fishweir.algebra.nodes import Source
from fishweir.evaluate.group import Batch
from fishweir.evaluate.join.stage import JoinStage
from fishweir.evaluate.plan.plan import plan_of
from fishweir.evaluate.plan.segments import build_groups, merge_segments, planned_segment, read_segment, write_segment
from fishweir.evaluate.watermarks import Watermarks
from fishweir.pipeline.states import cached_states, write_states

SOURCES = ("A", "B", "C")


def arrivals(items, cuts):
    """Items (source, body, time) as they arrive; a micro-batch ends at each cut."""
    found, counts = [], dict.fromkeys(SOURCES, 0)
    for i, (source, body, time) in enumerate(items):
        counts[source] += 1
        document = Document(f"{source}-{counts[source]}", time, parse_document(body.encode()))
        batch = sum(cut <= i for cut in cuts)
        found.append(Arrival(Source(source), SOURCES.index(source), counts[source], batch, document))
    return found


def expected(queries, items):
    """(query, item, ((join, ids of the annotation), ...)) by the oracle."""
    return sorted(
        (number, one.item.document.id, tuple((j, tuple(a.document.id for a in s)) for j, s in one.annotation.items()))
        for number, (selection, constants) in enumerate(queries)
        for one in annotate(selection, constants, items)
    )


def segment_of(queries):
    rows = []
    for number, (selection, constants) in enumerate(queries):
        normal = to_annotation(selection)
        rows.append((number, normal.template, constants_of(normal, constants)))
    return planned_segment("x", build_groups(rows, {}), {})


def merged(segments, dead=()):
    return planned_segment("x", merge_segments(segments, np.array(dead, np.int64), {}), {})


def through_files(folder: Path, segment):
    write_segment(folder, segment)
    return read_segment(folder, segment.id)


def annotations_in(segment):
    """The groups of annotation joins; the others are the filters of the sources."""
    return [group for group in segment.groups if group.kind == "joins"]


def stage_of(segment):
    return JoinStage(segment.operators["joins"])


def found_by(segment, items, parts=1, merge=None, folder=None):
    """The same by runs; `merge` may replace the retained runs."""
    stage, retained, found = stage_of(segment), [], []
    for batch in range(max((one.arrived for one in items), default=-1) + 1):
        runs = []
        for stream, name in enumerate(SOURCES):
            own = [one for one in items if one.arrived == batch and one.stream == stream]
            source = Source(name)
            plan = plan_of([segment], [source])
            walk = plan.start()
            for i, one in enumerate(own):
                walk.add(i, one.document.root)
            numbers, times = [one.number for one in own], [one.document.timestamp for one in own]
            together = [float(batch)] * len(own)
            documents = Batch.of(stream, (source,), numbers, times, walk.tables(), together)
            sides = [matches.sides for _, _, matches in plan.match(documents.witnesses)]
            kept = stage.keep(documents.matched(sides))
            runs += [kept] if kept is not None else []
        if not runs:
            continue
        new = stage.merged(runs)
        if folder is not None:
            write_states(folder / f"{batch}.state", {"joins": new})
            new = cached_states(folder / f"{batch}.state")["joins"]
        for part in range(parts):
            for rows in stage.probe([new], retained, part, parts):
                found += rows_of(rows.batch)
        retained.append(new)
        if merge is not None:
            retained = merge(stage, retained)
    return sorted(found)


def still_needed(stage, runs, late=0.0):
    """The state that windows may still need if items are at most this late."""
    newest = max((run.newest for run in runs), default=0.0)
    return stage.needed(runs, Watermarks.at(newest - late, {i: (Source(name),) for i, name in enumerate(SOURCES)}))


def rows_of(batch):
    for row in batch.to_pylist():
        item = f"{SOURCES[row['stream']]}-{row['document']}"
        annotation: dict[int, list[str]] = {}
        for join, stream, number in zip(row["joins"], row["other_streams"], row["others"], strict=True):
            annotation.setdefault(join, []).append(f"{SOURCES[stream]}-{number}")
        for member in row["members"]:
            yield member, item, tuple((join, tuple(some)) for join, some in annotation.items())

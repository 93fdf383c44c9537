"""Annotation joins by the oracle and by runs, over the same micro-batches."""

from __future__ import annotations

from pathlib import Path

from fishweir.algebra.annotation_oracle import Arrival, annotate
from fishweir.algebra.annotations import to_annotation
from fishweir.algebra.clauses import constants_of
from fishweir.algebra.documents import Document, parse_document
from fishweir.algebra.nodes import Source
from fishweir.evaluate.group import Batch
from fishweir.evaluate.join.annotations import annotating
from fishweir.evaluate.join.annotations.annotation_stage import AnnotationStage, batch_items
from fishweir.evaluate.join.annotations.annotation_tables import build_annotations
from fishweir.evaluate.join.annotations.items import no_items
from fishweir.evaluate.plan.segments import planned_segment, read_segment, write_segment
from fishweir.evaluate.watermarks import Watermarks
from fishweir.evaluate.witnesses.shared_paths import SharedPaths
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


def table_of(queries):
    rows = []
    for number, (selection, constants) in enumerate(queries):
        normal = to_annotation(selection)
        rows.append((number, normal.template, constants_of(normal, constants)))
    return build_annotations(rows, {})


def through_files(folder: Path, table):
    write_segment(folder, planned_segment("x", (table,), {}))
    return read_segment(folder, "x").groups[0]


def found_by(tables, items, parts=1, merge=None, folder=None):
    """The same by runs; `merge` may replace the retained ones."""
    stage, retained, found = AnnotationStage(tables), [], []
    for batch in range(max((one.arrived for one in items), default=-1) + 1):
        primary, entering = [], []
        for stream, name in enumerate(SOURCES):
            own = [one for one in items if one.arrived == batch and one.stream == stream]
            source, shared = Source(name), SharedPaths()
            shared.hold({str(i): table.paths([source]) for i, table in enumerate(tables)})
            walk = shared.start()
            for i, one in enumerate(own):
                walk.add(i, one.document.root)
            numbers, times = [one.number for one in own], [one.document.timestamp for one in own]
            both = batch_items(stage, Batch.of(stream, (source,), numbers, times, walk.tables()))
            primary.append(both[0])
            entering.append(both[1])
        new, items_to_annotate = stage.merged(entering), stage.together(primary)
        if folder is not None:
            write_states(folder / f"{batch}.state", {"annotations": new})
            new = cached_states(folder / f"{batch}.state")["annotations"]
        for part in range(parts):
            for block in annotating.annotate(stage, items_to_annotate, [*retained, new, no_items()], part, parts):
                found += rows_of(items_to_annotate, block)
        retained.append(new)
        if merge is not None:
            retained = merge(stage, retained)
    return sorted(found)


def still_needed(stage, runs, late=0.0):
    """What windows may still hold where items are at most so late."""
    newest = max((run.newest for run in runs), default=0.0)
    return stage.needed(runs, Watermarks.at(newest - late, {i: (Source(name),) for i, name in enumerate(SOURCES)}))


def rows_of(primary, block):
    for i, row in enumerate(block.rows.tolist()):
        item = f"{SOURCES[primary.streams[row]]}-{primary.numbers[row]}"
        annotation: dict[int, list[str]] = {}
        for at in range(block.item_starts[i], block.item_starts[i + 1]):
            annotation.setdefault(int(block.joins[at]), []).append(f"{SOURCES[block.streams[at]]}-{block.numbers[at]}")
        for member in block.members[block.member_starts[i] : block.member_starts[i + 1]].tolist():
            yield member, item, tuple((join, tuple(some)) for join, some in annotation.items())

"""Joins without Spark: batches of documents through runs, and the rows that come out."""

from __future__ import annotations

from dataclasses import replace

from fishweir.algebra.clauses import constants_of, has_several, to_normals
from fishweir.algebra.documents import Document, parse_document
from fishweir.algebra.join_oracle import evaluate_join, join_results
from fishweir.algebra.joins import row_variables, to_join
from fishweir.evaluate.group import Batch
from fishweir.evaluate.join.join_tables import build_join
from fishweir.evaluate.join.pairing import find_pairs
from fishweir.evaluate.join.placement import is_movable
from fishweir.evaluate.join.stage import JoinStage
from fishweir.evaluate.plan.segments import planned_segment
from fishweir.evaluate.watermarks import Watermarks


def tables_of(queries, statistics=None):
    """One table per template; query numbers are positions in the list."""
    grouped = {}
    for number, (shape, constants) in enumerate(queries):
        for normal in to_normals(shape):
            numbers, rows = grouped.setdefault(normal.template, ([], []))
            numbers.append(number)
            rows.append(constants_of(normal, constants))
    return [build_join(template, *both, statistics or {}) for template, both in grouped.items()]


def stage_of(parts, requested=()):
    """The stage of some tables, as if each part were a segment; `requested` strategies come before the rules."""
    segments = [planned_segment(str(i), tables, {}, requested) for i, tables in enumerate(parts) if tables]
    return JoinStage([operator for segment in segments for operator in segment.operators["joins"]])


def parsed(streams):
    """Documents of (source, text, time), numbered in arrival order."""
    return [
        (source, Document(f"{source}-{i}", time, parse_document(text.encode())))
        for i, (source, text, time) in enumerate(streams)
    ]


def row_key(shape, pair):
    over = [name for side in range(len(shape.blocks)) for name in row_variables(shape, side)]
    return tuple(pair.binding[name].id for name in over)


def expected(queries, documents):
    """(query, left, right, nodes) by the oracle."""
    found = []
    for number, (shape, constants) in enumerate(queries):
        sides = [[d for source, d in documents if source == block.source.name] for block in shape.blocks]
        results = evaluate_join(shape, constants, sides)
        found += [(number, *(one.id for one in result.sides), row_key(shape, result)) for result in results]
    return sorted(found)


def joined(queries, batches, parts=1, merge=None, statistics=None, above=False, apart=False, keyed=None, requested=()):
    """The same by runs; `batches` are lists of (source, document). `merge` may replace the retained runs; `above` has
    constants checked on pairs wherever they can be; `keyed` gives the key of a document of the stream R, whose later
    versions supersede it."""
    from fishweir.algebra.nodes import Source
    from fishweir.evaluate.witnesses.shared_paths import SharedPaths

    tables = tables_of(queries, statistics)
    if apart:
        tables = [
            replace(t, numbers=t.numbers[i : i + 1], columns=tuple(c[i : i + 1] for c in t.columns))
            for t in tables
            for i in range(t.size)
        ]
    if above:
        tables = [replace(table, above=is_movable(table.template)) for table in tables]
    half = len(tables) // 2
    stage = stage_of([[table] for table in tables] if apart else [tables[:half], tables[half:]], requested)
    sources = sorted({block.source.name for shape, _ in queries for block in shape.blocks})
    by_place, versions, retained, found = {}, {}, [], []
    for version, batch in enumerate(batches):
        runs = []
        for stream, source in enumerate(sources):
            own = [d for s, d in batch if s == source]
            shared = SharedPaths()
            shared.hold({"x": stage.paths([Source(source)])})
            walk = shared.start()
            numbers = []
            for i, document in enumerate(own):
                walk.add(i, document.root)
                place = (stream, len(by_place))
                by_place[place], versions[document.id] = document, version
                numbers.append(place[1])
            times = [document.timestamp for document in own]
            arrivals = [float(document.id.partition("-")[2]) for document in own]
            changes = []
            if keyed and source == "R":
                changes = [(n, a, keyed(d)) for n, a, d in zip(numbers, arrivals, own, strict=True)]
            found_ = numbers, times, walk.tables(), arrivals
            kept = stage.keep(Batch.of(stream, [Source(source)], *found_, since=version, changes=changes))
            runs += [kept] if kept is not None else []
        if not runs:
            continue
        new = stage.merged(runs)
        for part in range(parts):
            for block in find_pairs(stage.parts, new, retained, part, parts):
                found += _rows(queries, block, by_place, versions)
        retained.append(new)
        if merge is not None:
            retained = merge(stage, retained)
    once = {number for number, (shape, _) in enumerate(queries) if has_several(shape)}
    return sorted([*(row for row in found if row[0] not in once), *{row for row in found if row[0] in once}])


def what_is_needed(stage, runs):
    """The state that windows may still need, for runs whose documents arrive in time order."""
    reads = sorted({source for part in stage.parts for source in part.sources}, key=str)
    reached = max(run.newest for run in runs)
    return stage.needed(runs, Watermarks.at(reached, {stream: (source,) for stream, source in enumerate(reads)}))


def _rows(queries, block, by_place, versions):
    rows = [(row, other) for row in range(len(block)) for other in block.partners_of(row).tolist()]
    for i, other in rows:
        own, partner = by_place[int(block.streams[i]), int(block.numbers[i])], by_place[block.partner_streams[i], other]
        left, right = (partner, own) if block.by_right else (own, partner)
        assert block.times[i] == max(left.timestamp, right.timestamp)
        assert block.left_first[i] == (left.timestamp <= right.timestamp)
        assert block.since[i] == min(versions[left.id], versions[right.id])
        for number in block.members_of(i).tolist():
            shape, constants = queries[number]
            if block.nodes is not None:
                ids = with_names(shape, block.nodes[i].tolist())
                yield number, left.id, right.id, ids
            else:
                (only,) = join_results(shape, constants, [left, right])
                yield number, left.id, right.id, row_key(shape, only)


def with_names(shape, nodes):
    """Node ids as the oracle writes them, in the order of row_variables; a join by SQL has none."""
    if shape.formula is not None:
        return ()
    normal = to_join(shape)
    places = {name: (side, node) for name, side, node in normal.variables}
    shown, shift = [], 0
    for side, template in enumerate(normal.template.sides):
        for name in row_variables(shape, side):
            node = places[name][1]
            step = template.nodes[node].step
            position = nodes[shift + template.outputs.index(node)]
            shown.append(f"{position}@{step.name}" if step.is_attribute else str(position))
        shift += len(template.outputs)
    return tuple(shown)

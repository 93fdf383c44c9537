"""Joins of several streams without Spark: batches of documents through runs, and the oracle's results."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from fishweir.algebra.clauses import constants_of, has_several, to_normals
from fishweir.algebra.join_oracle import evaluate_join
from fishweir.algebra.nodes import Source
from fishweir.evaluate.group import Batch
from fishweir.evaluate.join.join_tables import build_join, merge_tables
from fishweir.evaluate.join.many.mjoin import find_many
from fishweir.evaluate.join.operators import MultiwayJoins
from fishweir.evaluate.join.pairing import RunContext
from fishweir.evaluate.join.stage import JoinStage, batch_run
from fishweir.evaluate.witnesses.shared_paths import SharedPaths
from fishweir.languages.script import parse_script
from tests.evaluate.join.runs_support import row_key, with_names


def query_of(text):
    (statement,) = parse_script(text)
    return statement.shape, statement.constants


def tables_of(queries):
    grouped = {}
    for number, (shape, constants) in enumerate(queries):
        for normal in to_normals(shape):
            numbers, rows = grouped.setdefault(normal.template, ([], []))
            numbers.append(number)
            rows.append(constants_of(normal, constants))
    return [build_join(template, *both, {}) for template, both in grouped.items()]


def expected(queries, batches, in_force=lambda ids: True):
    """(query, documents, in time order, nodes) by the oracle: the results that each batch completes, over all documents
    so far."""
    found, come = Counter(), []
    for batch in batches:
        come += batch
        fresh = {document.id for _, document in batch}
        for number, (shape, constants) in enumerate(queries):
            sides = [[d for source, d in come if source == block.source.name] for block in shape.blocks]
            for result in evaluate_join(shape, constants, sides):
                ids = tuple(d.id for d in result.sides)
                if fresh.intersection(ids) and in_force(ids):
                    found[number, ids, tuple(result.documents), row_key(shape, result)] += 1
    return found


class Home:
    """The stage of some queries, and the runs that it retains."""

    def __init__(self, queries, merge=None, apart=False, keyed=None):
        self.queries, self.merge, self.keyed = queries, merge, keyed
        tables = tables_of(queries)
        if apart:
            tables = [
                replace(t, numbers=t.numbers[i : i + 1], columns=tuple(c[i : i + 1] for c in t.columns))
                for t in tables
                for i in range(t.size)
            ]
        self.tables, self.retained, self.documents, self.found = tables, [], {}, []
        self.sources = sorted({block.source.name for shape, _ in queries for block in shape.blocks})

    def stage(self):
        half = len(self.tables) // 2
        return JoinStage([MultiwayJoins(self.tables[:half]), MultiwayJoins(self.tables[half:])])

    def merge_tables(self, dead=()):
        """Merges tables of one template, as when segments are merged."""
        grouped = {}
        for table in self.tables:
            grouped.setdefault(table.template, []).append(table)
        merged = [merge_tables(tables, np.array(dead, np.int64)) for tables in grouped.values()]
        self.tables = [table for table in merged if table is not None]

    def run(self, stage, batch, version):
        runs = []
        for stream, source in enumerate(self.sources):
            own = [d for s, d in batch if s == source]
            shared = SharedPaths()
            shared.hold({"x": stage.paths([Source(source)])})
            walk = shared.start()
            numbers = []
            for i, document in enumerate(own):
                walk.add(i, document.root)
                numbers.append(len(self.documents))
                self.documents[stream, numbers[-1]] = document
            times = [document.timestamp for document in own]
            arrivals = [float(document.id.partition("-")[2]) for document in own]
            changes = []
            if self.keyed and source == "R":
                changes = [(n, a, self.keyed(d)) for n, a, d in zip(numbers, arrivals, own, strict=True)]
            found = numbers, times, walk.tables(), arrivals
            runs.append(batch_run(stage, Batch.of(stream, [Source(source)], *found, since=version, changes=changes)))
        return stage.merged(runs)

    def take(self, batch, version=0, parts=1, halves=False):
        """Evaluates one micro-batch; with `halves`, as if two tasks had written a run each."""
        stage = self.stage()
        pieces = [batch[: len(batch) // 2], batch[len(batch) // 2 :]] if halves else [batch]
        new = [self.run(stage, piece, version) for piece in pieces if piece]
        known = RunContext([*self.retained, *new])
        for part in range(parts):
            old = list(self.retained)
            for run in new:
                for block in find_many(stage.parts, run, old, part, parts, known):
                    self.found += self.rows(block)
                old.append(run)
        self.retained += new
        if self.merge is not None:
            self.retained = self.merge(stage, self.retained)

    def rows(self, block):
        for i in range(len(block)):
            places = list(zip(block.streams[i].tolist(), block.numbers[i].tolist(), strict=True))
            ids = [self.documents[place].id for place in places]
            ordered = tuple(ids[side] for side in block.order[i].tolist())
            assert block.times[i] == max(self.documents[place].timestamp for place in places)
            for number in block.members[block.member_starts[i] : block.member_starts[i + 1]].tolist():
                nodes = with_names(self.queries[number][0], block.nodes[i].tolist())
                yield number, tuple(ids), ordered, nodes, int(block.since[i])

    def results(self):
        """The results, each once even if several conjunctions of a query hold."""
        found = Counter(row[:4] for row in self.found)
        several = {number for number, (shape, _) in enumerate(self.queries) if has_several(shape)}
        return Counter({row: 1 if row[0] in several else count for row, count in found.items()})

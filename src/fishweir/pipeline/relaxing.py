"""Results of queries whose conditions were not checked under overload, by document or by element.

In: a batch of documents and the decision for its stream. Out: result rows of the queries without the conditions that
the level of their documents gives up. The nodes of these conditions were not located in the documents, so the original
queries found nothing in them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fishweir.algebra.normal import Template
from fishweir.evaluate.arrays import Ints, expand
from fishweir.evaluate.group import Batch
from fishweir.evaluate.matches import Matches
from fishweir.evaluate.plan.plan import SourcePlan, selection_rows
from fishweir.evaluate.results import ResultRows
from fishweir.evaluate.witnesses.path_tables import Path
from fishweir.evaluate.witnesses.turns import WHOLE_RANGE, turn_at
from fishweir.shedding.decision import StreamShed


def relaxed_paths(plan: SourcePlan, shed: StreamShed | None) -> list[frozenset[Path]]:
    """For each level that gives up conditions, the paths of these conditions."""
    return [plan.paths_at(level.relaxed) for level in shed.levels if level.relaxed] if shed else []


def relaxed_rows(
    plan: SourcePlan, batch: Batch, shed: StreamShed, levels: Mapping[int, frozenset[int]]
) -> Iterator[ResultRows]:
    for number, level in enumerate(shed.levels):
        if not level.relaxed:
            continue
        for segment, relaxed in plan.relaxed(plan.paths_at(level.relaxed)):
            for place, template, found in relaxed.matches(batch.witnesses):
                documents = batch.numbers[found.documents]
                if shed.unit:
                    own = _turns(documents, found, template, shed) == number
                else:
                    own = np.isin(documents, np.fromiter(levels.get(number, ()), np.int64))
                if own.any():
                    yield selection_rows(batch, segment, place, _some(found, np.flatnonzero(own)))


def _turns(documents: Ints, found: Matches, template: Template, shed: StreamShed) -> NDArray[np.int64]:
    """The turn of the element of each row."""
    names = [tuple(step.name for step in template.path(node)) for node in template.outputs]
    nodes, ends = found.nodes[:, names.index(shed.unit)], np.array(shed.ends(WHOLE_RANGE), np.int64)
    pairs = zip(documents.tolist(), nodes.tolist(), strict=True)
    return np.fromiter((turn_at(number, node, ends) for number, node in pairs), np.int64, len(documents))


def _some(found: Matches, rows: Ints) -> Matches:
    """Some rows of matches whose queries are lists."""
    starts, ends = found.member_offsets[rows], found.member_offsets[rows + 1]
    offsets = np.append(0, np.cumsum(ends - starts)).astype(np.int64)
    members = found.members[expand(starts, ends)[1]]
    none = np.zeros(len(rows) + 1, np.int64)
    return replace(
        found,
        documents=found.documents[rows],
        nodes=found.nodes[rows],
        slice_offsets=none,
        member_offsets=offsets,
        members=members,
    )

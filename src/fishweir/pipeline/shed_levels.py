"""Shedding in a worker: assigns levels of a decision to entries, and determines which paths are suspended in them.

In: some entries of a log and the decision for its stream. Out: their levels, the best entries first, and the turns of
the walk. The value of a document is determined from its text, without parsing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fishweir.algebra.values import satisfies, to_text
from fishweir.evaluate.plan.plan import SourcePlan
from fishweir.evaluate.witnesses.turns import EVERYTHING, WHOLE_RANGE, ElementTurns, Turns
from fishweir.intake.log import StreamLog
from fishweir.intake.schema import column_name
from fishweir.records import dataclass
from fishweir.shedding.decision import BY_ELEMENT, LEFT_OUT, Level, StreamShed, Value, levels_of, worth


def levels_in(log: StreamLog, after: int, upto: int, shed: StreamShed | None) -> dict[int, frozenset[int]]:
    """By level, including LEFT_OUT, the numbers of the entries (after, upto]; empty if all are evaluated completely."""
    if shed is None or shed.is_nothing:
        return {}
    batches = list(log.read(after, upto))
    numbers = np.concatenate([np.arange(first, first + batch.num_rows) for first, batch in batches])
    worths = np.zeros(len(numbers))
    if shed.valued:
        table = pa.Table.from_batches([batch for _, batch in batches])
        worths = _of_tuples(log, table, shed) if log.stream.is_tuples else _of_documents(table, shed)
    if shed.unit:
        kept = levels_of(numbers, worths, [Level(1.0 if shed.inside else shed.keep)])
        levels = np.where(kept == LEFT_OUT, LEFT_OUT, BY_ELEMENT)
    else:
        levels = levels_of(numbers, worths, shed.levels)
    return {int(level): frozenset(numbers[levels == level].tolist()) for level in np.unique(levels)}


@dataclass(frozen=True)
class ByLevel(Turns):
    """Turns by the levels of documents."""

    levels: Mapping[int, int]

    def at(self, number: int) -> int:
        return self.levels.get(number, 0)


def turns_of(levels: Mapping[int, frozenset[int]], shed: StreamShed | None, plan: SourcePlan) -> Turns | ElementTurns:
    """Which paths are suspended in which documents, or in which of their elements."""
    if shed is None or not (shed.inside or any(level.conditions or level.relaxed for level in shed.levels)):
        return EVERYTHING
    suspended = tuple(plan.paths_at((*level.conditions, *level.relaxed)) for level in shed.levels)
    if shed.unit:
        return ElementTurns(shed.unit, shed.ends(WHOLE_RANGE), suspended)
    by_number = {number: level for level, numbers in levels.items() if level != LEFT_OUT for number in numbers}
    return ByLevel((1,) * len(suspended), suspended, by_number)


def _of_tuples(log: StreamLog, table: pa.Table, shed: StreamShed) -> NDArray[np.float64]:
    declared = dict(log.stream.columns)
    total = np.zeros(len(table))
    for one in shed.valued:
        best = np.full(len(table), -np.inf)
        for value in one.values:
            if value.path[-1] in declared:
                holds = _holding(table.column(column_name(value.path[-1])), value)
                best[holds] = np.maximum(best[holds], value.utility)
        total += one.weight * np.where(np.isneginf(best), one.otherwise, best)
    return total


def _holding(column: pa.ChunkedArray, value: Value) -> NDArray[np.bool_]:
    """Which rows of a column satisfy a condition. Each distinct value is compared once."""
    encoded = column.combine_chunks().dictionary_encode()
    distinct = encoded.dictionary.to_pylist()
    texts = [satisfies(to_text(one), value.op, value.constant) for one in distinct]  # type: ignore[arg-type]
    holds: NDArray[np.bool_] = np.array([*texts, False])
    return holds[encoded.indices.fill_null(len(distinct)).to_numpy()]


def _of_documents(table: pa.Table, shed: StreamShed) -> NDArray[np.float64]:
    return np.array([_of_document(body, shed) for body in table.column("body").to_pylist()])


def _of_document(body: bytes | None, shed: StreamShed) -> float:
    return worth(shed, lambda path: [text.decode("utf-8", "replace") for text in _found(path[-1]).findall(body or b"")])


@lru_cache(maxsize=1024)
def _found(name: str) -> re.Pattern[bytes]:
    """Matches values of elements or attributes by name in the text: parsing costs more than most queries. The matches
    decide which documents are kept, never which results are found.
    """
    if name[0] == "@":
        return re.compile(rb"\s(?:[^\s=<>]+:)?" + re.escape(name[1:].encode()) + rb"\s*=\s*[\"']([^\"'<]*)")
    return re.compile(rb"<(?:[^\s<>/]+:)?" + re.escape(name.encode()) + rb"(?:\s[^<>]*)?>([^<]*)<")

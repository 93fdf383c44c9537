"""Shedding in the job: the driver decides for a micro-batch, the workers leave out what it says.

In: how far the streams have been evaluated, and what their queries prefer. Out: by stream, the share to keep and what
makes a document worth more (`shedding/decision.py`). A decision is written down before its micro-batch runs, so that a
micro-batch that is repeated sheds the same, and is in the commit. Streams of results and files that change in place are
never shed: what was left out of the one is shed already, and of the other each change counts.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fishweir.algebra.nodes import Source, sources_of
from fishweir.algebra.values import satisfies, to_text
from fishweir.intake.log import StreamLog
from fishweir.intake.schema import column_name
from fishweir.pipeline.home import Home, open_log, read_json, write_json
from fishweir.pipeline.offsets import heads
from fishweir.shedding.decision import StreamShed, Value, Wish, kept, may_shed, valued_by, worth
from fishweir.shedding.overload import LEAST, Overload

logger = logging.getLogger("fishweir.shedding")

Wishes = Mapping[Source, Sequence[Wish]]


class Shedder:
    """Decides what each micro-batch sheds; `wishes` gives, for a version of the catalog, what queries prefer."""

    def __init__(self, home: Home, overload: Overload, wishes: Callable[[int], Wishes]) -> None:
        self.home, self.overload, self.wishes = home, overload, wishes
        self._path = home.path / "shedding.json"
        self._share = 1.0

    def decide(self, batch: int, version: int, offsets: Mapping[str, int]) -> dict[int, StreamShed]:
        recorded: dict[str, Any] = read_json(self._path, {})
        if recorded.get("batch") == batch:
            return {int(id): StreamShed.from_json(one) for id, one in recorded["streams"].items()}
        before = self.overload.shedding
        waiting = {int(id): head - offsets.get(id, 0) for id, head in heads(self.home).items()}
        found = self._decided(waiting, self.overload.share(sum(waiting.values())), version)
        if self.overload.shedding != before:
            self._tell(found, sum(waiting.values()))
        self._share = min((one.keep for one in found.values()), default=1.0)
        if found:
            write_json(self._path, {"batch": batch, "streams": {str(id): one.to_json() for id, one in found.items()}})
        return found

    def took(self, documents: int, shed: int, seconds: float) -> None:
        self.overload.took(documents, seconds, shed)

    def documents(self, most: int) -> int:
        """How many entries a micro-batch takes: under overload more, since only some of them are evaluated."""
        return int(most / self._share)

    def _decided(self, waiting: Mapping[int, int], share: float, version: int) -> dict[int, StreamShed]:
        """Where only some streams may be shed, these make up for the others."""
        if share >= 1:
            return {}
        wishes, found = self.wishes(version), {}
        for id, count in waiting.items():
            stream = open_log(self.home.streams, id).stream
            asked = [wish for source in sources_of(stream) for wish in wishes.get(source, ())]
            if count and not stream.virtual and not stream.rows and may_shed(stream.shed_allowed, asked):
                found[id] = asked
        possible = sum(waiting[id] for id in found)
        if not possible:
            return {}
        room = share * sum(waiting.values()) - (sum(waiting.values()) - possible)
        keep = max(LEAST, room / possible)
        return {id: StreamShed(keep, valued_by(asked)) for id, asked in found.items()}

    def _tell(self, found: Mapping[int, StreamShed], waiting: int) -> None:
        if not self.overload.shedding:
            logger.warning("shedding ends: %d entries wait", waiting)
        elif found:
            names = ", ".join(
                f"{1 - one.keep:.0%} of {open_log(self.home.streams, id).stream.name}" for id, one in found.items()
            )
            logger.warning("shedding begins: %d entries wait, leaving out %s", waiting, names)
        else:
            logger.warning("overload: %d entries wait, and no stream may be shed", waiting)


def left_out(log: StreamLog, after: int, upto: int, shed: StreamShed | None) -> frozenset[int]:
    """The numbers of the entries (after, upto] that are not evaluated."""
    if shed is None or shed.keep >= 1:
        return frozenset()
    batches = list(log.read(after, upto))
    numbers = np.concatenate([np.arange(first, first + batch.num_rows) for first, batch in batches])
    worths = np.zeros(len(numbers))
    if shed.valued:
        table = pa.Table.from_batches([batch for _, batch in batches])
        worths = _of_tuples(log, table, shed) if log.stream.is_tuples else _of_documents(table, shed)
    return frozenset(numbers[~kept(numbers, worths, shed.keep)].tolist())


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
    """Which rows of a column satisfy a condition; each distinct value is compared once."""
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
    """Values of elements or attributes of a name, as they stand in the text: parsing costs more than most queries do.
    What is found decides which documents are kept, never what is a result."""
    if name[0] == "@":
        return re.compile(rb"\s(?:[^\s=<>]+:)?" + re.escape(name[1:].encode()) + rb"\s*=\s*[\"']([^\"'<]*)")
    return re.compile(rb"<(?:[^\s<>/]+:)?" + re.escape(name.encode()) + rb"(?:\s[^<>]*)?>([^<]*)<")

"""Shedding in the job: the driver decides for a micro-batch, the workers leave out what the decision says.

In: the offsets of the streams, and the preferences of their queries. Out: by stream, which share of the documents loses
which patterns, and which share is left out (`shedding/decision.py`). A decision is recorded before its micro-batch
runs, so that a repeated micro-batch sheds the same, and it is part of the commit. Streams of results and files that
change in place are never shed: the former are already shed by their inputs, and in the latter each change counts.
Conditions are suspended only in documents, since columns need no walk, and not if a stream says `make up`: patterns of
outputs and whole documents can be made up later, the results of single queries cannot.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fishweir.algebra.nodes import Source, StreamDefinition, sources_of
from fishweir.pipeline.calibration import calibrated
from fishweir.pipeline.home import Home, open_log, read_json, write_json
from fishweir.pipeline.output_timing import OutputTimer
from fishweir.pipeline.shed_costs import counted
from fishweir.pipeline.walk_counters import load_walk_counters
from fishweir.records import dataclass
from fishweir.shedding.decision import StreamShed, levels_for, may_shed, valued_by
from fishweir.shedding.overload import Budget, Overload, remaining
from fishweir.shedding.suspension import Parts, PreferenceGroup, Variant, chain, parts_of
from fishweir.shedding.units import Unit, unit_of

logger = logging.getLogger("fishweir.shedding")

PreferenceGroups = Mapping[Source, Sequence[PreferenceGroup]]
OFTEN, SHARE = 30.0, 0.0005
"""Seconds between two counts of the patterns of a stream, and the maximum share of time for counting."""
RECENT = 20
"""The number of recent micro-batches that determine the results per document."""
MANY = 10
"""The number of topmost elements per document from which levels are assigned to elements instead of documents."""
REMEMBERED = 1_000
"""The number of micro-batches for which unconstructed outputs are remembered."""


@dataclass(frozen=True)
class _StreamVariants:
    """The variants of a stream's query set, as of a catalog version."""

    version: int
    stream: StreamDefinition
    groups: Sequence[PreferenceGroup]
    variants: tuple[Variant, ...]
    unit: Unit | None = None
    """The topmost elements, if documents have many."""


class Shedder:
    """Decides what each micro-batch sheds. For a catalog version, `groups` returns the preferences of queries. `behind`
    returns the micro-batches that wait for their outputs, with their numbers of documents.
    """

    def __init__(
        self,
        home: Home,
        overload: Overload,
        groups: Callable[[int], PreferenceGroups],
        spent: OutputTimer | None = None,
        behind: Callable[[], Sequence[tuple[int, int]]] = tuple,
    ) -> None:
        self.home, self.overload, self.groups = home, overload, groups
        self.spent, self.behind = spent or OutputTimer(), behind
        self._path = home.path / "shedding.json"
        self._by_stream: dict[int, _StreamVariants] = {}
        self._decided_at = time.perf_counter()
        self._counted: dict[int, tuple[float, float]] = {}
        """By stream, when its patterns were last counted, and how many seconds that took."""
        self._parts = Variant()
        """The cost of the evaluated documents of the last decision, relative to that with all patterns."""
        self._constructing: dict[int, float] = {}
        """By micro-batch with omitted patterns, the share of its outputs that is constructed."""
        self._matches: deque[tuple[int, int]] = deque(maxlen=RECENT)
        """Results and documents of recent micro-batches."""
        self._share = 1.0
        self._recorded: dict[str, Any] | None = None

    def decide(self, batch: int, version: int, waiting: Mapping[int, int]) -> dict[int, StreamShed]:
        """The decision for a micro-batch by stream, for the numbers of waiting entries by stream."""
        if self._recorded is None:
            self._recorded = read_json(self._path, {})
        if self._recorded.get("batch") == batch:
            return {int(id): StreamShed.from_json(one) for id, one in self._recorded["streams"].items()}
        began, busy = time.perf_counter(), time.thread_time()
        before = self.overload.shedding
        passed, self._decided_at = began - self._decided_at, began
        budget = self.overload.budget(sum(waiting.values()), self._behind(), passed)
        found = {} if budget is None else self._decided(waiting, budget, version)
        if self.overload.shedding != before:
            self._log_change(found, sum(waiting.values()))
        self._record_costs(batch, found)
        self.overload.deciding += time.thread_time() - busy
        decided = time.perf_counter()
        if found:
            self._recorded = {"batch": batch, "streams": {str(id): one.to_json() for id, one in found.items()}}
            write_json(self._path, self._recorded)
        self.overload.recording += time.perf_counter() - decided
        return found

    def _behind(self) -> float:
        """The number of documents that wait for their outputs. Those with omitted patterns are weighted by the cost of
        their outputs.
        """
        realized, parts = self.overload.realized, self._constructing
        return sum(documents * remaining(parts.get(batch, 1.0), realized) for batch, documents in self.behind())

    def took(self, documents: int, shed: int, seconds: float, matches: int = 0) -> None:
        if documents:
            self._matches.append((matches, documents))
        self.overload.took(documents, seconds, shed, self._parts.matching)
        for one in self.spent.take():
            part = self._constructing.get(one.batch, 1.0)
            self.overload.constructed(one.documents, one.seconds, part, one.published)

    def rest(self) -> None:
        """Ends the burst: no entries and no outputs wait."""
        if self.overload.shedding:
            self.overload.budget(0)
            self._log_change({}, 0)

    def documents(self, most: int) -> int:
        """The number of entries of a micro-batch, larger under overload, since only some entries are evaluated."""
        return int(most / self._share)

    def _decided(self, waiting: Mapping[int, int], budget: Budget, version: int) -> dict[int, StreamShed]:
        """The decision by stream. If only some streams may be shed, they make up for the others."""
        found: dict[int, tuple[_StreamVariants, bool]] = {}
        for id, count in waiting.items():
            own = self._stream_variants(id, budget, version) if count else None
            if own is not None:
                may_drop = may_shed(own.stream.shed_allowed, own.groups)
                if may_drop or len(own.variants) > 1:
                    found[id] = own, may_drop
        possible = sum(waiting[id] for id in found)
        if not possible:
            return {}
        seconds = max(0.0, budget.seconds - (sum(waiting.values()) - possible) * budget.whole)
        decided = {}
        for id, (own, may_drop) in found.items():
            room = seconds * waiting[id] / possible
            began = time.thread_time()
            levels = levels_for(own.variants, waiting[id], room, budget, may_drop)
            self.overload.choosing += time.thread_time() - began
            valued, unit, stream = valued_by(own.groups), own.unit, own.stream
            inside = unit is not None and unit.is_all and not valued and stream.make_up is None
            decided[id] = StreamShed(levels, valued, stream.shed_allowed, unit.names if unit else (), inside)
        return {id: one for id, one in decided.items() if not one.is_nothing}

    def _stream_variants(self, id: int, budget: Budget, version: int) -> _StreamVariants | None:
        """The variants of a stream; None if it is never shed."""
        known = self._by_stream.get(id)
        at, took = self._counted.get(id, (0.0, 0.0))
        began = time.perf_counter()
        if known is None or known.version != version or began - at > max(OFTEN, took / SHARE):
            stream = open_log(self.home.streams, id).stream
            if stream.virtual or stream.rows:
                return None
            by_source = self.groups(version)
            groups = [group for source in sources_of(stream) for group in by_source.get(source, ())]
            made_up = stream.make_up is not None
            parts = parts_of(groups, stream.shed_allowed, not (stream.is_tuples or made_up), made_up)
            known = self._by_stream[id] = _StreamVariants(version, stream, groups, *self._variants(id, parts, budget))
            self._counted[id] = began, time.perf_counter() - began
        return known

    def _variants(self, id: int, parts: Parts, budget: Budget) -> tuple[tuple[Variant, ...], Unit | None]:
        unit = unit_of(parts)
        if not parts.parts and unit is None:
            return (Variant(),), None
        log = open_log(self.home.streams, id)
        walked = load_walk_counters(self.home, id)
        costs = counted(log, id, parts, walked.skipped / max(1, walked.elements), calibrated(), self._results)
        many = unit is not None and costs.nodes(unit.path) >= MANY
        return chain(parts, (budget.matching, budget.constructing), costs.saved), unit if many else None

    @property
    def _results(self) -> float:
        """Recent results per document."""
        matches, documents = (sum(some) for some in zip(*self._matches, strict=True)) if self._matches else (0, 0)
        return matches / documents if documents else 0.0

    def _record_costs(self, batch: int, found: Mapping[int, StreamShed]) -> None:
        """Records the average cost of the evaluated documents, which the measured times refer to."""
        self._share = min((one.keep for one in found.values()), default=1.0)
        matching, constructing, kept = 0.0, 0.0, 0.0
        for id, one in found.items():
            by_parts = {(v.returns, v.conditions, v.relaxed): v for v in self._by_stream[id].variants}
            for level in one.levels:
                variant = by_parts[level.returns, level.conditions, level.relaxed]
                matching += level.share * variant.matching
                constructing += level.share * variant.constructing
                kept += level.share
        self._parts = Variant(1.0, matching / kept, constructing / kept) if kept else Variant()
        if kept:
            self._constructing[batch] = self._parts.constructing
            self._constructing.pop(batch - REMEMBERED, None)

    def _log_change(self, found: Mapping[int, StreamShed], waiting: int) -> None:
        if not self.overload.shedding:
            logger.warning("shedding ends: %d entries are waiting", waiting)
        elif found:
            names = ", ".join(f"{one} of {open_log(self.home.streams, id).stream.name}" for id, one in found.items())
            logger.warning("shedding starts: %d entries are waiting, leaving out %s", waiting, names)
        else:
            logger.warning("overload: %d entries are waiting, and no stream allows shedding", waiting)

"""The stage of `distinct`: selects documents by its inner stages, keeps them as candidates, and passes on the firsts.

In: batches of documents. Out: result rows of the documents that are the first of their key, in arrival order over all
streams, and the state that later micro-batches need. Documents that arrived together are ordered by stream.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fishweir.algebra.nodes import Source
from fishweir.evaluate.arrays import Ints, expand
from fishweir.evaluate.distinct.group import DistinctGroup, key_codes, query_codes
from fishweir.evaluate.distinct.kernels import first_of_each
from fishweir.evaluate.distinct.state import (
    Candidates,
    DistinctState,
    Firsts,
    Times,
    joined_candidates,
    joined_firsts,
    no_candidates,
    no_firsts,
)
from fishweir.evaluate.group import Batch, Kind, Stage, State
from fishweir.evaluate.matches import Matches
from fishweir.evaluate.outline import Outline
from fishweir.evaluate.results import ResultRows, result_batch, to_lists
from fishweir.evaluate.watermarks import Watermarks
from fishweir.evaluate.witnesses.path_tables import Path


@dataclass(frozen=True)
class DistinctOperator:
    """The groups of a segment by place, and the operators that select their documents, with their kinds."""

    segment: str
    groups: Mapping[int, DistinctGroup]
    inner_bundles: Sequence[tuple[str, Any]]


class DistinctStage(Stage):
    is_by_arrival = True

    def __init__(self, operators: Sequence[DistinctOperator], kinds: Mapping[str, Kind]) -> None:
        self.groups = {(one.segment, place): group for one in operators for place, group in one.groups.items()}
        by_kind: dict[str, list[Any]] = defaultdict(list)
        for one in operators:
            for kind, operator in one.inner_bundles:
                by_kind[kind].append(operator)
        self.inner = [kinds[kind].stage(own) for kind, own in by_kind.items()]
        self.sources = {group.source for group in self.groups.values()}
        self.classes = {int(group.class_key): group.sources for group in self.groups.values()}

    def reads(self, sources: Sequence[Source]) -> bool:
        return not self.sources.isdisjoint(sources)

    def counted(self, sources: Sequence[Source]) -> tuple[list[Path], set[Path]]:
        parts = [stage.counted(sources) for stage in self.inner]
        return [path for paths, _ in parts for path in paths], {path for _, worded in parts for path in worded}

    def keep(self, batch: Batch) -> DistinctState | None:
        found = []
        codes: dict[tuple[Path, ...], Any] = {}
        for stage in self.inner:
            for segment, place, matches in stage.matches(batch.sources, batch.witnesses):
                group = self.groups[segment, place]
                if len(matches):
                    own = codes.setdefault(group.key_paths, None) or key_codes(group.key_paths, batch)
                    codes[group.key_paths] = own
                    found.append(_candidates(group, matches, batch, *own))
        return DistinctState(joined_candidates(found), no_firsts()) if found else None

    def probe(self, new: Sequence[Any], old: Sequence[Any], part: int, parts: int) -> Iterator[ResultRows | State]:
        """The results of one part. All documents with the same query and key belong to the same part."""
        candidates = joined_candidates([state.candidates for state in new])
        rows = np.repeat(np.arange(len(candidates)), np.diff(candidates.starts))
        codes = query_codes(candidates.codes[rows], candidates.queries)
        mine = np.flatnonzero(codes % np.uint64(parts) == part)
        if not len(mine):
            return
        rows, codes = rows[mine], codes[mine]
        before = joined_firsts([no_firsts(), *(state.firsts.of(np.unique(codes)) for state in old)])
        passes = _passing(candidates, rows, codes, before)
        yield from _result_rows(candidates, rows[passes], candidates.queries[mine][passes])
        yield DistinctState(no_candidates(), _firsts(candidates, rows, codes, passes))

    def needed(
        self, states: Sequence[State | Outline], watermarks: Watermarks, dropped: Collection[int]
    ) -> NeededFirsts:
        """A first is needed until no stream of its query can deliver another document within its interval."""
        reached, used = {}, dict[int, float]()
        for key, sources in self.classes.items():
            streams = [stream for source in sources for stream in watermarks.streams(source)]
            least = min((watermarks.least(source, stream) for source in sources for stream in streams), default=np.inf)
            reached[key] = least
            used |= {stream: max(least, used.get(stream, -np.inf)) for stream in streams}
        return NeededFirsts(reached, used)

    def merged(self, states: Sequence[Any], needed: Any = None) -> DistinctState:
        """Without `needed`, the states are those of one micro-batch whose candidates have not been probed yet."""
        firsts = joined_firsts([state.firsts for state in states])
        if needed is None:
            return DistinctState(joined_candidates([state.candidates for state in states]), firsts)
        return DistinctState(no_candidates(), firsts.take(needed.chosen(firsts)))


@dataclass(frozen=True)
class NeededFirsts:
    """By class of queries, the watermark of their streams. A first is needed if it matters until then or later.
    Candidates are not needed."""

    reached: Mapping[int, float]
    used: Mapping[int, float]

    def chosen(self, firsts: Firsts) -> NDArray[np.bool_]:
        classes, place = np.unique(firsts.classes, return_inverse=True)
        reached = np.array([self.reached.get(int(one), np.inf) for one in classes])
        return np.asarray(firsts.ends >= reached[place], np.bool_)

    def share(self, state: Any) -> float:
        ends = state.ends_by_class.items()
        count = sum(len(own) - int(np.searchsorted(own, self.reached.get(key, np.inf))) for key, own in ends)
        return count / max(1, len(state))


def _candidates(group: DistinctGroup, matches: Matches, batch: Batch, codes: Any, keyed: Any) -> Candidates:
    """The rows of some matches, with their queries listed."""
    of_slice = np.repeat(np.arange(len(matches)), np.diff(matches.slice_offsets) // 2)
    slices = matches.slices.reshape(-1, 2)
    source, positions = expand(slices[:, 0], slices[:, 1])
    of_member = np.repeat(np.arange(len(matches)), np.diff(matches.member_offsets))
    rows = np.concatenate([of_slice[source], of_member])
    queries = np.concatenate([group.members[positions], np.asarray(matches.members, np.int64)])
    documents, width = matches.documents, matches.nodes.shape[1]
    return Candidates(
        np.full(len(matches), batch.stream, np.int64),
        batch.numbers[documents],
        batch.times[documents],
        batch.arrivals[documents],
        codes[documents],
        keyed[documents],
        np.full(len(matches), group.distinct.seconds),
        np.full(len(matches), group.class_key, np.uint64),
        np.arange(len(matches) + 1) * width,
        matches.nodes.ravel().astype(np.int64),
        np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(matches)))]).astype(np.int64),
        queries[np.argsort(rows, kind="stable")],
    )


def _passing(found: Candidates, rows: Ints, codes: Any, before: Firsts) -> NDArray[np.bool_]:
    """For each pair of a row and a query, whether it is a result. A document that a query selects by several rows, such
    as those of several alternatives, counts as one document."""
    order = _arrival_order(found)
    keyed = found.keyed[rows].astype(bool)
    kept, place = np.unique(np.stack([codes.view(np.int64), order[rows]]), axis=1, return_inverse=True)
    own_codes, orders = kept[0].view(np.uint64), kept[1]
    _, example = np.unique(place.ravel(), return_index=True)
    times = np.concatenate([before.times, found.times[rows][example]])
    seconds = np.concatenate([np.zeros(len(before)), found.seconds[rows][example]])
    every = np.concatenate([before.codes, own_codes])
    is_new = np.arange(len(every)) >= len(before)
    sequence = np.lexsort((np.where(is_new, np.concatenate([np.full(len(before), -1), orders]), -1), every))
    sorted_codes = every[sequence]
    starts = np.flatnonzero(np.concatenate([[True], sorted_codes[1:] != sorted_codes[:-1], [True]]))
    passes = np.zeros(len(every), np.bool_)
    first_of_each(starts, times[sequence], seconds[sequence], is_new[sequence], passes)
    decided = np.zeros(len(every), np.bool_)
    decided[sequence] = passes
    return np.asarray(decided[len(before) :][place.ravel()] | ~keyed, np.bool_)


def _arrival_order(found: Candidates) -> Ints:
    """The rank of each row's document in arrival order. Setting the clock back does not reorder a stream."""
    by_stream = np.lexsort((found.numbers, found.streams))
    arrivals: Times = found.arrivals.copy()
    for stream in np.unique(found.streams):
        own = by_stream[found.streams[by_stream] == stream]
        arrivals[own] = np.maximum.accumulate(found.arrivals[own])
    order = np.lexsort((found.numbers, found.streams, arrivals))
    same = (np.diff(found.numbers[order]) == 0) & (np.diff(found.streams[order]) == 0)
    places = np.empty(len(order), np.int64)
    places[order] = np.concatenate([[0], np.cumsum(~same)])
    return places


def _firsts(found: Candidates, rows: Ints, codes: Any, passes: NDArray[np.bool_]) -> Firsts:
    chosen = np.flatnonzero(passes & found.keyed[rows].astype(bool))
    own = rows[chosen]
    times = found.times[own]
    every = Firsts(codes[chosen], times, times + found.seconds[own], found.classes[own])
    order = np.lexsort((every.times, every.codes))
    sorted_ = every.take(order)
    again = (np.diff(sorted_.codes) == 0) & (np.diff(sorted_.times) == 0)
    return sorted_.take(np.concatenate([[True], ~again])[: len(sorted_)])


def _result_rows(found: Candidates, rows: Ints, queries: Ints) -> Iterator[ResultRows]:
    """One result row for each candidate row that has queries left."""
    chosen, starts = np.unique(rows, return_index=True)
    if not len(chosen):
        return
    lo, hi = found.node_starts[chosen], found.node_starts[chosen + 1]
    _, nodes = expand(lo, hi)
    batch = result_batch(
        len(chosen),
        stream=found.streams[chosen],
        document=found.numbers[chosen],
        side=0,
        each=False,
        timestamp=found.times[chosen],
        nodes=to_lists(np.concatenate([[0], np.cumsum(hi - lo)]), found.nodes[nodes]),
        members=to_lists(np.append(starts, len(rows)), queries),
    )
    yield ResultRows(batch, len(chosen))

"""A kind of query from outside the package: every n-th document of a stream that has an element at a path.

It follows "How to add a kind of group" in CONTRIBUTING: a shape and a template, a group, a stage with its own state, a
strategy, a kind. Queries of one path share one group and one state; they differ in n.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fishweir.algebra.clauses import normals_of
from fishweir.algebra.codec import from_json, register_nodes, to_json
from fishweir.algebra.construct import element_text
from fishweir.algebra.nodes import Constant, CreateQuery, Slot, Source, Step
from fishweir.algebra.normal import ANY_ROOT, Normal
from fishweir.evaluate.group import (
    Batch,
    Bundle,
    ExplainContext,
    Group,
    GroupSummary,
    Kind,
    Paths,
    PlacedBundle,
    Stage,
    State,
    Strategy,
)
from fishweir.evaluate.plan.registry import register_kind
from fishweir.evaluate.plan.rules import register_rule
from fishweir.evaluate.query_rows import QueryRow
from fishweir.evaluate.results import ResultRows, result_batch, rows_to_lists, to_lists
from fishweir.evaluate.statistics import Statistics
from fishweir.evaluate.watermarks import Watermarks
from fishweir.pipeline.outputs import Constructed, ResultDocuments, constructed

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class EveryNth:
    """The shape: a source and the name of an element that must be below the document element; n is a constant."""

    source: Source
    name: str
    slots: tuple[Slot, ...] = (Slot(0, "number"),)

    @property
    def sources(self) -> list[Source]:
        return [self.source]


@dataclass(frozen=True, slots=True)
class EveryNthTemplate:
    kind: ClassVar[str] = "every-nth"

    source: Source
    name: str

    @property
    def signatures(self) -> list[str]:
        return [f"every n-th with {self.name} in {self.source}"]


register_nodes(EveryNth, EveryNthTemplate)


@normals_of.register
def _normals(shape: EveryNth) -> Iterable[Any]:
    return [Normal(EveryNthTemplate(shape.source, shape.name), (), (0,))]  # type: ignore[arg-type]


@constructed.register
def _output(shape: EveryNth, constants: Sequence[Constant], found: ResultDocuments) -> list[Constructed]:
    return [({}, element_text(found.documents[0].nodes[0]))]


def every_nth(name: str, stream: str, element: str, n: int) -> CreateQuery:
    return CreateQuery(EveryNth(Source(stream), element), (float(n),), name, text=f"every {n} {stream}/{element}")  # type: ignore[arg-type]


@dataclass(frozen=True)
class NthGroup:
    """The queries over one path: their numbers and their n."""

    kind: ClassVar[str] = "every-nth"

    template: EveryNthTemplate
    numbers: Ints
    every: Ints

    @property
    def size(self) -> int:
        return len(self.numbers)

    @property
    def members(self) -> Ints:
        return self.numbers

    @property
    def path(self) -> tuple[Step, ...]:
        return (ANY_ROOT, Step(self.template.name))

    def paths(self, sources: Sequence[Source]) -> Paths:
        return {self.path: False} if self.template.source in sources else {}

    def header(self) -> Any:
        return to_json(self.template)

    def arrays(self) -> dict[str, Any]:
        return {"numbers": self.numbers, "every": self.every}


@dataclass(frozen=True)
class Counted:
    """The state: documents with the element, by source and name, and the number of documents before those that are
    kept."""

    keys: Ints
    before: Ints
    streams: Ints
    numbers: Ints
    times: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def newest(self) -> float:
        return float(self.times.max(initial=-np.inf))

    def arrays(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


class Everything:
    used: Mapping[int, float] = {}

    def share(self, state: State) -> float:
        return 1.0


class NthStage(Stage):
    def __init__(self, groups: Sequence[NthGroup]) -> None:
        self.groups: dict[tuple[Source, str], list[NthGroup]] = defaultdict(list)
        for group in groups:
            self.groups[group.template.source, group.template.name].append(group)
        self.places = {key: _key(key) for key in self.groups}

    def reads(self, sources: Sequence[Source]) -> bool:
        return any(source in sources for source, _ in self.groups)

    def keep(self, batch: Batch) -> Counted:
        parts = [_nothing()]
        for key, groups in self.groups.items():
            table = batch.witnesses.get(groups[0].path) if key[0] in batch.sources else None
            if table is not None:
                there = np.unique(table.documents)
                size = len(there)
                ints = np.full(size, self.places[key]), np.zeros(size, np.int64), np.full(size, batch.stream)
                parts.append(Counted(*ints, batch.numbers[there], batch.times[there]))
        return self.merged(parts)

    def probe(self, new: Sequence[Any], old: Sequence[State], part: int, parts: int) -> Iterator[ResultRows]:
        """Counts on from all earlier documents. Only one task does it, since it is a sum."""
        if part:
            return
        before = self.merged([*old, _nothing()], Everything())
        fresh = self.merged(new)
        for key, groups in self.groups.items():
            own = np.flatnonzero((fresh.keys == self.places[key]) & (fresh.numbers > 0))
            own = own[np.lexsort((fresh.numbers[own], fresh.streams[own]))]
            count = int(before.before[before.keys == self.places[key]].sum()) + 1
            for group in groups:
                yield from _fired(group, fresh, own, count)

    def needed(self, states: Sequence[State], watermarks: Watermarks, dropped: Collection[int]) -> Everything:
        return Everything()

    def merged(self, states: Sequence[Any], needed: Any = None) -> Counted:
        """After the probe, only the number of documents is kept."""
        whole = Counted(*(np.concatenate([getattr(s, f.name) for s in states]) for f in fields(Counted)))
        if needed is None and not any((s.before > 0).any() for s in states):
            return whole
        keys = np.unique(whole.keys)
        own = [whole.keys == key for key in keys]
        counts = [int(whole.before[mine].sum() + (whole.numbers[mine] > 0).sum()) for mine in own]
        none = np.zeros(len(keys), np.int64)
        return Counted(keys, np.array(counts, np.int64), none, none, np.full(len(keys), whole.newest))


def _fired(group: NthGroup, fresh: Counted, own: Ints, count: int) -> Iterator[ResultRows]:
    at, queries = np.nonzero((np.arange(count, count + len(own))[:, None] % group.every[None, :]) == 0)
    if not len(at):
        return
    rows, starts = np.unique(at, return_index=True)
    chosen = own[rows]
    batch = result_batch(
        len(rows),
        stream=fresh.streams[chosen],
        document=fresh.numbers[chosen],
        side=0,
        each=False,
        timestamp=fresh.times[chosen],
        nodes=rows_to_lists(np.zeros((len(rows), 1), np.int64)),
        members=to_lists(np.append(starts, len(at)), group.numbers[queries]),
    )
    yield ResultRows(batch, len(rows))


def _nothing() -> Counted:
    none = np.empty(0, np.int64)
    return Counted(none, none, none, none, np.empty(0))


def _key(key: tuple[Source, str]) -> int:
    return int.from_bytes(f"{key[0]}/{key[1]}".encode()[:7].ljust(7, b"\0"), "big")


class Counting(Strategy):
    name, kind, module = "counting", "every-nth", __name__

    def take(self, groups: Mapping[int, Any], statistics: Statistics) -> list[Bundle]:
        return [self.bundle([place]) for place in groups]

    def operator(self, placed: PlacedBundle) -> Any:
        return placed.groups[0]


class EveryNthKind(Kind):
    name, module = "every-nth", __name__

    def build(self, rows: Iterable[QueryRow], statistics: Statistics) -> list[Group]:
        found: dict[EveryNthTemplate, list[tuple[int, int]]] = defaultdict(list)
        for number, template, constants in rows:
            found[template].append((number, int(constants[0])))
        return [NthGroup(template, *np.array(some, np.int64).T) for template, some in found.items()]

    def merge(self, groups: Sequence[NthGroup], dropped: Ints, statistics: Statistics) -> list[Group]:
        found: dict[EveryNthTemplate, list[NthGroup]] = defaultdict(list)
        for group in groups:
            found[group.template].append(group)
        merged = []
        for template, some in found.items():
            numbers, every = (np.concatenate([getattr(g, name) for g in some]) for name in ("numbers", "every"))
            keep = ~np.isin(numbers, dropped)
            merged.append(NthGroup(template, numbers[keep], every[keep]))
        return [group for group in merged if group.size]

    def read(self, header: Any, arrays: Mapping[str, Any]) -> Group:
        return NthGroup(from_json(header), np.asarray(arrays["numbers"]), np.asarray(arrays["every"]))

    def stage(self, operators: Sequence[NthGroup]) -> Stage:
        return NthStage(operators)

    def read_state(self, arrays: Mapping[str, Any]) -> State:
        return Counted(**{name: np.asarray(array) for name, array in arrays.items()})

    def explain(self, number: int, template: Any, constants: Sequence[Constant], about: ExplainContext) -> list[str]:
        group = next(g for g in about.groups if isinstance(g, NthGroup) and number in g.numbers)
        return [f"  counts    {template.signatures[0]}, n = {constants[0]:g}", f"  shared    by {group.size} queries"]

    def describe(self, bundles: Sequence[PlacedBundle]) -> tuple[list[GroupSummary], list[str]]:
        groups: list[Any] = [group for placed in bundles for group in placed.groups]
        return [GroupSummary(group.size, group.template.signatures[0]) for group in groups], []


STRATEGIES = {"counting": Counting()}
register_kind(EveryNthKind())
register_rule(STRATEGIES["counting"])

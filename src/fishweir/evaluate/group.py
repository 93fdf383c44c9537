"""The protocol of the plan: kinds, groups, strategies and stages.

A *group* is a set of queries that are evaluated together. A *kind* builds its groups from query rows, merges them,
writes and reads them, and explains them. Rules (plan/rules.py) decide which *strategy* evaluates which groups. The
strategy creates an *operator* from the groups it takes. A *stage* consists of all operators of one kind in the plan in
force. It matches a batch of documents, keeps state for later documents, probes the state, and determines which state is
still needed. Kinds are listed in plan/registry.py. A stage that matches nothing itself, or keeps no state, inherits the
empty defaults.

A kind can delegate matching to another kind. It passes *sides* (matches.py) to that kind as rows in addition to the
queries' own rows, so that a source has one plan regardless of which kinds read it. A batch is matched once. Its stages
then decide from the matched sides what to keep.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fishweir.algebra.nodes import Constant, Source
from fishweir.evaluate.arrays import Ints
from fishweir.evaluate.matches import NO_SIDES, Matches, SideMatches, all_sides
from fishweir.evaluate.outline import Outline
from fishweir.evaluate.query_rows import PathRow, QueryRow
from fishweir.evaluate.results import ResultRows
from fishweir.evaluate.statistics import Statistics
from fishweir.evaluate.watermarks import Watermarks
from fishweir.evaluate.witnesses.counters import StreamCounters
from fishweir.evaluate.witnesses.path_tables import Path, PathTable

Paths = dict[Path, bool]
"""The paths to look for in documents. The value tells whether the path's values are read."""


Walk = Callable[[Paths], Mapping[Path, PathTable]]
"""Looks up paths in one document."""


def origin_of(stream: Any, number: Any) -> Any:
    """The id of a document, from its stream and its number in the stream."""
    return stream << 40 | number


@dataclass(frozen=True)
class Batch:
    """Documents of one stream, ready to be matched. `sources` are the names by which queries refer to the stream.
    `witnesses` are grouped by path."""

    stream: int
    sources: tuple[Source, ...]
    numbers: Ints
    times: NDArray[np.float64]
    witnesses: Mapping[Path, PathTable]
    arrivals: NDArray[np.float64]
    since: int | Sequence[int] = 0
    """The version of the catalog when the documents arrived."""
    changes: Sequence[tuple[int, float, str]] = ()
    """For a changing file: number, arrival time and key of each inserted, updated or deleted row."""
    origins: Sequence[int] = ()
    """For documents passed on by a published query, the original document; -1 for new documents."""
    sides: SideMatches = NO_SIDES
    """The matches made for other kinds."""

    def __len__(self) -> int:
        return len(self.numbers)

    @classmethod
    def of(
        cls,
        stream: int,
        sources: Sequence[Source],
        numbers: ArrayLike,
        times: ArrayLike,
        witnesses: Mapping[Path, PathTable],
        arrivals: ArrayLike | None = None,
        **more: Any,
    ) -> Batch:
        """Creates a batch from lists or arrays. Without `arrivals`, the event times serve as arrival times."""
        own = np.asarray(times, np.float64)
        came = own if arrivals is None else np.asarray(arrivals, np.float64)
        return cls(stream, tuple(sources), np.asarray(numbers, np.int64), own, witnesses, came, **more)

    def matched(self, sides: Iterable[SideMatches]) -> Batch:
        """The same batch with the sides that its documents match."""
        return replace(self, sides=all_sides(sides))


class Group(Protocol):
    """Queries of one kind that are evaluated together. Immutable; written to a segment file and mapped from it."""

    kind: ClassVar[str]

    @property
    def size(self) -> int:
        """The number of queries, not counting sides."""

    @property
    def members(self) -> Ints:
        """The query or side at each position. Slices of result rows refer to these positions."""

    def paths(self, sources: Sequence[Source]) -> Paths:
        """The paths to look for in documents of the given sources."""

    def header(self) -> Any:
        """The part that is written as JSON. `arrays` are written unchanged."""

    def arrays(self) -> dict[str, Any]: ...


class CompactQueries(Protocol):
    """Queries that are written to a segment file in columns. Readers of the segment build groups from them."""

    kind: ClassVar[str]

    @property
    def size(self) -> int: ...

    @property
    def groups(self) -> int:
        """The number of groups that readers build."""

    def bundle(self, place: int) -> Bundle:
        """The bundle that evaluates these groups, given the place of the first one."""

    def header(self) -> Any: ...

    def arrays(self) -> dict[str, Any]: ...


class RelaxedQueries(Protocol):
    """The queries of an operator, without their conditions on some paths."""

    @property
    def paths(self) -> Paths: ...

    def matches(self, witnesses: Mapping[Path, PathTable]) -> Iterator[tuple[int, Any, Matches]]:
        """Matches by group, each with the template of the group's queries."""


@dataclass(frozen=True)
class Bundle:
    """Groups of a segment, given by their places, that one strategy evaluates together."""

    strategy: str
    groups: tuple[int, ...]
    parameter: str = ""
    """Further parameters of the strategy, in its own format."""
    module: str = ""
    """The module that defines the strategy, if it is not one of the default rules."""
    arrays: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """What the strategy has built for its operator. It is written to the segment file, and workers map it from there:
    no micro-batch has to wait for it."""

    def header(self) -> dict[str, Any]:
        """The part that is written as JSON."""
        return {"strategy": self.strategy, "groups": self.groups, "parameter": self.parameter, "module": self.module}

    @classmethod
    def read(cls, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> Bundle:
        return cls(**{**header, "groups": tuple(header["groups"]), "arrays": arrays})


@dataclass(frozen=True)
class PlacedBundle:
    """A bundle of a segment, together with its groups."""

    segment: str
    bundle: Bundle
    groups: tuple[Group, ...]

    @property
    def first(self) -> int:
        return self.bundle.groups[0]


class State(Protocol):
    """The state of a stage for some documents: declared columns, written once and mapped by each task that probes
    it. A state may have an `outline`, unless more than the times of its documents decides whether it is needed."""

    def __len__(self) -> int: ...

    @property
    def newest(self) -> float:
        """The time of the newest document."""

    def arrays(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class GroupSummary:
    """A group as listed by `explain`: its size, its signature and further lines."""

    size: int
    signature: str
    lines: list[str] = field(default_factory=list)


class Needed(Protocol):
    """The state that later documents may still join with."""

    @property
    def used(self) -> Mapping[int, float]:
        """By stream, the watermark used for the decision. Older documents that arrive later may miss results."""

    def share(self, state: State | Outline) -> float:
        """The fraction of a state that is needed, from 0 to 1. By an outline: 1 if any of it is needed."""


class Stage:
    """All groups of one kind in a plan. The defaults suit a kind that neither matches documents nor keeps state."""

    is_by_arrival: bool = False
    """Whether results depend on arrival order, so that documents that arrived together are evaluated together."""
    states_at_once: int = 1
    """The number of states that a probe reads about as fast as one. States are merged only if there are more."""
    takes_outlines: bool = False
    """Whether `needed` accepts outlines instead of states."""

    def matches(
        self, sources: Sequence[Source], witnesses: Mapping[Path, PathTable]
    ) -> Iterator[tuple[str, int, Matches]]:
        """The matches of the queries in a batch, each with the segment and the group that its slices refer to."""
        return iter(())

    def relaxed(self, sources: Sequence[Source], paths: frozenset[Path]) -> Sequence[tuple[str, RelaxedQueries]]:
        """The queries with conditions on some paths, without these conditions, each with its segment."""
        return ()

    def counted(self, sources: Sequence[Source]) -> tuple[list[Path], set[Path]]:
        """The paths whose values planning depends on, and the subset whose words are counted too."""
        return [], set()

    def only(self, queries: Sequence[int]) -> Stage | None:
        """The operators that evaluate some of these queries and keep state for them; None if there are none."""
        return None

    def evaluates(self, queries: Sequence[int]) -> bool:
        """Whether the stage evaluates all of these queries and keeps state for them."""
        return False

    def reads(self, sources: Sequence[Source]) -> bool:
        """Whether the stage keeps state about documents of these sources."""
        return False

    def keep(self, batch: Batch) -> State | None:
        """The state of a batch that this micro-batch and later ones probe, once it is `merged` with that of the other
        batches."""
        return None

    def probe(self, new: Sequence[State], old: Sequence[State], part: int, parts: int) -> Iterator[ResultRows | State]:
        """The results of joining new documents with each other and with old ones, restricted to one `part` of `parts`.
        A stage whose later results depend on these results also yields a state that records them."""
        return iter(())

    def needed(self, states: Sequence[State | Outline], watermarks: Watermarks, dropped: Collection[int]) -> Needed:
        """The state that later documents may still join with, if they are not older than the watermarks of their
        streams. `dropped` are queries that no longer exist."""
        raise TypeError(f"{type(self).__name__} keeps no state")

    def merged(self, states: Sequence[State], needed: Needed | None = None) -> State:
        """Several states merged into one, without the data that is no longer needed."""
        raise TypeError(f"{type(self).__name__} keeps no state")


@dataclass(frozen=True)
class ExplainContext:
    """The input of `explain`: the plan's groups and the counts so far."""

    groups: Sequence[Group]
    bundles: Sequence[PlacedBundle]
    statistics: Statistics
    walked: Mapping[Source, StreamCounters]
    dropped: int | None


class Strategy(ABC):
    """One way to evaluate groups of a kind."""

    name: ClassVar[str]
    kind: ClassVar[str]
    module: ClassVar[str] = ""
    title: ClassVar[str] = ""
    """The label in `explain`, if it differs from the name."""

    @abstractmethod
    def take(self, groups: Mapping[int, Any], statistics: Statistics) -> list[Bundle]:
        """The bundles that the strategy evaluates, chosen from the remaining `groups` of a segment, given by place."""

    def outline(self, groups: Mapping[int, Any], statistics: Statistics) -> list[Bundle]:
        """The bundles that `take` would return, without what takes long to compute: their parameters and arrays may be
        missing. This is enough to see whether other statistics lead to other bundles."""
        return self.take(groups, statistics)

    def bundle(self, groups: Iterable[int], parameter: str = "", arrays: Mapping[str, Any] | None = None) -> Bundle:
        return Bundle(self.name, tuple(groups), parameter, self.module, arrays or {})

    @abstractmethod
    def operator(self, placed: PlacedBundle) -> Any:
        """The operator for a bundle, created once per process and segment. The kind's stage defines its interface."""


@dataclass(frozen=True, slots=True)
class Drift:
    """The paths whose values a plan depends on, as keys of the statistics, and the number of values counted when the
    plan was chosen."""

    keys: tuple[str, ...]
    then: int = 0

    def counted(self, statistics: Statistics) -> int:
        return sum(statistics[key].count for key in self.keys if key in statistics)


class Kind(ABC):
    """One kind of group. `name` identifies it in segment files, states and templates (`template.kind`)."""

    name: ClassVar[str]
    module: ClassVar[str] = ""
    """The module that registers the kind, if it is not built in. It is imported before a segment is read."""
    misses_late: ClassVar[bool] = False
    """Whether a document that arrives later than allowed may miss results."""

    @abstractmethod
    def build(self, rows: Iterable[QueryRow], statistics: Statistics) -> list[Group]: ...

    def compact(
        self, rows: Iterable[PathRow], requested: Sequence[Strategy]
    ) -> tuple[Sequence[CompactQueries], Sequence[QueryRow]] | None:
        """The queries to write in columns, and the remaining ones as rows to build groups from; None for a kind that
        does not evaluate paths."""
        return None

    def side_rows(self, rows: Iterable[QueryRow]) -> Iterable[QueryRow]:
        """The sides of some queries that kinds earlier in the registry match, as rows of those kinds."""
        return ()

    def sides(self, group: Any) -> Ints:
        """The sides that a group's queries read. A side that no group of the segment reads is dropped."""
        return np.empty(0, np.int64)

    @abstractmethod
    def merge(self, groups: Sequence[Any], dropped: Ints, statistics: Statistics) -> list[Group]:
        """The groups of several segments merged into the groups of one, without the dropped members."""

    @abstractmethod
    def read(self, header: Any, arrays: Mapping[str, Any]) -> Group: ...

    def read_all(self, header: Any, arrays: Mapping[str, Any]) -> Sequence[Group]:
        """The groups of one entry of a segment file: a single group, unless the kind writes several together."""
        return [self.read(header, arrays)]

    @abstractmethod
    def stage(self, operators: Sequence[Any]) -> Stage:
        """The stage of all operators of this kind in a plan."""

    def read_state(self, arrays: Mapping[str, Any]) -> State:
        raise TypeError(f"groups of kind {self.name} keep no state")

    def drift(self, group: Any) -> Drift | None:
        """The statistics that a group's plan depends on; None for a plan that does not drift."""
        return None

    def replanned(self, group: Any, statistics: Statistics) -> Group | None:
        """A better group for the same queries if the statistics have drifted; else None."""
        return None

    def bound_nodes(
        self, template: Any, constants: Sequence[Constant], documents: Sequence[Walk]
    ) -> Iterator[tuple[int, ...]]:
        """The output nodes of one result whose row does not contain them, recomputed from its documents: one tuple for
        each embedding of the template in the documents."""
        raise TypeError(f"result rows of kind {self.name} contain their nodes")

    @abstractmethod
    def explain(self, number: int, template: Any, constants: Sequence[Constant], about: ExplainContext) -> list[str]:
        """How a query with this template is evaluated, line by line."""

    @abstractmethod
    def describe(self, bundles: Sequence[PlacedBundle]) -> tuple[list[GroupSummary], list[str]]:
        """All groups of the plan, and lines about plans that span several groups."""

"""What a plan holds, behind one protocol: kinds, groups, strategies, stages.

A *group* is queries that are evaluated together. A *kind* builds its groups from query rows, merges them, writes and
reads them, and explains them. Which *strategy* evaluates which groups is decided by rules (plan/rules.py); it makes an
*operator* of the groups it takes. A *stage* is all operators of one kind in the plan in force: it matches a batch of
documents, keeps what later documents may join, probes what was kept, and says what is still needed of it. Kinds are
listed in plan/registry.py. A stage that matches nothing by itself, or keeps nothing, inherits the empty answers.

A kind may let another one match for it. It gives that kind *sides* (matches.py) as rows beside the queries' own, so a
source has one plan, whatever reads it. A batch is matched once; its stages decide what to keep by the sides found.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fishweir.algebra.nodes import Constant, Source
from fishweir.evaluate.arrays import Ints
from fishweir.evaluate.matches import NO_SIDES, Matches, SideMatches, all_sides
from fishweir.evaluate.query_rows import PathRow, QueryRow
from fishweir.evaluate.results import ResultRows
from fishweir.evaluate.statistics import Statistics
from fishweir.evaluate.watermarks import Watermarks
from fishweir.evaluate.witnesses.counters import StreamCounters
from fishweir.evaluate.witnesses.path_tables import Path, PathTable

Paths = dict[Path, bool]
"""The paths to look for in documents, each with whether its values are read."""


Walk = Callable[[Paths], Mapping[Path, PathTable]]
"""Looks for paths in one document."""


def origin_of(stream: Any, number: Any) -> Any:
    """A document by its stream and its number there."""
    return stream << 40 | number


@dataclass(frozen=True)
class Batch:
    """Documents of one stream, ready to match. `sources` are what queries call the stream; `witnesses` are by path."""

    stream: int
    sources: tuple[Source, ...]
    numbers: Ints
    times: NDArray[np.float64]
    witnesses: Mapping[Path, PathTable]
    arrivals: NDArray[np.float64]
    since: int | Sequence[int] = 0
    """The version of the catalog when the documents arrived."""
    changes: Sequence[tuple[int, float, str]] = ()
    """For a changing file: number, arrival and key of each row that was inserted, updated or deleted."""
    origins: Sequence[int] = ()
    """For documents that a published query passed on, the original document; -1 for new ones."""
    sides: SideMatches = NO_SIDES
    """The matches made on behalf of other kinds."""

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
        """From lists or arrays; without `arrivals`, documents arrive at their own times."""
        own = np.asarray(times, np.float64)
        came = own if arrivals is None else np.asarray(arrivals, np.float64)
        return cls(stream, tuple(sources), np.asarray(numbers, np.int64), own, witnesses, came, **more)

    def matched(self, sides: Iterable[SideMatches]) -> Batch:
        """The same documents, once they are matched."""
        return replace(self, sides=all_sides(sides))


class Group(Protocol):
    """Queries of one kind that are evaluated together; immutable, written to and mapped from a segment file."""

    kind: ClassVar[str]

    @property
    def size(self) -> int:
        """How many queries it holds; sides are not counted."""

    @property
    def members(self) -> Ints:
        """The query or side at each position; slices of result rows count positions."""

    def paths(self, sources: Sequence[Source]) -> Paths:
        """The paths to look for in documents of some sources."""

    def header(self) -> Any:
        """The part that is written as JSON; `arrays` are written unchanged."""

    def arrays(self) -> dict[str, Any]: ...


class Compact(Protocol):
    """Queries that are written to a segment file in columns; whoever reads the segment builds groups from them."""

    kind: ClassVar[str]

    @property
    def size(self) -> int: ...

    @property
    def groups(self) -> int:
        """How many groups readers build."""

    def bundle(self, place: int) -> Bundle:
        """How these groups are evaluated, if the first one is at a place."""

    def header(self) -> Any: ...

    def arrays(self) -> dict[str, Any]: ...


class Relaxed(Protocol):
    """The queries of an operator without their conditions at some paths."""

    @property
    def paths(self) -> Paths: ...

    def matches(self, witnesses: Mapping[Path, PathTable]) -> Iterator[tuple[int, Any, Matches]]:
        """Matches by group, with the template of its queries."""


@dataclass(frozen=True)
class Bundle:
    """Groups of a segment, by their places, that one strategy evaluates together."""

    strategy: str
    groups: tuple[int, ...]
    parameter: str = ""
    """Further choices of the strategy, in its own format."""
    module: str = ""
    """Where the strategy is defined, if it is not among the default rules."""


@dataclass(frozen=True)
class Placed:
    """A bundle of a segment with its groups."""

    segment: str
    bundle: Bundle
    groups: tuple[Group, ...]

    @property
    def first(self) -> int:
        return self.bundle.groups[0]


class State(Protocol):
    """What a stage keeps of some documents: declared columns, written once and mapped by each task that probes them."""

    def __len__(self) -> int: ...

    @property
    def newest(self) -> float:
        """The time of the newest document."""

    def arrays(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Described:
    """A group as `explain` lists it: its size, its signature, and more about it."""

    size: int
    signature: str
    lines: list[str] = field(default_factory=list)


class Needed(Protocol):
    """What later documents may still join."""

    @property
    def used(self) -> Mapping[int, float]:
        """By stream, the watermark behind the decision: older documents that arrive later may miss results."""

    def share(self, state: State) -> float:
        """The share of a state that is needed, from 0 to 1."""


class Stage:
    """All groups of one kind in a plan. The defaults are those of a kind that neither matches nor keeps anything."""

    is_by_arrival: bool = False
    """Whether results depend on the order of arrival, so that what arrived together is evaluated together."""

    def matches(
        self, sources: Sequence[Source], witnesses: Mapping[Path, PathTable]
    ) -> Iterator[tuple[str, int, Matches]]:
        """What the queries select from a batch, with the segment and the group that slices refer to."""
        return iter(())

    def relaxed(self, sources: Sequence[Source], paths: frozenset[Path]) -> Sequence[tuple[str, Relaxed]]:
        """The queries that have conditions at some paths, without these conditions, each with its segment."""
        return ()

    def counted(self, sources: Sequence[Source]) -> tuple[list[Path], set[Path]]:
        """The paths whose values planning depends on, and those of them whose words are counted too."""
        return [], set()

    def reads(self, sources: Sequence[Source]) -> bool:
        """Whether it keeps anything of these sources' documents."""
        return False

    def keep(self, batch: Batch) -> State | None:
        """The part of a batch that this micro-batch and later ones probe."""
        return None

    def probe(self, new: Sequence[State], old: Sequence[State], part: int, parts: int) -> Iterator[ResultRows | State]:
        """What the new documents join, among themselves and with the old ones; one `part` of `parts` of it. A stage
        whose later results depend on these ones gives a state of them, too."""
        return iter(())

    def needed(self, states: Sequence[State], watermarks: Watermarks, dropped: Collection[int]) -> Needed:
        """What later documents may still join, if they are not older than the watermarks of their streams; `dropped`
        are queries that no longer exist."""
        raise TypeError(f"{type(self).__name__} keeps no state")

    def merged(self, states: Sequence[State], needed: Needed | None = None) -> State:
        """Several states merged into one, without what is no longer needed."""
        raise TypeError(f"{type(self).__name__} keeps no state")


@dataclass(frozen=True)
class Explained:
    """What `explain` is based on: the plan's groups and the counts so far."""

    groups: Sequence[Group]
    bundles: Sequence[Placed]
    statistics: Statistics
    walked: Mapping[Source, StreamCounters]
    dropped: int | None


class Strategy(ABC):
    """One way to evaluate groups of a kind."""

    name: ClassVar[str]
    kind: ClassVar[str]
    module: ClassVar[str] = ""
    title: ClassVar[str] = ""
    """Its label in `explain`, if that is not its name."""

    @abstractmethod
    def take(self, groups: Mapping[int, Any], statistics: Statistics) -> list[Bundle]:
        """Which of the groups left of a segment, by their places, it evaluates, and which of them together."""

    def bundle(self, groups: Iterable[int], parameter: str = "") -> Bundle:
        return Bundle(self.name, tuple(groups), parameter, self.module)

    @abstractmethod
    def operator(self, placed: Placed) -> Any:
        """What evaluates a bundle; made once per process and segment. The kind's stage says what it must do."""


def bundled(groups: Mapping[int, Group], rules: Iterable[Strategy], statistics: Statistics) -> tuple[Bundle, ...]:
    """All groups, by their places, in bundles: each rule takes what it evaluates best of those that are left."""
    left, bundles = dict(groups), list[Bundle]()
    for rule in rules:
        own = {place: group for place, group in left.items() if group.kind == rule.kind}
        for bundle in rule.take(own, statistics) if own else ():
            bundles.append(bundle)
            for place in bundle.groups:
                del left[place]
    assert not left, f"no strategy evaluates groups of kind {', '.join({group.kind for group in left.values()})}"
    return tuple(bundles)


def asked_strategy(bundle: Bundle) -> Strategy | None:
    """The strategy of a bundle that was requested by name, imported if need be; None for a default one."""
    if not bundle.module:
        return None
    strategies: dict[str, Strategy] = import_module(bundle.module).STRATEGIES
    return strategies[bundle.strategy]


@dataclass(frozen=True, slots=True)
class Drift:
    """The paths whose values a plan depends on, by their keys in the statistics, and how many of these values were
    counted when the plan was chosen."""

    keys: tuple[str, ...]
    then: int = 0

    def counted(self, statistics: Statistics) -> int:
        return sum(statistics[key].count for key in self.keys if key in statistics)


class Kind(ABC):
    """One kind of group. `name` is in segment files, states and templates (`template.kind`)."""

    name: ClassVar[str]
    module: ClassVar[str] = ""
    """The module that registers the kind, if it is not built in. It is imported before a segment is read."""
    misses_late: ClassVar[bool] = False
    """Whether a document that arrives later than allowed may miss results."""

    @abstractmethod
    def build(self, rows: Iterable[QueryRow], statistics: Statistics) -> list[Group]: ...

    def compact(
        self, rows: Iterable[PathRow], asked: Sequence[Strategy]
    ) -> tuple[Sequence[Compact], Sequence[QueryRow]] | None:
        """The queries that are written in columns, and the others as rows to build groups from; None for a kind that
        does not evaluate paths."""
        return None

    def side_rows(self, rows: Iterable[QueryRow]) -> Iterable[QueryRow]:
        """The sides that kinds before it in the registry match for some queries, as rows of those kinds."""
        return ()

    def sides(self, group: Any) -> Ints:
        """The sides that a group's queries read. A side that no group of a segment reads is dropped."""
        return np.empty(0, np.int64)

    @abstractmethod
    def merge(self, groups: Sequence[Any], dropped: Ints, statistics: Statistics) -> list[Group]:
        """The groups of several segments as those of one, without the dropped members."""

    @abstractmethod
    def read(self, header: Any, arrays: Mapping[str, Any]) -> Group: ...

    def read_all(self, header: Any, arrays: Mapping[str, Any]) -> Sequence[Group]:
        """What an entry of a segment file stands for: one group, unless the kind writes several together."""
        return [self.read(header, arrays)]

    @abstractmethod
    def stage(self, operators: Sequence[Any]) -> Stage:
        """All of a plan's operators of this kind."""

    def read_state(self, arrays: Mapping[str, Any]) -> State:
        raise TypeError(f"groups of kind {self.name} keep no state")

    def drift(self, group: Any) -> Drift | None:
        """What a group's plan depends on; None for a plan that does not drift."""
        return None

    def replanned(self, group: Any, statistics: Statistics) -> Group | None:
        """A better group of the same queries, where the statistics have drifted; else None."""
        return None

    def bound_nodes(
        self, template: Any, constants: Sequence[Constant], documents: Sequence[Walk]
    ) -> Iterator[tuple[int, ...]]:
        """The output nodes of one result, found again from its documents, where its row does not name them: one
        tuple for each way in which a query with this template holds."""
        raise TypeError(f"results of kind {self.name} name their nodes")

    @abstractmethod
    def explain(self, number: int, template: Any, constants: Sequence[Constant], about: Explained) -> list[str]:
        """How a query with this template is evaluated, line by line."""

    @abstractmethod
    def describe(self, bundles: Sequence[Placed]) -> tuple[list[Described], list[str]]:
        """All groups of the plan, and lines about plans that span several groups."""

"""Strategies for constant tables: as regions, as twigs, or each by its anchor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol
from weakref import WeakKeyDictionary

from fishweir.algebra.nodes import Source
from fishweir.evaluate.group import Bundle, PlacedBundle, Strategy
from fishweir.evaluate.matches import Matches
from fishweir.evaluate.select.constant_tables import Table
from fishweir.evaluate.select.match import match_table
from fishweir.evaluate.select.plain_paths import PlainPaths, is_plain
from fishweir.evaluate.select.region_match import match_regions
from fishweir.evaluate.select.region_rule import choose_regions, region_places
from fishweir.evaluate.select.regions import RegionSet
from fishweir.evaluate.select.twigs import FEWEST, Twigs, build_twigs, is_twig
from fishweir.evaluate.statistics import Statistics
from fishweir.evaluate.witnesses.path_tables import FirstValues, Path, PathTable
from fishweir.evaluate.witnesses.shared_paths import FoundTables, SharedPaths


class SelectionOperator(Protocol):
    """Evaluates tables or filters of one source in one segment."""

    @property
    def segment(self) -> str: ...

    @property
    def source(self) -> Source: ...

    def matches(self, witnesses: Mapping[Path, PathTable]) -> Iterator[tuple[int, Matches]]:
        """Matches, each with the place of the group that its slices refer to."""

    def planned_by(self) -> Iterator[Path]:
        """The paths whose values the plan depends on."""

    def worded(self) -> Iterator[Path]:
        """The subset of these paths whose words are counted."""


@dataclass(frozen=True)
class TableOperator:
    """Common base of the operators over tables."""

    placed: PlacedBundle

    @cached_property
    def tables(self) -> tuple[Table, ...]:
        return self.placed.groups  # type: ignore[return-value]

    @property
    def segment(self) -> str:
        return self.placed.segment

    @property
    def source(self) -> Source:
        return self.tables[0].template.source

    def planned_by(self) -> Iterator[Path]:
        return (path for table in self.tables for path, valued in table.own_paths.items() if valued)

    def worded(self) -> Iterator[Path]:
        return iter(())


class LookUp(TableOperator):
    """Evaluates each table separately, with one lookup among its anchor's constants per value."""

    def matches(self, witnesses: Mapping[Path, PathTable]) -> Iterator[tuple[int, Matches]]:
        columns = FirstValues(witnesses)
        for place, table in zip(self.placed.bundle.groups, self.tables, strict=True):
            matches = match_table(table, columns if table.template.columns else witnesses)
            if matches is not None:
                yield place, matches


class Regions(TableOperator):
    """Evaluates all tables together, by joining a batch of bindings with the regions of their queries."""

    @cached_property
    def region_set(self) -> RegionSet:
        return RegionSet.of(self.placed)

    def matches(self, witnesses: Mapping[Path, PathTable]) -> Iterator[tuple[int, Matches]]:
        """Results are lists of queries, so they can be attributed to any of the groups."""
        found = FirstValues(witnesses) if self.tables[0].template.columns else witnesses
        for matches in match_regions(self.region_set, found):
            yield self.placed.first, matches


@dataclass(frozen=True)
class TwigProgram(TableOperator):
    """Evaluates all tables as one program over the rows of the walk, except that plain paths are evaluated by its
    states. Without a walk, each table is evaluated separately."""

    _made: WeakKeyDictionary[SharedPaths, tuple[int, PlainPaths | None, Twigs | None]] = field(
        default_factory=WeakKeyDictionary
    )
    """By automaton, as long as it exists: a rehearsal has its own."""

    def matches(self, witnesses: Mapping[Path, PathTable]) -> Iterator[tuple[int, Matches]]:
        if not isinstance(witnesses, FoundTables):
            yield from LookUp(self.placed).matches(witnesses)
            return
        plain, twigs = self._twigs(witnesses.shared)
        found = plain.match(witnesses.batch.rows) if plain else None, twigs.match(witnesses) if twigs else None
        for matches in found:
            if matches is not None:
                yield self.placed.first, matches

    def _twigs(self, shared: SharedPaths) -> tuple[PlainPaths | None, Twigs | None]:
        """The program, rebuilt if the segment's paths have been added to the automaton again."""
        since = shared.generations[self.segment]
        made = self._made.get(shared)
        if made is None or made[0] != since:
            placed = list(zip(self.placed.bundle.groups, self.tables, strict=True))
            plain = [table for _, table in placed if is_plain(table)]
            others = [(place, table) for place, table in placed if not is_plain(table)]
            by_states = PlainPaths(plain, shared) if plain else None
            made = self._made[shared] = since, by_states, build_twigs(others, shared) if others else None
        return made[1], made[2]

    def planned_by(self) -> Iterator[Path]:
        """Empty, because twigs determine themselves what is rare in a batch."""
        return iter(())


class ByAnchor(Strategy):
    name, kind = "anchor", "selections"

    def take(self, groups: Mapping[int, Table], statistics: Statistics) -> list[Bundle]:
        return [self.bundle([place]) for place in groups]

    def operator(self, placed: PlacedBundle) -> LookUp:
        return LookUp(placed)


class ByTwigs(Strategy):
    name, kind = "twigs", "selections"

    def take(self, groups: Mapping[int, Table], statistics: Statistics) -> list[Bundle]:
        by_source: dict[Source, list[int]] = {}
        for place, table in groups.items():
            if is_twig(table):
                by_source.setdefault(table.template.source, []).append(place)
        return [self.bundle(places) for places in by_source.values() if len(places) >= FEWEST]

    def operator(self, placed: PlacedBundle) -> TwigProgram:
        return TwigProgram(placed)


class ByRegions(Strategy):
    """Evaluates tables as regions. The bundle's parameter is the kernel (boxes/): the requested one, or the one
    estimated to be faster."""

    kind = "selections"

    def __init__(self, name: str = "regions", kernel: str | None = None, module: str = "") -> None:
        self.name, self.kernel, self.module = name, kernel, module  # type: ignore[misc]

    def take(self, groups: Mapping[int, Table], statistics: Statistics) -> list[Bundle]:
        region_sets = choose_regions(groups, statistics, self.kernel)
        return [self.bundle(*region_set) for region_set in region_sets]

    def outline(self, groups: Mapping[int, Table], statistics: Statistics) -> list[Bundle]:
        return [self.bundle(places) for places in region_places(groups, statistics, self.kernel is not None)]

    def operator(self, placed: PlacedBundle) -> Regions:
        return Regions(placed)

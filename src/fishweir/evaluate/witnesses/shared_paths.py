"""The paths of some sources in one automaton, and the witnesses it finds in a batch of documents.

In: the paths of segments, which come and go, and parsed documents one by one. Out: a PathTable per path
that was found. A document is walked once, whatever the number of queries; what is shared is the
automaton's (automaton/). A path with descendant steps has one row per embedding of its steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

import numpy as np
import pyarrow as pa

from fishweir.algebra.documents import Element, item_text
from fishweir.algebra.normal import ANY_ROOT
from fishweir.evaluate.arrays import Ints
from fishweir.evaluate.witnesses.automaton.automaton import PathAutomaton
from fishweir.evaluate.witnesses.automaton.batch import Batch
from fishweir.evaluate.witnesses.automaton.pattern import steps_to_pattern
from fishweir.evaluate.witnesses.counters import StreamCounters, path_keys, to_counts
from fishweir.evaluate.witnesses.path_tables import Path, PathTable
from fishweir.evaluate.witnesses.siblings import Siblings

ITEM: Path = (ANY_ROOT,)
"""The whole item: it needs no walk, only its text."""
ITEM_ID = -1

NOT_READ = pa.scalar("", pa.large_string())

PathUses = Mapping[Path, bool]
"""Paths with whether their values are read."""


class SharedPaths:
    """The automaton of some sources; new segments add their paths, gone ones take theirs out.

    `keys` are the names that counters have for ids.
    `held_since` has another number whenever a segment's paths are added again: what was made of their ids is void then.
    """

    def __init__(self) -> None:
        self.automaton = PathAutomaton()
        self.ids: dict[Path, int] = {}
        self.keys: dict[int, int] = {}
        self.held_since: dict[str, int] = {}
        self.has_positions = False
        """Whether some path asks for a place among siblings."""
        self._held: dict[str, PathUses] = {}
        self._times = 0

    def hold(self, wanted: Mapping[str, PathUses]) -> None:
        """Brings the automaton to the paths of some segments, by their ids."""
        new = {segment: paths for segment, paths in wanted.items() if segment not in self._held}
        gone = [segment for segment in self._held if segment not in wanted]
        for segment, paths in new.items():
            self._times += 1
            self.held_since[segment] = self._times
            for path, valued in paths.items():
                self.ids[path] = self.automaton.add(steps_to_pattern(path), valued) if path != ITEM else ITEM_ID
            for path, key in zip(paths, path_keys(paths), strict=True):
                self.keys[self.ids[path]] = key
        self._held |= new
        for paths in [self._held.pop(segment) for segment in gone]:
            for path, valued in paths.items():
                self._release(path, valued)
        if new or gone:
            self.has_positions = any(step.position for path in self.ids for step in path)

    def _release(self, path: Path, valued: bool) -> None:
        if path != ITEM:
            self.automaton.remove(self.ids[path], valued)
        if not any(path in paths for paths in self._held.values()):
            id = self.ids.pop(path)
            if id not in self.automaton.paths:
                del self.keys[id]

    @property
    def takes_items(self) -> bool:
        return any(paths.get(ITEM) for paths in self._held.values())

    def start(self) -> DocumentWalk:
        return DocumentWalk(self)


class DocumentWalk:
    """Collects the witnesses of a batch of documents."""

    def __init__(self, shared: SharedPaths) -> None:
        self.shared = shared
        self.walk = shared.automaton.start()
        self.walk.keeps_elements = shared.has_positions
        self._items: list[str] | None = [] if shared.takes_items else None

    def add(self, document: int, root: Element, context: tuple[str, ...] = ()) -> None:
        """Walks a document; `context` are the names of the elements above it before a split."""
        self.walk.add(document, root, context)
        if self._items is not None:
            self._items.append(item_text(root))

    def tables(self) -> FoundTables:
        batch = self.shared.automaton.finish(self.walk)
        return FoundTables(
            self.shared, batch, np.array(self.walk.documents, np.int64), self._items, Siblings(self.walk)
        )


class FoundTables(Mapping[Path, PathTable]):
    """The path tables of a batch, each made when it is first asked for; paths without a node are not there."""

    def __init__(
        self, shared: SharedPaths, batch: Batch, documents: Ints, items: list[str] | None, siblings: Siblings
    ) -> None:
        self.shared, self.batch, self._siblings = shared, batch, siblings
        self._ids, self._keys, self._valued = shared.ids, shared.keys, shared.automaton.is_valued
        self._documents, self._items = documents, items
        self._made: dict[Path, PathTable | None] = {}

    def get(self, path: Path, default: object = None) -> PathTable | None:  # type: ignore[override]
        if path not in self._made:
            self._made[path] = self._make(path)
        return self._made[path]

    def __getitem__(self, path: Path) -> PathTable:
        table = self.get(path)
        if table is None:
            raise KeyError(path)
        return table

    def __contains__(self, path: object) -> bool:
        return self.get(path) is not None  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[Path]:
        return (path for path in self._ids if path in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    @cached_property
    def _met(self) -> frozenset[int]:
        return frozenset(self.batch.reached.paths.tolist())

    def counters(self) -> StreamCounters:
        """What the walk counted; the item itself is reached by every document."""
        reached, size = self.batch.reached, len(self._documents)
        keys, nodes, documents = [self._keys[id] for id in reached.paths.tolist()], reached.nodes, reached.documents
        if size and ITEM in self._ids:
            keys, nodes, documents = [*keys, self._keys[ITEM_ID]], np.append(nodes, size), np.append(documents, size)
        counts = to_counts(keys, nodes, documents)
        return StreamCounters(size, self.batch.elements, self.batch.skipped, len(self._ids), counts)

    def _make(self, path: Path) -> PathTable | None:
        if path == ITEM:
            return self._item_table()
        id = self._ids.get(path)
        if id is None or id not in self._met:
            return None
        found = self.batch.chains(id)
        documents, nodes, rows = found.documents, found.nodes, found.rows
        if path[0] == ANY_ROOT and len(nodes) and nodes[:, 0].min() < 0:  # not the item but an element above it
            inside = nodes[:, 0] >= 0
            documents, nodes, rows = documents[inside], nodes[inside], rows[inside]
        for depth, step in enumerate(path):
            if step.position and len(documents):
                there = self._siblings.at_position(step, documents, nodes[:, depth])
                documents, nodes, rows = documents[there], nodes[there], rows[there]
        if not len(documents):
            return None
        texts = self.batch.rows.values_of(rows) if self._valued(id) else pa.repeat(NOT_READ, len(rows))
        return PathTable(documents, nodes, texts)

    def _item_table(self) -> PathTable | None:
        size = len(self._documents)
        texts = pa.repeat(NOT_READ, size) if self._items is None else pa.array(self._items, pa.large_string())
        return PathTable(self._documents, np.zeros((size, 1), np.int64), texts) if size else None

"""Combines the paths of some sources in one automaton, and finds their witnesses in a batch of documents.

In: the paths of segments, which are added and removed, and parsed documents one by one. Out: a PathTable for each path
that was found. A document is walked once, regardless of the number of queries. The automaton (automaton/) does the
sharing. A path with descendant steps has one row per embedding of its steps.

Under overload, a walk takes *turns* (turns.py). `start(turns)` suspends paths for a number of consecutive documents,
then other paths for the next ones. Within documents, it may switch from element to element. A subtree that only
suspended paths need is skipped. `suspended_documents(witnesses, paths)` returns the documents in which one of some
paths was suspended. A missing value has no meaning there, so tests for absence must check this first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fishweir.algebra.documents import Element, item_text, parse_document
from fishweir.algebra.normal import ANY_ROOT
from fishweir.evaluate.arrays import Ints
from fishweir.evaluate.witnesses.automaton.automaton import PathAutomaton
from fishweir.evaluate.witnesses.automaton.batch import Batch
from fishweir.evaluate.witnesses.automaton.pattern import steps_to_pattern
from fishweir.evaluate.witnesses.automaton.views import View
from fishweir.evaluate.witnesses.counters import StreamCounters, path_keys, to_counts
from fishweir.evaluate.witnesses.path_tables import Path, PathTable, Suspensions
from fishweir.evaluate.witnesses.siblings import Siblings
from fishweir.evaluate.witnesses.turns import EVERYTHING, ElementTurns, Turns

ITEM: Path = (ANY_ROOT,)
"""The whole item. It requires no walk, only its text."""
ITEM_ID = -1

NOT_READ = pa.scalar("", pa.large_string())

PathUses = Mapping[Path, bool]
"""Paths. The value tells whether the path's values are read."""


class SharedPaths:
    """The automaton of some sources. New segments add their paths, and removed segments release theirs.

    `keys` maps ids to the keys used in counters. `generations` has a number for each segment, which changes when its
    paths are added again: everything derived from their ids is then invalid.
    """

    def __init__(self) -> None:
        self.automaton = PathAutomaton()
        self.ids: dict[Path, int] = {}
        self.keys: dict[int, int] = {}
        self.generations: dict[str, int] = {}
        self._held: dict[str, PathUses] = {}
        self._times = 0

    def hold(self, wanted: Mapping[str, PathUses]) -> None:
        """Updates the automaton to the paths of exactly these segments. `wanted` is keyed by segment id. A home
        that was recreated in the same place may have another segment with the same id."""
        for segment, paths in wanted.items():
            held = self._held.get(segment, paths)
            if held is not paths and held != paths:
                self._held[f"{segment}, replaced"] = self._held.pop(segment)
        new = {segment: paths for segment, paths in wanted.items() if segment not in self._held}
        gone = [segment for segment in self._held if segment not in wanted]
        for segment, paths in new.items():
            self._times += 1
            self.generations[segment] = self._times
            for path, valued in paths.items():
                self.ids[path] = self.automaton.add(steps_to_pattern(path), valued) if path != ITEM else ITEM_ID
            for path, key in zip(paths, path_keys(paths), strict=True):
                self.keys[self.ids[path]] = key
        self._held |= new
        for segment in gone:
            for path, valued in self._held.pop(segment).items():
                self._release(path, valued)

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

    def start(self, turns: Turns | ElementTurns = EVERYTHING) -> DocumentWalk:
        return DocumentWalk(self, turns)

    def view(self, suspended: Collection[Path]) -> View | None:
        """The automaton without some paths. The item itself and unknown paths require no walk."""
        return self.automaton.view([id for path in suspended if (id := self.ids.get(path, ITEM_ID)) != ITEM_ID])

    def unevaluated(self, suspended: Collection[Path]) -> frozenset[Path]:
        """The suspended paths that are not found as a by-product of other paths."""
        view = self.view(suspended)
        known = [(path, id) for path in suspended if (id := self.ids.get(path, ITEM_ID)) != ITEM_ID]
        return frozenset(path for path, id in known if view and not view.evaluates(self.automaton.paths[id]))


class DocumentWalk:
    """Collects the witnesses of a batch of documents."""

    def __init__(self, shared: SharedPaths, turns: Turns | ElementTurns = EVERYTHING) -> None:
        self.shared, self._turns = shared, turns
        self.walk = shared.automaton.start()
        self._items: list[str] | None = [] if shared.takes_items else None
        self._views = [shared.view(suspended) for suspended in turns.suspended]
        self._by_turn: list[list[int]] = [[] for _ in turns.suspended]
        if isinstance(turns, ElementTurns):
            self.walk.switch(turns.unit, self._views, turns.ends)

    @property
    def takes_items(self) -> bool:
        """Whether the text of whole items is collected, which requires parsed trees."""
        return self._items is not None

    def add(self, document: int, content: Element | bytes, context: tuple[str, ...] = (), number: int = 0) -> None:
        """Walks a document, given as a tree or as ordinary bytes. `context` has the names of the elements above it
        before a split. `number` is its number in the stream, which determines its turn."""
        if isinstance(self._turns, ElementTurns):
            for documents in self._by_turn:  # any of its elements may take any turn
                documents.append(document)
            self.walk.add(document, content, context, number=-1 if context else number)
        else:
            turn = self._turns.at(number)
            self._by_turn[turn].append(document)
            self.walk.add(document, content, context, self._views[turn])
        if self._items is not None:
            self._items.append(item_text(parse_document(content) if isinstance(content, bytes) else content))

    def add_all(self, documents: Sequence[int], data: NDArray[np.uint8], bounds: Ints) -> None:
        """Walks ordinary documents for all paths. Each is the bytes between two bounds, and none comes from a split."""
        self._by_turn[0].extend(documents)
        self.walk.add_all(documents, data, bounds)

    def tables(self) -> FoundTables:
        batch = self.shared.automaton.finish(self.walk)
        unevaluated = [
            (np.array(documents, np.int64), self.shared.unevaluated(suspended))
            for documents, suspended in zip(self._by_turn, self._turns.suspended, strict=True)
            if documents and suspended
        ]
        documents = np.array(self.walk.documents, np.int64)
        return FoundTables(self.shared, batch, documents, self._items, unevaluated, self.walk.left_out)


class FoundTables(Mapping[Path, PathTable]):
    """The path tables of a batch, each created on first access. Paths without nodes are missing. `suspensions` lists
    documents with the paths suspended in them. `left_out` is the number of elements that were left out entirely."""

    def __init__(
        self,
        shared: SharedPaths,
        batch: Batch,
        documents: Ints,
        items: list[str] | None,
        suspensions: Suspensions = (),
        left_out: int = 0,
    ) -> None:
        self.shared, self.batch, self.suspensions = shared, batch, suspensions
        self.left_out = left_out
        self._siblings = Siblings(batch.rows)
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
    def _reached(self) -> frozenset[int]:
        return frozenset(self.batch.reached.paths.tolist())

    def counters(self) -> StreamCounters:
        """The counters of the walk. Every document reaches the item itself."""
        reached, size = self.batch.reached, len(self._documents)
        keys, nodes, documents = [self._keys[id] for id in reached.paths.tolist()], reached.nodes, reached.documents
        if size and ITEM in self._ids:
            keys, nodes, documents = [*keys, self._keys[ITEM_ID]], np.append(nodes, size), np.append(documents, size)
        counts = to_counts(keys, nodes, documents)
        below = to_counts(keys[: len(reached.paths)], *self.batch.below)
        walked = self.batch.elements, self.batch.skipped
        return StreamCounters(size, *walked, len(self._ids), counts, below, self.batch.bytes)

    def _make(self, path: Path) -> PathTable | None:
        if path == ITEM:
            return self._item_table()
        id = self._ids.get(path)
        if id is None or id not in self._reached:
            return None
        found = self.batch.chains(id)
        documents, nodes, rows = found.documents, found.nodes, found.rows
        if path[0] == ANY_ROOT and len(nodes) and nodes[:, 0].min() < 0:  # not the item but an element above it
            inside = nodes[:, 0] >= 0
            documents, nodes, rows = documents[inside], nodes[inside], rows[inside]
        for depth, step in enumerate(path):
            if step.position and len(documents):
                ended = self.shared.automaton.paths[id].trunk.nodes[depth]
                there = self._siblings.at_position(ended, step.position, documents, nodes[:, depth])
                documents, nodes, rows = documents[there], nodes[there], rows[there]
        if not len(documents):
            return None
        texts = self.batch.rows.values_of(rows) if self._valued(id) else pa.repeat(NOT_READ, len(rows))
        return PathTable(documents, nodes, texts)

    def _item_table(self) -> PathTable | None:
        size = len(self._documents)
        texts = pa.repeat(NOT_READ, size) if self._items is None else pa.array(self._items, pa.large_string())
        return PathTable(self._documents, np.zeros((size, 1), np.int64), texts) if size else None

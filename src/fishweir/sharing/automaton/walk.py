"""The walk: one preorder pass over each document of a batch, whatever the number of paths.

In: the states and parsed documents. Out: rows in preorder, one per element or attribute that some
path ends or passes: state and position (as one number), the row above. Which paths a state stands for is left to the
batch. Python sees an element twice, for its name and for the number of its children; documents are collected until
there are `AT_ONCE` elements, and then a compiled kernel takes all of them through the states (transitions.py). A
document that no path can enter is only counted, for the preorder positions.

On XMark this takes half as long as a loop that steps from element to element through the children; recursion, that
loop's stack and etree.iterwalk are about the same, and a target parser takes as long as parsing and that loop
together but leaves no tree.
"""

from __future__ import annotations

from itertools import chain
from typing import NamedTuple

import numpy as np
from lxml import etree

from fishweir.algebra.documents import Element, attribute_named, local_name, string_value
from fishweir.sharing.arrays import Ints
from fishweir.sharing.automaton.states import ABOVE, PLACE, State, States
from fishweir.sharing.automaton.transitions import nearest_rows
from fishweir.sharing.automaton.trie import OTHER

AT_ONCE = 20_000

_count = etree.XPath("count(descendant::*)")


class Context(NamedTuple):
    """The states of the elements above a document, with positions, and the one it is reached from."""

    passed: list[tuple[State, int]]
    above: State


class Walk:
    """Collects the rows of a batch. An attribute's row has its element's position, and a name."""

    def __init__(self, states: States) -> None:
        self.states = states
        self.documents: list[int] = []
        self.firsts: list[int] = []
        self.names: dict[int, str] = {}
        self.texts: dict[int, str] = {}
        self.elements = self.skipped = 0
        self._size = 0
        self._places: list[Ints] = []
        self._parents: list[Ints] = []
        self._contexts: dict[tuple[str, ...], Context] = {}
        self._waiting: list[Element] = []
        self._children: list[int] = []
        self._begun: list[tuple[int, Context]] = []

    def add(self, document: int, root: Element, context: tuple[str, ...] = ()) -> None:
        """Takes a document. Paths may also begin at the elements that stood above it before a split."""
        self.documents.append(document)
        known = self._contexts.get(context) or self._pass(context)
        self._begun.append((len(self._waiting), known))
        state = known.above[root.tag]
        if state is None or state.closed:
            below = int(_count(root))  # type: ignore[arg-type]
            self.elements += below
            self.skipped += below
            self._waiting.append(root)
            self._children.append(0)
        else:
            elements = list(root.iter())
            self._waiting += elements
            self._children += map(len, elements)
        if len(self._waiting) >= AT_ONCE:
            self._flush()

    def rows(self) -> tuple[Ints, Ints]:
        """State and position of each row as one number, and the row above it."""
        self._flush()
        none = np.empty(0, np.int64)
        return np.concatenate([none, *self._places]), np.concatenate([none, *self._parents])

    def _pass(self, names: tuple[str, ...]) -> Context:
        passed: list[tuple[State, int]] = []
        above = self.states.start
        for position, name in enumerate(names, -len(names)):
            state = above[name]
            if state is not None and state.matched:
                passed.append((state, position))
            above = self.states.restarted(state)
        found = self._contexts[names] = Context(passed, above)
        return found

    def _flush(self) -> None:
        """Takes the documents that wait through the states."""
        if not self._begun:
            return
        elements, table = self._waiting, self.states.transitions
        children = np.array(self._children, np.int64)
        begun = np.array([at for at, _ in self._begun], np.int64)
        above = np.array([context.above.id for _, context in self._begun], np.int64)
        tags = np.array([table.tags[element.tag] for element in elements], np.int64)
        state, parents, positions = table.walk(tags, children, begun, above)
        flags = table.flags()
        inside = state >= 0
        matched = inside & flags.matched[state]
        owners, reached, names, values = self._attributes(elements, np.flatnonzero(inside & flags.read[state]), state)
        own = np.bincount(owners, minlength=len(elements))
        before = np.zeros(len(elements), np.int64)
        before[begun] = [len(context.passed) for _, context in self._begun]
        ends = self._size + np.cumsum(before + matched + own)
        first = ends - own - matched
        outside = np.where(before > 0, first - 1, -1)
        nearest = nearest_rows(np.where(matched, first, -1), parents, outside)
        size = int(ends[-1]) - self._size
        places, rows_above = np.empty(size, np.int64), np.empty(size, np.int64)
        at = first[matched] - self._size
        places[at] = (state[matched] << PLACE) + ABOVE + positions[matched]
        rows_above[at] = np.where(parents[matched] >= 0, nearest[parents[matched]], outside[matched])
        rank = np.arange(len(owners)) - np.repeat(np.cumsum(own) - own, own)
        attribute_rows = (first + matched)[owners] + rank
        places[attribute_rows - self._size] = (reached << PLACE) + ABOVE + positions[owners]
        rows_above[attribute_rows - self._size] = nearest[owners]
        self.names.update(zip(attribute_rows.tolist(), names, strict=True))
        texts: dict[int, str] = {}
        for start, (i, context) in zip((first - before)[begun].tolist(), self._begun, strict=True):
            self.firsts.append(start)
            for k, (passed, position) in enumerate(context.passed):
                places[start + k - self._size] = passed.place + position
                rows_above[start + k - self._size] = start + k - 1 if k else -1
                if passed.valued:
                    texts[start + k] = string_value(elements[i])
        valued = np.flatnonzero(matched & flags.valued[state])
        texts.update(zip(first[valued].tolist(), (_text(elements[i]) for i in valued.tolist()), strict=True))
        read = np.flatnonzero(table.flags().valued[reached])
        texts.update(zip(attribute_rows[read].tolist(), (values[i] for i in read.tolist()), strict=True))
        self.texts.update(sorted(texts.items()))
        self._places.append(places)
        self._parents.append(rows_above)
        self._size += size
        self.elements += int(np.count_nonzero(tags >= 0))
        self.skipped += int(np.count_nonzero((tags >= 0) & ~inside))
        self._waiting, self._children, self._begun = [], [], []

    def _attributes(
        self, elements: list[Element], looked_at: Ints, state: Ints
    ) -> tuple[Ints, Ints, list[str], list[str]]:
        """The attributes that some path reads: element, state, name and value."""
        table = self.states.transitions
        found = [elements[i].items() for i in looked_at.tolist()]
        owners = np.repeat(looked_at, np.fromiter(map(len, found), np.int64, len(found)))
        names: list[str] = [name for name, _ in chain.from_iterable(found)]  # type: ignore[misc]
        keys = list(names)
        for i, name in enumerate(names):
            if name[0] == "{" and attribute_named(elements[owners[i]], local_name(name)) != name:
                keys[i] = f"{OTHER}{name}"
        reached = table.step(state[owners], np.array([table.attributes[key] for key in keys], np.int64))
        kept = np.flatnonzero(reached >= 0)
        values: list[str] = [value for _, value in chain.from_iterable(found)]  # type: ignore[misc]
        chosen = kept.tolist()
        return owners[kept], reached[kept], [names[i] for i in chosen], [values[i] for i in chosen]


def _text(element: Element) -> str:
    return string_value(element) if len(element) else element.text or ""

"""The transitions of the states as arrays, and the kernels that run documents through them.

In: the states, which are made one by one as documents need them. Out: for many elements at once the state of each. A
transition is an entry of a hash table of numbers; one that is not there yet is asked of the states, put down, and the
kernel goes on where it stopped. Shared: the table serves all documents until the states change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fishweir.sharing.arrays import Ints
from fishweir.sharing.jit import kernel

if TYPE_CHECKING:
    from fishweir.sharing.automaton.states import State, States

UNKNOWN, NOWHERE = -2, -1
ATTRIBUTE = 1 << 31
"""Numbers of attributes' names begin here, so that they are not those of tags."""


class Flags(NamedTuple):
    """By state: whether it ends a path, whether somebody wants its values, whether it reads attributes."""

    matched: NDArray[np.bool_]
    valued: NDArray[np.bool_]
    read: NDArray[np.bool_]


class Names(dict[object, int]):
    """Numbers of names; what is no text, as a comment's tag, has -1."""

    def __init__(self, first: int) -> None:
        self.first, self.texts = first, list[str]()

    def __missing__(self, name: object) -> int:
        self[name] = number = self.first + len(self.texts) if isinstance(name, str) else NOWHERE
        if isinstance(name, str):
            self.texts.append(name)
        return number


class Transitions:
    def __init__(self, states: States) -> None:
        self.states = states
        self.tags, self.attributes = Names(0), Names(ATTRIBUTE)
        self.clear()

    def clear(self) -> None:
        """Forgets all transitions."""
        self.keys, self.targets, self.size = np.full(1024, -1, np.int64), np.empty(1024, np.int64), 0
        self._flags: tuple[int, Flags] | None = None

    def flags(self) -> Flags:
        """Of all states there are; an unused place at the end is for no state at all."""
        count = len(self.states.all)
        if self._flags is None or self._flags[0] != count:
            found = Flags(*(np.zeros(count + 1, np.bool_) for _ in range(3)))
            for i, state in enumerate(self.states.all):
                if state is not None:
                    found.matched[i], found.valued[i] = state.matched, state.valued
                    found.read[i] = state.attributes is not None
            self._flags = count, found
        return self._flags[1]

    def walk(self, tags: Ints, children: Ints, begun: Ints, above: Ints) -> tuple[Ints, Ints, Ints]:
        """For each element its state, the element above it and its position; documents begin at `begun`, each below
        the state `above`."""
        size = len(tags)
        state, parents, positions = (np.full(size, NOWHERE, np.int64) for _ in range(3))
        stack, place = np.empty((int(np.count_nonzero(children)) + 1, 2), np.int64), np.zeros(4, np.int64)
        while run_states(tags, children, begun, above, self.keys, self.targets, state, parents, positions, stack, place):
            i = int(place[0])
            self._learn(int(above[place[1] - 1] if place[2] == 0 else state[stack[place[2] - 1, 0]]), int(tags[i]))
        return state, parents, positions

    def step(self, states: Ints, names: Ints) -> Ints:
        """Where names lead from states, pair by pair."""
        found = np.empty(len(states), np.int64)
        while (i := find_targets(states, names, self.keys, self.targets, found)) >= 0:
            self._learn(int(states[i]), int(names[i]))
        return found

    def _learn(self, state: int, name: int) -> None:
        known: State | None = self.states.all[state]
        assert known is not None
        if name >= ATTRIBUTE:
            attributes = known.attributes
            assert attributes is not None
            target = attributes[self.attributes.texts[name - ATTRIBUTE]]
        else:
            target = known[self.tags.texts[name]]
        if 2 * self.size >= len(self.keys):
            self._grow()
        put(self.keys, self.targets, (state << 32) | name, NOWHERE if target is None else target.id)
        self.size += 1

    def _grow(self) -> None:
        old, targets = self.keys, self.targets
        self.keys, self.targets = np.full(2 * len(old), -1, np.int64), np.empty(2 * len(old), np.int64)
        for at in np.flatnonzero(old >= 0):
            put(self.keys, self.targets, old[at], targets[at])


@kernel
def slot_of(keys: Ints, key: int) -> int:
    """Where a key is, or where it belongs."""
    mixed = key ^ (key >> 32)
    at = ((mixed * 0x9E3779B1) >> 7) & (len(keys) - 1)
    at = (at ^ (key & 0x3FF)) & (len(keys) - 1)
    while keys[at] != -1 and keys[at] != key:
        at = (at + 1) & (len(keys) - 1)
    return at


@kernel
def put(keys: Ints, targets: Ints, key: int, target: int) -> None:
    at = slot_of(keys, key)
    keys[at], targets[at] = key, target


@kernel
def run_states(
    tags: Ints, children: Ints, begun: Ints, above: Ints, keys: Ints, targets: Ints, state: Ints, parents: Ints,
    positions: Ints, stack: Ints, place: Ints,
) -> bool:  # fmt: skip
    """Goes on from `place` (element, document, height of the stack, position) to the first unknown transition; whether
    there is one. The stack has elements with the number of children that are still to come."""
    i, document, height, position = place[0], place[1], place[2], place[3]
    while i < len(tags):
        if document < len(begun) and begun[document] == i:
            document, height, position = document + 1, 0, 0
        while height > 0 and stack[height - 1, 1] == 0:
            height -= 1
        parent = stack[height - 1, 0] if height > 0 else -1
        from_state = above[document - 1] if parent < 0 else state[parent]
        if from_state >= 0 and tags[i] >= 0:
            key = (from_state << 32) | tags[i]
            at = slot_of(keys, key)
            if keys[at] != key:
                place[0], place[1], place[2], place[3] = i, document, height, position
                return True
            state[i] = targets[at]
        parents[i], positions[i] = parent, position
        position += tags[i] >= 0
        if height > 0:
            stack[height - 1, 1] -= 1
        if children[i] > 0:
            stack[height, 0], stack[height, 1] = i, children[i]
            height += 1
        i += 1
    return False


@kernel
def find_targets(states: Ints, names: Ints, keys: Ints, targets: Ints, found: Ints) -> int:
    """Where each pair leads; the first pair that is not known yet, or -1."""
    for i in range(len(states)):
        key = (states[i] << 32) | names[i]
        at = slot_of(keys, key)
        if keys[at] != key:
            return i
        found[i] = targets[at]
    return -1


@kernel
def nearest_rows(rows: Ints, parents: Ints, above: Ints) -> Ints:
    """For each element the row of it or of the next element above that has one."""
    nearest = np.empty(len(rows), np.int64)
    for i in range(len(rows)):
        if rows[i] >= 0:
            nearest[i] = rows[i]
        else:
            nearest[i] = nearest[parents[i]] if parents[i] >= 0 else above[i]
    return nearest

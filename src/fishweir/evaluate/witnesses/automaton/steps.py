"""The compiled walk's copy of the automaton: known transitions, flags of states, names.

In: transitions, on demand. Out: the arrays that the kernel reads. The states are authoritative. This is a cache of
their answers, dropped when they change.
"""

from __future__ import annotations

import numpy as np

from fishweir.evaluate.witnesses.automaton.names import Names
from fishweir.evaluate.witnesses.automaton.states import State, States
from fishweir.evaluate.witnesses.automaton.step_kernels import (
    BY_ELEMENT,
    CLOSED,
    MATCHED,
    NOWHERE,
    READS_ATTRIBUTES,
    VALUED,
    put_all,
    put_step,
)


class Steps:
    """The transitions of some states, by number of the name."""

    def __init__(self, states: States) -> None:
        self.states, self.names = states, Names()
        self.clear()

    def clear(self) -> None:
        """Drops the transitions and flags after states have changed. Names are kept."""
        self.keys, self.targets = np.full(1024, -1, np.int64), np.zeros(1024, np.int64)
        self.flags = np.zeros(256, np.uint8)
        self._count = self._flagged = 0

    def add_transition(self, state: int, kind: int, name: int) -> None:
        """Adds the transition for a name from the automaton."""
        self.names.resolve()
        own, text = self.states.all[state], self.names.names[name]
        assert own is not None
        if kind == BY_ELEMENT:
            target = own[text]
        else:
            assert own.attributes is not None
            target = own.attributes[text]
        if 2 * self._count >= len(self.keys):
            self._grow()
        put_step(self.keys, self.targets, state, kind, name, NOWHERE if target is None else target.id)
        self._count += 1
        self.update_flags()

    def _grow(self) -> None:
        keys, targets = self.keys, self.targets
        self.keys, self.targets = np.full(4 * len(keys), -1, np.int64), np.zeros(4 * len(keys), np.int64)
        put_all(self.keys, self.targets, keys, targets)

    def update_flags(self) -> None:
        """Adds the flags of new states."""
        while len(self.flags) < len(self.states.all):
            self.flags = np.append(self.flags, np.zeros_like(self.flags))
        for state in self.states.all[self._flagged :]:
            if state is not None:
                self.flags[state.id] = _flags(state)
        self._flagged = len(self.states.all)


def _flags(state: State) -> int:
    return (
        (MATCHED if state.matched else 0)
        | (VALUED if state.valued else 0)
        | (CLOSED if state.closed else 0)
        | (READS_ATTRIBUTES if state.attributes is not None else 0)
    )

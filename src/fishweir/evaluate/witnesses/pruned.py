"""Prunes documents to the paths that an output needs.

In: paths with what is needed at their ends, and bodies of documents that have been read before. Out: shorter bodies in
which the paths lead to the same nodes. Everything that is neither on the way to such a node nor inside one is cut out
without being parsed (automaton/prune_kernels.py), so the elements of an omitted return pattern are not parsed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from threading import local

import numpy as np
from numpy.typing import NDArray

from fishweir.evaluate.arrays import Ints
from fishweir.evaluate.witnesses.automaton.prune_kernels import KEPT, LEVEL, STEP, WHOLE, prune
from fishweir.evaluate.witnesses.path_tables import Path

MOST_STEPS = 62
"""The maximum number of steps: each step is a bit of a word."""
DEEPEST = 256
"""The maximum depth that libxml2 reads."""
_OF_UTF8 = re.compile(rb"""<\?xml\s+version=["']1\.\d["'](\s+encoding=["'][uU][tT][fF]-8["'])?\s*\?>""")


class Pruning:
    """The paths of an output as a tree of steps."""

    def __init__(self, paths: Mapping[Path, int]) -> None:
        """`paths` maps a path to KEPT if the nodes at its end are needed, to WHOLE if their content is needed too."""
        self._numbers: dict[Path, int] = {(): 0}
        self._flags: dict[Path, int] = {}
        for path, flag in paths.items():
            steps, needed = _to_elements(path, flag)
            for end in range(1, len(steps) + 1):
                self._numbers.setdefault(steps[:end], len(self._numbers))
                self._flags.setdefault(steps[:end], 0)
            self._flags[steps] |= needed
        names = [(b"" if path[-1].name == "*" else path[-1].name.encode()) for path in self._numbers if path]
        ends = np.cumsum([0, *map(len, names)])
        self._steps = np.zeros((len(names), STEP), np.int64)
        for row, path in enumerate(list(self._numbers)[1:]):
            above = 1 << self._numbers[path[:-1]]
            self._steps[row] = above, path[-1].is_deep, self._flags[path], ends[row], ends[row + 1]
        self._names = np.frombuffer(b"".join(names) or b"\0", np.uint8)
        self._whole = sum(1 << self._numbers[path] for path, flags in self._flags.items() if flags & WHOLE)
        self._starts: dict[tuple[str, ...], int] = {}
        self._room = local()

    @property
    def is_possible(self) -> bool:
        return 1 < len(self._numbers) <= MOST_STEPS

    def of(self, body: bytes, context: tuple[str, ...], wanted: Collection[int]) -> tuple[bytes, dict[int, int]] | None:
        """The pruned body below the names of `context`, and for each number of a wanted element its number in the
        pruned body; None if the body must be used unchanged. Wanted elements are at the ends of paths."""
        start = self._starts.get(context)
        if start is None:
            start = self._starts[context] = self._above(context)
        if start & self._whole or not is_simple(body) or min(wanted, default=0) < 0:
            return None
        old_numbers = sorted(set(wanted)) if len(wanted) > 1 else list(wanted)
        numbers = np.array(old_numbers, np.int64)
        stack, into = self._stack(len(body))
        length = prune(np.frombuffer(body, np.uint8), self._steps, self._names, start, numbers, stack, into)
        return None if length < 0 else (into[:length].tobytes(), dict(zip(old_numbers, numbers.tolist(), strict=True)))

    def _above(self, context: tuple[str, ...]) -> int:
        above = everything = 1
        for name in context:
            found = 0
            for path, number in self._numbers.items():
                if path and path[-1].name in ("*", name):
                    over = everything if path[-1].is_deep else above
                    found |= (over >> self._numbers[path[:-1]] & 1) << number
            above, everything = found, everything | found
        deep = sum(1 << self._numbers[above] for above in {path[:-1] for path in self._numbers if _is_deep(path)})
        return above | everything & deep

    def _stack(self, size: int) -> tuple[Ints, NDArray[np.uint8]]:
        """Buffers of the current thread."""
        if not hasattr(self._room, "stack"):
            self._room.stack = np.zeros((DEEPEST + 2, LEVEL), np.int64)
        if len(getattr(self._room, "into", ())) < size:
            self._room.into = np.empty(2 * size, np.uint8)
        return self._room.stack, self._room.into


def is_simple(body: bytes) -> bool:
    """Whether a readable body is UTF-8."""
    if body[:1] != b"<" or body[1:2] == b"\0":
        return False
    return body[:5] != b"<?xml" or _OF_UTF8.match(body) is not None


def _to_elements(path: Path, flag: int) -> tuple[Path, int]:
    """The elements that a path leads to, and what is needed of them. An attribute is part of its element's tag."""
    last = path[-1]
    if last.is_attribute:
        return path[:-1], WHOLE if last.is_deep else KEPT
    return path, flag


def can_be_pruned(path: Path) -> bool:
    """Whether a path leads to elements by their tag names, with an attribute only at its end."""
    elements = path[:-1] if path[-1].is_attribute and len(path) > 1 else path
    return all(step.axis in ("child", "descendant") and not step.position for step in elements)


def _is_deep(path: Path) -> bool:
    return bool(path) and path[-1].is_deep

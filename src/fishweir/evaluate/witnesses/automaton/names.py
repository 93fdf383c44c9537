"""The table of all element and attribute names that have occurred in documents.

The kernels (name_kernels.py) look up and add names. This module grows the table and spells names out as `{uri}local`.
"""

from __future__ import annotations

from xml.sax.saxutils import unescape

import numpy as np

from fishweir.evaluate.arrays import Ints
from fishweir.evaluate.witnesses.automaton.name_kernels import (
    ATTRIBUTE,
    NAMESPACE,
    NO_NAMESPACE,
    XML_NAMESPACE,
    intern,
    place_names,
)

XML = b"http://www.w3.org/XML/1998/namespace"
CHARACTERS = {"&quot;": '"', "&apos;": "'", "&#9;": "\t", "&#10;": "\n", "&#13;": "\r"}


class Names:
    """The names so far. Row i of `known` has the kind, the namespace, and the range of the name's bytes."""

    def __init__(self, size: int = 1024) -> None:
        size = max(size, len(XML))
        self.slots = np.full(4 * size, -1, np.int32)
        self.hashes = np.zeros(size, np.uint64)
        self.known = np.zeros((size, 4), np.int32)
        self.arena = np.zeros(32 * size, np.uint8)
        self.used = np.zeros(2, np.int64)
        self.names = [""]
        """`{uri}local` or `local`; for a namespace, its URI."""
        self.locals: Ints = np.zeros(1, np.int64)
        """For an attribute, the number of its local name, negative if it has a namespace; 0 for other names."""
        self._local: dict[str, int] = {}
        self.used[0] = XML_NAMESPACE
        xml = np.frombuffer(XML, np.uint8)
        intern(xml, 0, len(xml), NAMESPACE, 0, self.slots, self.hashes, self.known, self.arena, self.used)
        self.resolve()

    def grow(self) -> None:
        """Makes room after a kernel ran out of it."""
        size = 2 * len(self.hashes)
        self.hashes = np.append(self.hashes, np.zeros_like(self.hashes))
        self.known = np.concatenate([self.known, np.zeros_like(self.known)])
        self.arena = np.append(self.arena, np.zeros_like(self.arena))
        self.slots = np.full(4 * size, -1, np.int32)
        place_names(self.slots, self.hashes, int(self.used[0]))

    def resolve(self) -> None:
        """Resolves the names that were added since the last call."""
        count = int(self.used[0])
        if count == len(self.names):
            return
        numbers = []
        for number in range(len(self.names), count):
            kind, space, start, end = self.known[number].tolist()
            text = self.arena[start:end].tobytes().decode()
            if kind == NAMESPACE:
                self.names.append(unescape(text, CHARACTERS))
                numbers.append(0)
                continue
            self.names.append(text if space == NO_NAMESPACE else f"{{{self.names[space]}}}{text}")
            local = self._local.setdefault(text, len(self._local) + 1)
            numbers.append(0 if kind != ATTRIBUTE else local if space == NO_NAMESPACE else -local)
        self.locals = np.append(self.locals, np.array(numbers, np.int64))

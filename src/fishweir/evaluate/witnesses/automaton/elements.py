"""Serialized documents as arrays, and the table of names they share.

In: documents as bytes, as lxml writes them. Out: Elements: the elements of all of them in preorder, their attributes
and their text. The kernels (element_kernels.py) do the reading; here the table of names grows, and names are spelled
out: `{uri}local`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import unescape

import numpy as np
from numpy.typing import NDArray

from fishweir.evaluate.arrays import Ints
from fishweir.evaluate.witnesses.automaton.element_kernels import (
    ATTRIBUTE,
    DONE,
    FULL,
    NAMESPACE,
    NO_NAMESPACE,
    XML_NAMESPACE,
    intern,
    place_names,
    read_documents,
)

Bytes = NDArray[np.uint8]
XML = b"http://www.w3.org/XML/1998/namespace"
CHARACTERS = {"&quot;": '"', "&apos;": "'", "&#9;": "\t", "&#10;": "\n", "&#13;": "\r"}


@dataclass(frozen=True)
class Elements:
    """Element i: name, parent, end of its subtree, first attribute, where its text begins and ends in `texts`; one
    more row says where the attributes end.

    An attribute: name, where its value begins and ends in `values`. `firsts`: the document elements, and the end.
    """

    elements: Ints
    attributes: Ints
    texts: Bytes
    values: Bytes
    firsts: Ints


class Names:
    """The names so far; row i of `known`: kind, namespace, where its bytes are."""

    def __init__(self, size: int = 1024) -> None:
        size = max(size, len(XML))
        self.slots = np.full(4 * size, -1, np.int32)
        self.hashes = np.zeros(size, np.uint64)
        self.known = np.zeros((size, 4), np.int32)
        self.arena = np.zeros(32 * size, np.uint8)
        self.used = np.zeros(2, np.int64)
        self.names = [""]
        """`{uri}local`, or `local`; of a namespace its uri."""
        self.locals: Ints = np.zeros(1, np.int64)
        """For an attribute, the number of its local name, negative if it has a namespace; 0 for others."""
        self._local: dict[str, int] = {}
        self.used[0] = XML_NAMESPACE
        xml = np.frombuffer(XML, np.uint8)
        intern(xml, 0, len(xml), NAMESPACE, 0, self.slots, self.hashes, self.known, self.arena, self.used)
        self._resolve()

    def read(self, documents: Sequence[bytes]) -> Elements:
        """The elements of some documents."""
        data = np.frombuffer(b"".join(documents), np.uint8)
        starts = np.append(0, np.cumsum([len(document) for document in documents])).astype(np.int64)
        tags, quoted = (int(np.count_nonzero(data == ord(mark))) for mark in ("<", "="))
        elements, contexts = np.empty((tags + 1, 6), np.int64), np.empty(tags, np.int64)
        attributes, declared = np.empty((quoted + 1, 3), np.int64), np.empty((quoted, 4), np.int64)
        texts, values = np.empty(len(data), np.uint8), np.empty(len(data), np.uint8)
        firsts, totals = np.zeros(len(starts), np.int64), np.zeros(11, np.int64)
        into = (elements, contexts, declared, attributes, texts, values, firsts, totals)
        while True:
            table = (self.slots, self.hashes, self.known, self.arena, self.used)
            ended = read_documents(data, starts, *table, *into)
            if ended != FULL:
                break
            self._grow()
        assert ended == DONE, f"document {totals[0]} of the batch is not as lxml writes documents"
        self._resolve()
        _, count, of_attributes, of_texts, of_values = totals[:5].tolist()
        elements[count] = 0, -1, count, of_attributes, 0, 0
        return Elements(elements[: count + 1], attributes[:of_attributes], texts[:of_texts], values[:of_values], firsts)

    def _grow(self) -> None:
        size = 2 * len(self.hashes)
        self.hashes = np.append(self.hashes, np.zeros_like(self.hashes))
        self.known = np.concatenate([self.known, np.zeros_like(self.known)])
        self.arena = np.append(self.arena, np.zeros_like(self.arena))
        self.slots = np.full(4 * size, -1, np.int32)
        place_names(self.slots, self.hashes, int(self.used[0]))

    def _resolve(self) -> None:
        """Gives the new names their meaning."""
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

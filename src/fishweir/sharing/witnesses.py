"""Witnesses: for each path that some query uses, the nodes of a batch of documents on it.

In: the paths of all tables and a batch of documents (or tuples). Out: one PathTable per path: row by
row the document, the node ids from the pattern's root down, and the value. A document is walked
once, whatever the number of queries: paths share a trie, and subtrees no path enters are only
counted, for the preorder ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from lxml import etree
from numpy.typing import NDArray

from fishweir.algebra.documents import Element, local_name, string_value
from fishweir.algebra.nodes import Step
from fishweir.algebra.values import NUMBER, to_text

Path = tuple[Step, ...]
Ints = NDArray[np.int64]


class PathTable:
    """The witnesses of one path, in document order per document."""

    def __init__(self, documents: Ints, nodes: Ints, texts: pa.LargeStringArray, numbers: Any = None) -> None:
        self.documents, self.nodes, self.texts = documents, nodes, texts
        if numbers is not None:
            self.numbers = numbers

    def __len__(self) -> int:
        return len(self.documents)

    @cached_property
    def numbers(self) -> NDArray[np.float64]:
        """The values as numbers; NaN, which satisfies no comparison, where a value is none."""
        return texts_to_numbers(self.texts)

    @cached_property
    def hashes(self) -> NDArray[np.uint64]:
        return hash_texts(self.texts)

    def key(self, depth: int) -> Ints:
        """One number for (document, node at this depth); nodes above a split are negative."""
        return node_keys(self.documents, self.nodes[:, depth])


def node_keys(documents: Ints, nodes: Ints) -> Ints:
    return (documents << 32) + nodes + (1 << 20)


def hash_texts(texts: pa.Array) -> NDArray[np.uint64]:
    """64-bit hashes, the same in every process: a polynomial over the UTF-8 bytes, then mixed.

    All strings at once: prefix sums over all bytes, and a difference for each string.
    """
    offsets = np.frombuffer(texts.buffers()[1], np.int64)[texts.offset : texts.offset + len(texts) + 1]
    first, last = (int(offsets[0]), int(offsets[-1])) if len(texts) else (0, 0)
    if first == last:
        return _mix(np.zeros(len(texts), np.uint64))
    data = np.frombuffer(texts.buffers()[2], np.uint8)[first:last].astype(np.uint64) + np.uint64(1)
    starts, lengths = offsets[:-1] - first, np.diff(offsets)
    within = np.arange(last - first) - np.repeat(starts, lengths)
    powers = np.cumprod(np.full(int(lengths.max()), 0x9E3779B97F4A7C15, np.uint64))
    sums = np.append(np.uint64(0), np.cumsum(data * powers[within]))
    return _mix(sums[starts + lengths] - sums[starts])


def _mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Spreads the bits (splitmix64's finalizer)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def texts_to_numbers(texts: pa.Array) -> NDArray[np.float64]:
    trimmed = pc.utf8_trim(texts, characters=" \t\n\r\f\v")
    is_number = pc.match_substring_regex(trimmed, f"^(?:{NUMBER.pattern})$")
    numbers = pc.cast(pc.if_else(is_number, pc.utf8_ltrim(trimmed, characters="+"), None), pa.float64())
    return numbers.to_numpy(zero_copy_only=False)


class PathTrie:
    """All paths of a source; a node knows its path where a query uses it."""

    __slots__ = ("attributes", "children", "path", "valued")

    def __init__(self) -> None:
        self.children: dict[str, PathTrie] = {}
        self.attributes: dict[str, Path] = {}
        self.path: Path | None = None
        self.valued = False

    def add(self, path: Path, valued: bool) -> None:
        """Adds a path; its values are taken only where some condition reads them."""
        node = self
        for i, step in enumerate(path):
            if step.axis == "attribute":
                node.attributes[step.name] = path[: i + 1]
                return
            node = node.children.setdefault(step.name, PathTrie())
        node.path = path
        node.valued |= valued


State = tuple[PathTrie, tuple[int, ...]]


class Extraction:
    """Collects the witnesses of a batch of documents for one trie."""

    def __init__(self, trie: PathTrie) -> None:
        self.trie = trie
        self.rows: dict[Path, tuple[list[int], list[tuple[int, ...]], list[str]]] = {}
        self.document = 0

    def add(self, document: int, root: Element, context: Sequence[str] = ()) -> None:
        self.document = document
        states = [s for i in range(len(context) + 1) if (s := self._start(context[i:], root))]
        if states:
            self._visit(root, 0, states)

    def _start(self, names: Sequence[str], root: Element) -> State | None:
        """The trie's node for the document element, below the elements that stood above it."""
        node: PathTrie | None = self.trie
        chain: tuple[int, ...] = ()
        for depth, name in enumerate(names):
            node = node.children.get(name) if node else None
            if node is None:
                return None
            chain += (depth - len(names),)
            self._record(node, chain, root)
        node = node.children.get(local_name(root.tag)) if node else None
        return (node, (*chain, 0)) if node else None

    def _visit(self, element: Element, position: int, states: list[State]) -> int:
        """Records an element and its subtree; returns the id after the subtree."""
        for node, chain in states:
            self._record(node, chain, element)
            if node.attributes:
                self._attributes(element, node, chain)
        position += 1
        for child in element.iterchildren(etree.Element):
            name = local_name(child.tag)
            below = [(n.children[name], (*chain, position)) for n, chain in states if name in n.children]
            if below:
                position = self._visit(child, position, below)
            else:
                position += 1 if len(child) == 0 else sum(1 for _ in child.iter(etree.Element))
        return position

    def _attributes(self, element: Element, node: PathTrie, chain: tuple[int, ...]) -> None:
        for key, value in element.attrib.items():
            path = node.attributes.get(local_name(str(key)))
            if path is not None:
                self._append(path, (*chain, chain[-1]), str(value))

    def _record(self, node: PathTrie, chain: tuple[int, ...], element: Element) -> None:
        if node.path is not None:
            self._append(node.path, chain, string_value(element) if node.valued else "")

    def _append(self, path: Path, chain: tuple[int, ...], value: str) -> None:
        rows = self.rows.get(path)
        if rows is None:
            rows = self.rows[path] = ([], [], [])
        rows[0].append(self.document)
        rows[1].append(chain)
        rows[2].append(value)

    def tables(self) -> dict[Path, PathTable]:
        return {
            path: PathTable(
                np.array(documents, dtype=np.int64),
                np.array(chains, dtype=np.int64).reshape(len(documents), len(path)),
                pa.array(values, type=pa.large_string()),
            )
            for path, (documents, chains, values) in self.rows.items()
        }


def tuple_tables(name: str, columns: Mapping[str, pa.Array], paths: Iterable[Path]) -> dict[Path, PathTable]:
    """The witnesses of a batch of tuples: a column is a child of the document element."""
    positions = preorder_positions(list(columns.values()))
    elements = dict(zip(columns, positions, strict=True))
    length = len(next(iter(columns.values())))
    tables: dict[Path, PathTable] = {}
    for path in paths:
        if path[0] != Step(name):
            continue
        if len(path) == 1:
            text = pc.binary_join_element_wise(
                *(pc.fill_null(column_texts(c), "") for c in columns.values()), ""
            )
            tables[path] = PathTable(np.arange(length), np.zeros((length, 1), np.int64), text)
        elif len(path) == 2 and path[1].axis == "child" and path[1].name in columns:
            tables[path] = column_table(columns[path[1].name], elements[path[1].name])
    return tables


def preorder_positions(columns: list[pa.Array]) -> list[Ints]:
    """The node id of each column's element in each row: NULLs leave no element."""
    present = [column.is_valid().to_numpy(zero_copy_only=False) for column in columns]
    return list(np.cumsum(np.array(present, dtype=np.int64), axis=0)) if present else []


def column_table(column: pa.Array, positions: Ints) -> PathTable:
    rows = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
    values = column.take(pa.array(rows))
    nodes = np.stack([np.zeros(len(rows), np.int64), positions[rows]], axis=1)
    plain = pa.types.is_integer(values.type) or pa.types.is_floating(values.type)
    numbers = values.to_numpy(zero_copy_only=False).astype(np.float64) if plain else None
    if numbers is not None:
        numbers = np.where(np.isfinite(numbers), numbers, np.nan)
    return PathTable(rows, nodes, column_texts(values), numbers)


def column_texts(column: pa.Array) -> pa.Array:
    """The texts of a column as the algebra's to_text writes them."""
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return column.cast(pa.large_string())
    if pa.types.is_integer(column.type) or pa.types.is_boolean(column.type):
        return column.cast(pa.large_string())
    return pa.array([None if v is None else to_text(v) for v in column.to_pylist()], pa.large_string())

"""Witnesses: for each path that some query uses, the nodes of a batch of documents on it.

In: the paths of all tables and a batch of documents (or tuples). Out: one PathTable per path: row by
row the document, the node ids from the pattern's root down, and the value. A document is walked
once, whatever the number of queries: paths share a trie, and subtrees no path enters are only
counted, for the preorder ids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from lxml import etree
from numpy.typing import NDArray

from fishweir.algebra.documents import Element, item_text, local_name, string_value
from fishweir.algebra.nodes import Step
from fishweir.algebra.normal import ANY_ROOT
from fishweir.algebra.texts import date_part, words
from fishweir.algebra.values import NUMBER, to_text

Path = tuple[Step, ...]
Ints = NDArray[np.int64]
T = TypeVar("T")


MOST_TAGS = 10_000
"""Documents may invent tags without end; what is remembered of them may not."""


class PathTable:
    """The witnesses of one path, in document order per document."""

    def __init__(
        self, documents: Ints, nodes: Ints, texts: pa.LargeStringArray, numbers: Any = None, hashes: Any = None
    ) -> None:
        self.documents, self.nodes, self.texts = documents, nodes, texts
        if numbers is not None:
            self.numbers = numbers
        if hashes is not None:
            self.hashes = hashes

    def __len__(self) -> int:
        return len(self.documents)

    @cached_property
    def numbers(self) -> NDArray[np.float64]:
        """The values as numbers; NaN, which satisfies no comparison, where a value is none."""
        return texts_to_numbers(self.texts)

    def part(self, part: str) -> NDArray[np.float64]:
        """The values as numbers, or the part of the dates they spell; NaN where there is none."""
        if part == "value":
            return self.numbers
        if part not in self._parts:
            parts = {text: date_part(text, part) for text in set(self.texts.to_pylist())}
            self._parts[part] = np.array([parts[text] for text in self.texts.to_pylist()], dtype=np.float64)
        return self._parts[part]

    @cached_property
    def _parts(self) -> dict[str, NDArray[np.float64]]:
        return {}

    @cached_property
    def words(self) -> tuple[Ints, pa.LargeStringArray, NDArray[np.uint64]]:
        """The distinct words of each value: row, word, the word's hash; `` is in every value."""
        found = [sorted({"", *words(text)}) for text in self.texts.to_pylist()]
        rows = np.repeat(np.arange(len(found)), np.array([len(some) for some in found], dtype=np.int64))
        texts = pa.array([word for some in found for word in some], pa.large_string())
        return rows.astype(np.int64), texts, hash_texts(texts)

    @cached_property
    def word_numbers(self) -> tuple[pa.LargeStringArray, Ints]:
        """The distinct words of all values, and in order the numbers row * words + word that occur."""
        rows, texts, _ = self.words
        coded = texts.dictionary_encode()
        keys = rows * len(coded.dictionary) + coded.indices.to_numpy()
        return coded.dictionary, np.sort(keys)

    def once(self, make: Callable[[PathTable], T]) -> T:
        """What an index needs of the values, made at its first look-up and kept for all others."""
        if make not in self._made:
            self._made[make] = make(self)
        return self._made[make]

    @cached_property
    def _made(self) -> dict[Callable[[PathTable], Any], Any]:
        return {}

    @cached_property
    def by_number(self) -> Ints:
        """The rows that are numbers, in ascending order: look-ups in order touch each cache line once."""
        order = np.argsort(self.numbers, kind="stable")
        return order[: len(order) - int(np.isnan(self.numbers).sum())]

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

    __slots__ = ("attributes", "children", "path", "steps", "value", "valued")

    def __init__(self) -> None:
        self.children: dict[str, PathTrie] = {}
        self.attributes: dict[str, Path] = {}
        self.path: Path | None = None
        self.valued = False
        self.value: Callable[[Element], str] = string_value
        self.steps: dict[Any, PathTrie | None] = {}
        """By tag as lxml gives it, namespace and all: filled while walking."""

    @property
    def is_leaf(self) -> bool:
        return not self.children and not self.attributes

    def step(self, tag: Any) -> PathTrie | None:
        """The node below for a tag; what is no element, such as a comment, has no text for a tag."""
        if len(self.steps) >= MOST_TAGS:
            self.steps.clear()
        found = self.steps[tag] = self.children.get(local_name(tag)) if isinstance(tag, str) else None
        return found

    def add(self, path: Path, valued: bool) -> None:
        """Adds a path; its values are taken only where some condition reads them."""
        node = self
        for i, step in enumerate(path):
            if step.axis == "attribute":
                node.attributes[step.name] = path[: i + 1]
                return
            node.steps.clear()
            node = node.children.setdefault(step.name, PathTrie())
        node.path = path
        node.valued |= valued
        if path == (ANY_ROOT,):
            node.value = item_text


State = tuple[PathTrie, tuple[int, ...]]
Rows = tuple[list[int], list[tuple[int, ...]], list[str]]
"""Documents, chains of node ids and values of one path."""


class Extraction:
    """Collects the witnesses of a batch of documents for one trie."""

    def __init__(self, trie: PathTrie) -> None:
        self.trie = trie
        self.rows: dict[Path, Rows] = {}
        self.rows_of: dict[PathTrie, Rows] = {}
        self.starts: dict[tuple[Sequence[str], Any], tuple[list[State], list[State]]] = {}
        self.document = 0

    def add(self, document: int, root: Element, context: Sequence[str] = ()) -> None:
        self.document = document
        key = (context, root.tag)
        above, states = self.starts.get(key) or self._start(key)
        for node, chain in above:
            self._record(node, chain, root)
        for node, chain in states:
            self._visit(root, 0, node, chain)

    def _start(self, key: tuple[Sequence[str], Any]) -> tuple[list[State], list[State]]:
        """The trie's nodes for the elements that stood above the document element, and for itself."""
        context, tag = key
        above: list[State] = []
        states: list[State] = []
        for i in range(len(context) + 1):
            node: PathTrie | None = self.trie
            for depth, name in enumerate(context[i:], i - len(context)):
                node = node.children.get(name) if node else None
                if node:
                    above.append((node, tuple(range(i - len(context), depth + 1))))
            node = node.children.get(local_name(tag)) if node else None
            if node:
                states.append((node, tuple(range(i - len(context), 1))))
        if (anywhere := self.trie.children.get(ANY_ROOT.name)) is not None:
            states.append((anywhere, (0,)))
        self.starts[key] = above, states
        return above, states

    def _visit(self, element: Element, position: int, node: PathTrie, chain: tuple[int, ...]) -> int:
        """Records an element and its subtree; returns the id after the subtree. The innermost loop of all."""
        if node.path is not None:
            self._record(node, chain, element)
        if node.attributes:
            self._attributes(element, node, chain)
        position += 1
        steps = node.steps
        for child in element:
            tag = child.tag
            below = steps[tag] if tag in steps else node.step(tag)
            if below is None:
                if isinstance(tag, str):
                    position += sum(1 for _ in child.iter(etree.Element)) if len(child) else 1
            elif len(child) or not below.is_leaf:
                position = self._visit(child, position, below, (*chain, position))
            else:
                documents, chains, values = self.rows_of.get(below) or self._rows(below)
                documents.append(self.document)
                chains.append((*chain, position))
                values.append((child.text or "") if below.valued else "")
                position += 1
        return position

    def _attributes(self, element: Element, node: PathTrie, chain: tuple[int, ...]) -> None:
        for key, value in element.attrib.items():
            path = node.attributes.get(local_name(str(key)))
            if path is not None:
                rows = self.rows.setdefault(path, ([], [], []))
                self._append(rows, (*chain, chain[-1]), str(value))

    def _record(self, node: PathTrie, chain: tuple[int, ...], element: Element) -> None:
        if node.path is not None:
            rows = self.rows_of.get(node) or self._rows(node)
            self._append(rows, chain, node.value(element) if node.valued else "")

    def _rows(self, node: PathTrie) -> Rows:
        assert node.path is not None
        rows = self.rows_of[node] = self.rows.setdefault(node.path, ([], [], []))
        return rows

    def _append(self, rows: Rows, chain: tuple[int, ...], value: str) -> None:
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
        if path[0] not in (Step(name), ANY_ROOT):
            continue
        if len(path) == 1:
            text = joined_texts(columns.values(), " " if path == (ANY_ROOT,) else "")
            tables[path] = PathTable(np.arange(length), np.zeros((length, 1), np.int64), text)
        elif len(path) == 2 and path[1].axis == "child" and path[1].name in columns:
            tables[path] = column_table(columns[path[1].name], elements[path[1].name])
    return tables


def joined_texts(columns: Iterable[pa.Array], between: str) -> pa.Array:
    """The texts of each row as one; NULL and empty ones leave nothing behind, as in the algebra's item_text."""
    empty, before = (pa.scalar(text, pa.large_string()) for text in ("", between))
    texts = [pc.fill_null(column_texts(column), empty) for column in columns]
    led = [pc.binary_join_element_wise(pc.if_else(pc.equal(t, empty), empty, before), t, empty) for t in texts]
    return pc.utf8_slice_codeunits(pc.binary_join_element_wise(*led, empty), start=len(between))


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

"""Path tables: for each path that some query uses, its witnesses in a batch of documents.

In: the values of a batch. Out: one PathTable per path. Each row has the document, the node ids from the pattern's root
down, and the value. For XML documents, the automaton produces the rows (shared_paths.py). The columns of tuples are
turned into path tables here, without any XML.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fishweir.algebra.nodes import LAST, Step
from fishweir.algebra.normal import ANY_ROOT
from fishweir.algebra.texts import date_part
from fishweir.algebra.values import NUMBER, to_text

Path = tuple[Step, ...]
Ints = NDArray[np.int64]
T = TypeVar("T")

BASE = np.uint64(0x9E3779B97F4A7C15)

Suspensions = Sequence[tuple[Ints, frozenset[Path]]]
"""Sets of documents, each with the paths that were suspended in them."""


class PathTable:
    """The witnesses of one path, in document order within each document."""

    def __init__(
        self,
        documents: Ints,
        nodes: Ints,
        texts: pa.LargeStringArray | Callable[[], pa.LargeStringArray],
        numbers: Any = None,
        hashes: Any = None,
    ) -> None:
        """`texts` and `hashes` may be functions that create them on demand, since numeric comparisons do not need
        them."""
        self.documents, self.nodes, self._texts, self._hashes = documents, nodes, texts, hashes
        if numbers is not None:
            self.numbers = numbers

    def __len__(self) -> int:
        return len(self.documents)

    @cached_property
    def texts(self) -> pa.LargeStringArray:
        return self._texts() if callable(self._texts) else self._texts

    @cached_property
    def numbers(self) -> NDArray[np.float64]:
        """The values as numbers. Values that are not numbers are NaN, which satisfies no comparison."""
        return texts_to_numbers(self.texts)

    def part(self, part: str) -> NDArray[np.float64]:
        """The values as numbers, or the given part of the dates they contain; NaN if there is none."""
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
        """The distinct words of each value: row, word, and the word's hash. Every value includes the empty word, so
        each row occurs."""
        from fishweir.evaluate.witnesses.words import words_of  # imported late because it loads the kernels

        return words_of(self.texts)

    @cached_property
    def word_numbers(self) -> tuple[pa.LargeStringArray, Ints]:
        """The distinct words of all values, and the occurring numbers row * words + word in ascending order."""
        rows, texts, _ = self.words
        coded = texts.dictionary_encode()
        keys = rows * len(coded.dictionary) + coded.indices.to_numpy()
        return coded.dictionary, np.sort(keys)

    def once(self, make: Callable[[PathTable], T]) -> T:
        """Data that an index derives from the values, computed on the first lookup and cached for all others."""
        if make not in self._made:
            self._made[make] = make(self)
        return self._made[make]

    @cached_property
    def _made(self) -> dict[Callable[[PathTable], Any], Any]:
        return {}

    @property
    def first(self) -> PathTable:
        """The first node of each document, which is the value of a column of a document."""
        return self if self.single else self._firsts  # a table that refers to itself would be freed much later

    @cached_property
    def _firsts(self) -> PathTable:
        _, rows = np.unique(self.documents, return_index=True)
        return PathTable(self.documents[rows], self.nodes[rows], self.texts.take(pa.array(rows)))

    @cached_property
    def by_number(self) -> Ints:
        """The rows with numeric values, in ascending order, so that lookups touch each cache line once."""
        order = np.argsort(self.numbers, kind="stable")
        return order[: len(order) - int(np.isnan(self.numbers).sum())]

    @cached_property
    def hashes(self) -> NDArray[np.uint64]:
        if self._hashes is None:
            return hash_texts(self.texts)
        return self._hashes() if callable(self._hashes) else self._hashes

    @cached_property
    def single(self) -> bool:
        """Whether each document has the path at most once, with documents in ascending order."""
        return bool((np.diff(self.documents) > 0).all())

    @cached_property
    def is_whole(self) -> bool:
        """Whether each row is a document: the numbers of documents are those of rows."""
        return self.single and (not len(self) or int(self.documents[-1]) == len(self) - 1)

    def key(self, depth: int) -> Ints:
        """A number that identifies (document, node at this depth). Nodes above a split are negative."""
        return node_keys(self.documents, self.nodes[:, depth])


class FirstValues(Mapping[Path, PathTable]):
    """Witnesses as columns: for each path, the first node of each document."""

    def __init__(self, witnesses: Mapping[Path, PathTable]) -> None:
        self.witnesses = witnesses

    def __getitem__(self, path: Path) -> PathTable:
        return self.witnesses[path].first

    @property
    def suspensions(self) -> Suspensions:
        return suspensions(self.witnesses)

    def __iter__(self) -> Iterator[Path]:
        return iter(self.witnesses)

    def __len__(self) -> int:
        return len(self.witnesses)


def suspensions(witnesses: Mapping[Path, PathTable]) -> Suspensions:
    """The suspended paths by documents. Tuples have none."""
    return getattr(witnesses, "suspensions", ())


def suspended_documents(witnesses: Mapping[Path, PathTable], paths: Collection[Path]) -> Ints:
    """The documents in which one of some paths was suspended, so that a missing value has no meaning."""
    hit = [documents for documents, suspended in suspensions(witnesses) if not suspended.isdisjoint(paths)]
    return np.concatenate([np.empty(0, np.int64), *hit])


def node_keys(documents: Ints, nodes: Ints) -> Ints:
    return (documents << 32) + nodes + (1 << 20)


def hash_texts(texts: pa.Array) -> NDArray[np.uint64]:
    """64-bit hashes that are the same in every process: a polynomial over the UTF-8 bytes, then mixed.

    All strings are hashed at once, by prefix sums over all bytes and one difference per string.
    """
    offsets = offsets_of(texts)
    first, last = (int(offsets[0]), int(offsets[-1])) if len(texts) else (0, 0)
    if first == last:
        return mix(np.zeros(len(texts), np.uint64))
    if "numba" in sys.modules:  # registration alone needs no numba, which takes a second to load
        from fishweir.evaluate.witnesses.text_kernels import polynomials

        return mix(polynomials(offsets[:-1], offsets[1:], np.frombuffer(texts.buffers()[2], np.uint8), BASE))
    data = np.frombuffer(texts.buffers()[2], np.uint8)[first:last].astype(np.uint64) + np.uint64(1)
    starts, lengths = offsets[:-1] - first, np.diff(offsets)
    within = np.arange(last - first) - np.repeat(starts, lengths)
    powers = np.cumprod(np.full(int(lengths.max()), BASE))
    sums = np.append(np.uint64(0), np.cumsum(data * powers[within]))
    return mix(sums[starts + lengths] - sums[starts])


def hash_integers(column: pa.Array) -> NDArray[np.uint64]:
    """The hashes of the texts of integers, without the texts."""
    from fishweir.evaluate.witnesses.text_kernels import polynomials_of_integers

    return mix(polynomials_of_integers(column.to_numpy(), BASE))


def only_chunk(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array, not copied if it has only one chunk."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def offsets_of(texts: pa.Array) -> Ints:
    return np.frombuffer(texts.buffers()[1], np.int64)[texts.offset : texts.offset + len(texts) + 1]


def bytes_of(texts: pa.Array) -> NDArray[np.uint8]:
    """The bytes that the offsets of texts refer to."""
    data = texts.buffers()[2] if len(texts) else None
    return np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)


def mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mixes the bits (splitmix64's finalizer)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def texts_to_numbers(texts: pa.Array) -> NDArray[np.float64]:
    trimmed = pc.utf8_trim(texts, characters=" \t\n\r\f\v")
    is_number = pc.match_substring_regex(trimmed, f"^(?:{NUMBER.pattern})$")
    numbers = pc.cast(pc.if_else(is_number, pc.utf8_ltrim(trimmed, characters="+"), None), pa.float64())
    return numbers.to_numpy(zero_copy_only=False)


def tuple_tables(name: str, columns: Mapping[str, pa.Array], paths: Iterable[Path]) -> dict[Path, PathTable]:
    """The witnesses of a batch of tuples. A column is a child of the document element."""
    positions = preorder_positions(list(columns.values()))
    elements = dict(zip(columns, positions, strict=True))
    rows = np.arange(len(next(iter(columns.values()), ())))
    found = {path: list(_tuple_parts(name, columns, elements, path, rows)) for path in paths}
    return {path: parts[0] if len(parts) == 1 else _together(parts) for path, parts in found.items() if parts}


def _tuple_parts(
    name: str, columns: Mapping[str, pa.Array], elements: Mapping[str, Ints], path: Path, rows: Ints
) -> Iterator[PathTable]:
    """The nodes of a path: the document element, and one table for each matching column. Tables with a node in each of
    the `rows` share them, which shows that their rows correspond."""
    first, last = path[0], path[-1]
    at_root = first.accepts(name, "") and not first.is_attribute and first.position in (0, 1, LAST)
    if len(path) == 1 and at_root:
        text = partial(_tuple_text, columns, first == ANY_ROOT)
        yield PathTable(rows, np.zeros((len(rows), 1), np.int64), text)
    below = last.is_deep if len(path) == 1 else len(path) == 2 and at_root
    for column in columns if below and not last.is_attribute else ():
        if last.accepts(column, ""):
            seconds = last.axis == "seconds"
            table = column_table(in_seconds(columns[column]) if seconds else columns[column], elements[column], rows)
            if last.position:
                table = _at_position(table, last, elements)
            nodes = table.nodes[:, -len(path) :]
            yield table if len(path) == 2 else PathTable(table.documents, nodes, table.texts)


def _at_position(table: PathTable, step: Step, elements: Mapping[str, Ints]) -> PathTable:
    """The nodes of a column at a step's position. A column's own name occurs once; for `*`, all columns count."""
    places = table.nodes[:, -1] if step.name == "*" else np.ones(len(table), np.int64)
    lasts = np.max(list(elements.values()), axis=0)[table.documents] if step.name == "*" else places
    rows = np.flatnonzero(places == (lasts if step.position == LAST else step.position))
    return PathTable(table.documents[rows], table.nodes[rows], table.texts.take(pa.array(rows)))


def _tuple_text(columns: Mapping[str, pa.Array], spaced: bool) -> pa.Array:
    """The concatenated texts of the columns. If `spaced`, non-empty texts are separated by spaces, as in item_text."""
    empty, space = (pa.scalar(text, pa.large_string()) for text in ("", " "))
    texts = [pc.fill_null(column_texts(column), empty) for column in columns.values()]
    if not spaced:
        return pc.binary_join_element_wise(*texts, empty)
    led = [pc.if_else(pc.equal(t, empty), empty, pc.binary_join_element_wise(space, t, empty)) for t in texts]
    return pc.utf8_slice_codeunits(pc.binary_join_element_wise(*led, empty), 1)


def _together(parts: list[PathTable]) -> PathTable:
    """Several tables merged into one, in document order."""
    documents, nodes = (np.concatenate([getattr(part, name) for part in parts]) for name in ("documents", "nodes"))
    order = np.lexsort((nodes[:, -1], documents))
    texts = pa.concat_arrays([part.texts for part in parts]).take(pa.array(order))
    return PathTable(documents[order], nodes[order], texts)


def preorder_positions(columns: list[pa.Array]) -> list[Ints]:
    """The node id of each column's element in each row. A NULL has no element."""
    if not any(column.null_count for column in columns):
        return [np.full(len(column), place) for place, column in enumerate(columns, 1)]
    present = [column.is_valid().to_numpy(zero_copy_only=False) for column in columns]
    return list(np.cumsum(np.array(present, dtype=np.int64), axis=0)) if present else []


def column_table(column: pa.Array, positions: Ints, rows: Ints) -> PathTable:
    """The values of a column with the node of each; `rows` are all of its rows."""
    values = column
    if column.null_count:
        rows = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
        values, positions = column.take(pa.array(rows)), positions[rows]
    nodes = np.zeros((len(rows), 2), np.int64)
    nodes[:, 1] = positions
    numbers = None
    if pa.types.is_integer(values.type):
        numbers = values.to_numpy(zero_copy_only=False).astype(np.float64)
    elif pa.types.is_floating(values.type):
        numbers = values.to_numpy(zero_copy_only=False).astype(np.float64)
        numbers = np.where(np.isfinite(numbers), numbers, np.nan)
    hashes = partial(hash_integers, values) if pa.types.is_int64(values.type) else None
    table = PathTable(rows, nodes, partial(column_texts, values), numbers, hashes)
    table.single = True
    return table


def in_seconds(times: pa.Array) -> pa.Array:
    """Times as numbers, in seconds."""
    return pc.divide(times.cast(pa.int64()).cast(pa.float64()), 1e6)


def column_texts(column: pa.Array) -> pa.Array:
    """The texts of a column, in the format of the algebra's to_text."""
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return column.cast(pa.large_string())
    if pa.types.is_integer(column.type) or pa.types.is_boolean(column.type):
        return column.cast(pa.large_string())
    return pa.array([None if v is None else to_text(v) for v in column.to_pylist()], pa.large_string())

"""Documents of results in columns: ids, bodies and node contents, read for many documents together.

In: streams and numbers of documents. Out: columns of texts, one value per requested document or node. One compiled pass
reads ordinary documents without building trees. The others, documents that only libxml2 can read and tuples seen as
documents, are read one by one (source_documents.py), with the same results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from threading import get_ident

import numpy as np
import pyarrow as pa

from fishweir.algebra.construct import node_text, value_of
from fishweir.algebra.documents import ATTRIBUTE
from fishweir.algebra.formula import RelativePath
from fishweir.algebra.nodes import Step
from fishweir.algebra.normal import ANY_ROOT
from fishweir.evaluate.arrays import Ints
from fishweir.evaluate.witnesses.automaton import subtree_kernels as kernels
from fishweir.evaluate.witnesses.automaton.subtrees import Bodies
from fishweir.evaluate.witnesses.shared_paths import FoundTables, SharedPaths
from fishweir.intake.log import StreamLog
from fishweir.pipeline.source_documents import SourceDocument, bind, entries_of, ids_of, taken_of

DOCUMENT_ELEMENT = Step("*")
_NUMBERS = 1 << 40
"""More than the number of entries of a log."""


class DocumentColumns:
    """Distinct documents in ascending order of stream and number; `log` returns the log of a stream."""

    def __init__(self, log: Callable[[int], StreamLog], places: Ints) -> None:
        self._log = log
        self._keys = np.unique(_keys(places))
        self._taken: dict[int, SourceDocument] = {}

    def index(self, places: Ints) -> Ints:
        """The indexes of some documents, given by stream and number."""
        return np.searchsorted(self._keys, _keys(places))

    def _by_stream(self, documents: Ints) -> list[tuple[int, Ints]]:
        """Streams with the numbers of ascending documents."""
        streams, numbers = np.divmod(self._keys[documents], _NUMBERS)
        return [(stream, numbers[streams == stream]) for stream in np.unique(streams).tolist()]

    @cached_property
    def ids(self) -> pa.StringArray:
        every = self._by_stream(np.arange(len(self._keys)))
        return pa.concat_arrays([ids_of(self._log(stream), numbers) for stream, numbers in every])

    @cached_property
    def _entries(self) -> pa.Table:
        every = self._by_stream(np.arange(len(self._keys)))
        return pa.concat_tables(
            [entries_of(self._log(stream), numbers, ["context", "body"]) for stream, numbers in every]
        )

    @cached_property
    def bodies(self) -> Bodies:
        return Bodies.of(self._entries.column("body").combine_chunks())

    @cached_property
    def _contexts(self) -> list[tuple[str, ...]] | None:
        """The names above each document before a split; None if all are whole documents."""
        column = self._entries.column("context")
        if column.null_count == len(column):
            return None
        return [tuple(text.split("/")) if text else () for text in column.to_pylist()]

    def taken(self, documents: Sequence[int]) -> list[SourceDocument]:
        """Some of the documents, one by one. Each document is read once."""
        missing = np.array(sorted({one for one in documents if one not in self._taken}), np.int64)
        found: list[SourceDocument] = []
        for stream, numbers in self._by_stream(missing):
            found += taken_of(self._log(stream), stream, numbers)
        self._taken |= dict(zip(missing.tolist(), found, strict=True))
        return [self._taken[one] for one in documents]

    def values(self, documents: Ints, nodes: Ints, step: Step) -> pa.StringArray:
        """The string values of nodes at a step, by document and the node number that rows contain."""
        what = kernels.ATTRIBUTE if step.is_attribute else kernels.VALUE
        return self._shown(documents, nodes, what, step)

    def markup(self, documents: Ints, nodes: Ints, content: bool = False) -> pa.StringArray:
        """Elements as written, or their content."""
        return self._shown(documents, nodes, kernels.CONTENT if content else kernels.MARKUP, DOCUMENT_ELEMENT)

    def _shown(self, documents: Ints, nodes: Ints, what: int, step: Step) -> pa.StringArray:
        keys, of = np.unique((documents << 32) + nodes, return_inverse=True)
        documents, nodes = np.divmod(keys, 1 << 32)
        own, nth = documents, nodes // ATTRIBUTE
        texts, refused = self.bodies.take(own, nodes % ATTRIBUTE, what, step.name if step.is_attribute else "")
        left = np.flatnonzero(refused | (nth > 0))
        if len(left):
            rest = [
                _one(document, node, what, step)
                for document, node in zip(self.taken(documents[left].tolist()), nodes[left].tolist(), strict=True)
            ]
            texts = _replaced(texts, left, rest)
        return taken_at(texts, of)

    def walked(self, shared: SharedPaths, documents: Ints) -> FoundTables:
        """The witnesses of some ascending documents, by position in the list."""
        walk, plain = shared.start(), self.bodies.ordinary[documents]
        if self._contexts is not None:
            plain &= np.array([not self._contexts[one] for one in documents.tolist()], np.bool_)
        chosen = np.flatnonzero(plain)
        some = self.bodies if len(chosen) == len(self._keys) else self._some(documents[chosen])
        walk.add_all(chosen.tolist(), some.data, some.bounds)
        rest = np.flatnonzero(~plain)
        for place, document in zip(rest.tolist(), self.taken(documents[rest].tolist()), strict=True):
            walk.add(place, document.nodes[0], document.context)
        return walk.tables()

    def _some(self, documents: Ints) -> Bodies:
        bodies = self._entries.column("body").combine_chunks().take(pa.array(documents))
        return Bodies.of(bodies, np.ones(len(documents), np.bool_))

    def first_values(self, documents: Ints, path: RelativePath) -> pa.StringArray:
        """The first value at a path below the document element of each document; null if there is none."""
        distinct, of = np.unique(documents, return_inverse=True)
        table = self.walked(_shared_path(path, get_ident()), distinct).get((ANY_ROOT, *path))
        at = np.full(len(distinct), -1, np.int64)
        if table is not None:
            at[table.first.documents] = np.arange(len(table.first))
        places = pa.array(at[of], mask=at[of] < 0)
        texts = pa.array([], pa.string()) if table is None else table.first.texts.cast(pa.string())
        return texts.take(places)


@lru_cache(maxsize=1024)
def _shared_path(path: RelativePath, thread: int) -> SharedPaths:
    """The path as an automaton, one per thread: an automaton learns while it walks."""
    shared = SharedPaths()
    shared.hold({"columns": {(ANY_ROOT, *path): True}})
    return shared


def _one(document: SourceDocument, node: int, what: int, step: Step) -> str:
    bound, _ = bind(document, step, node)
    if what in (kernels.VALUE, kernels.ATTRIBUTE):
        return value_of(bound)
    return node_text(bound, what == kernels.CONTENT)


def _replaced(texts: pa.StringArray, places: Ints, by: list[str]) -> pa.StringArray:
    if len(places) == len(texts):
        return pa.array(by, pa.string())
    at = np.arange(len(texts))
    at[places] = len(texts) + np.arange(len(places))
    return pa.concat_arrays([texts, pa.array(by, pa.string())]).take(pa.array(at))


def taken_at(array: pa.Array, places: Ints) -> pa.Array:
    """The elements at some positions; the array itself if these are all positions in order."""
    whole = len(places) == len(array) and bool((places == np.arange(len(places))).all())
    return array if whole else array.take(pa.array(places))


def _keys(places: Ints) -> Ints:
    return np.asarray(places[:, 0] * _NUMBERS + places[:, 1], np.int64)

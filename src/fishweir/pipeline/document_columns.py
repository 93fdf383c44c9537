"""Documents of results in columns: ids, bodies and node contents, read for many documents together.

In: documents by stream and number. Out: columns of texts, one value per requested document or node. One compiled pass
reads ordinary documents without building trees. The others, documents that only libxml2 can read and tuples seen as
documents, are read one by one (source_documents.py), with the same results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache, partial
from itertools import chain
from threading import get_ident
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from fishweir.algebra.construct import node_text, value_of
from fishweir.algebra.documents import ATTRIBUTE
from fishweir.algebra.formula import RelativePath
from fishweir.algebra.nodes import Step
from fishweir.algebra.normal import ANY_ROOT
from fishweir.evaluate.arrays import Ints, distinct
from fishweir.evaluate.group import origin_of
from fishweir.evaluate.witnesses.automaton import subtree_kernels as kernels
from fishweir.evaluate.witnesses.automaton.subtrees import Bodies, Part, Request
from fishweir.evaluate.witnesses.path_tables import only_chunk
from fishweir.evaluate.witnesses.shared_paths import FoundTables, SharedPaths
from fishweir.intake.log import StreamLog
from fishweir.pipeline.source_documents import SourceDocument, bind, fields_of, ids_of, taken_of

DOCUMENT_ELEMENT = Step("*")
STREAM = origin_of(1, 0).bit_length() - 1
"""The position of the stream's bits in the number of a document."""
_NUMBER, _NODE = (1 << STREAM) - 1, (1 << 32) - 1


class NodeTexts(NamedTuple):
    """A request for texts of nodes at a step: what to show (subtree_kernels.py), by document and node number."""

    documents: Ints
    nodes: Ints
    what: int
    step: Step = DOCUMENT_ELEMENT


class DocumentColumns:
    """Distinct documents in ascending order, given by `origin_of` in any order, with repetitions. `log` returns the log
    of a stream.
    """

    def __init__(self, log: Callable[[int], StreamLog], documents: Ints) -> None:
        self._log = log
        self.keys, self.index = _numbered(documents)
        """The distinct documents, and the position of each given document among them."""
        self._taken: dict[int, SourceDocument] = {}

    def numbers(self, documents: Ints) -> Ints:
        return self.keys[documents] & _NUMBER

    def streams(self, documents: Ints) -> list[int]:
        """The streams of some documents."""
        if not len(self.keys) or self.keys[0] >> STREAM == self.keys[-1] >> STREAM:
            documents = documents[:1]
        return distinct(self.keys[documents] >> STREAM)[0].tolist()  # type: ignore[no-any-return]

    def _by_stream(self, documents: Ints) -> list[tuple[int, Ints]]:
        """Streams with the numbers of ascending documents."""
        streams, first = distinct(self.keys[documents] >> STREAM)[0].tolist(), 0
        ends = np.searchsorted(self.keys[documents], [stream + 1 << STREAM for stream in streams]).tolist()
        numbers, found = self.numbers(documents), []
        for stream, end in zip(streams, ends, strict=True):
            found.append((stream, numbers[first:end]))
            first = end
        return found

    def _read(self, read: Callable[[StreamLog, Ints], Any]) -> list[Any]:
        """What is read of all documents, stream by stream."""
        every = self._by_stream(np.arange(len(self.keys)))
        return [read(self._log(stream), numbers) for stream, numbers in every]

    @cached_property
    def ids(self) -> pa.StringArray:
        return pa.concat_arrays(self._read(ids_of))

    @cached_property
    def _entries(self) -> pa.Table:
        return pa.concat_tables(self._read(partial(fields_of, names=["context", "body"])))

    @cached_property
    def _bodies(self) -> pa.LargeBinaryArray:
        return only_chunk(self._entries.column("body"))

    @cached_property
    def bodies(self) -> Bodies:
        return Bodies.of(self._bodies)

    @cached_property
    def _contexts(self) -> list[tuple[str, ...]] | None:
        """The names above each document before a split; None if all are whole documents."""
        column = self._entries.column("context")
        if column.null_count == len(column):
            return None
        return [tuple(text.split("/")) if text else () for text in column.to_pylist()]

    def hold(self, documents: Ints) -> None:
        """Reads some documents one by one, together, in place of those held so far."""
        wanted = distinct(documents)[0].tolist()
        self._taken = {one: self._taken[one] for one in wanted if one in self._taken}
        self.taken(wanted)

    def taken(self, documents: Sequence[int]) -> list[SourceDocument]:
        """Some of the documents, one by one. Each document is read once."""
        missing = np.array(sorted({one for one in documents if one not in self._taken}), np.int64)
        if len(missing):
            read = (taken_of(self._log(stream), stream, numbers) for stream, numbers in self._by_stream(missing))
            self._taken |= dict(zip(missing.tolist(), chain.from_iterable(read), strict=True))
        return [self._taken[one] for one in documents]

    def markup(self, documents: Ints, nodes: Ints) -> pa.StringArray:
        """Elements as written."""
        return self.texts([NodeTexts(documents, nodes, kernels.MARKUP)])[0]

    def texts(self, asked: Sequence[NodeTexts]) -> list[pa.StringArray]:
        """Texts of nodes. Each document is read once."""
        if not asked:
            return []
        keys = [distinct((one.documents << 32) + one.nodes) for one in asked]
        requests = [
            Request(once >> 32, [Part(one.what, (once & _NODE) % ATTRIBUTE, one.step.name)])
            for one, (once, _) in zip(asked, keys, strict=True)
        ]
        taken = zip(asked, keys, self.bodies.take_all(requests), strict=True)
        return [taken_at(self._completed(one, once, *found), of) for one, (once, of), found in taken]

    def _completed(self, asked: NodeTexts, keys: Ints, texts: pa.StringArray, refused: Any) -> pa.StringArray:
        """Texts with those that only libxml2 can read."""
        left = keys[refused | ((keys & _NODE) >= ATTRIBUTE)]
        documents = zip(self.taken((left >> 32).tolist()), (left & _NODE).tolist(), strict=True)
        rest = [_one(document, node, asked.what, asked.step) for document, node in documents]
        return replaced(texts, np.searchsorted(keys, left), rest)

    def walked(self, shared: SharedPaths, documents: Ints) -> FoundTables:
        """The witnesses of some ascending documents, by position in the list."""
        walk, plain = shared.start(), self.bodies.ordinary[documents]
        if self._contexts is not None:
            plain &= np.array([not self._contexts[one] for one in documents.tolist()], np.bool_)
        chosen = np.flatnonzero(plain)
        some = self.bodies if len(chosen) == len(self.keys) else self._some(documents[chosen])
        walk.add_all(chosen.tolist(), some.data, some.bounds)
        rest = np.flatnonzero(~plain)
        for place, document in zip(rest.tolist(), self.taken(documents[rest].tolist()), strict=True):
            walk.add(place, document.nodes[0], document.context)
        return walk.tables()

    def _some(self, documents: Ints) -> Bodies:
        return Bodies.of(taken_at(self._bodies, documents))

    def first_values(self, documents: Ints, path: RelativePath) -> pa.StringArray:
        """The first value at a path below the document element of each document; null if there is none."""
        once, of = distinct(documents)
        table = self.walked(_shared_path(path, get_ident()), once).get((ANY_ROOT, *path))
        at = np.full(len(once), -1, np.int64)
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


def replaced(texts: pa.StringArray, places: Ints, by: list[str]) -> pa.StringArray:
    """Texts with some at ascending places replaced by others."""
    if not by:
        return texts
    if len(places) == len(texts):
        return pa.array(by, pa.string())
    at = np.arange(len(texts))
    at[places] = len(texts) + np.arange(len(places))
    return pa.concat_arrays([texts, pa.array(by, pa.string())]).take(pa.array(at))


def taken_at(array: pa.Array, places: Ints) -> pa.Array:
    """The elements at some positions, not copied if the positions are adjacent and ascending."""
    first, last = (int(places[0]), int(places[-1])) if len(places) else (0, -1)
    adjacent = last - first == len(places) - 1 and bool((places == np.arange(first, last + 1)).all())
    return array.slice(first, len(places)) if adjacent else array.take(pa.array(places))


def _numbered(documents: Ints) -> tuple[Ints, Ints]:
    """As `distinct`. Numbers of documents are close to each other within a stream."""
    streams, of = distinct(documents >> STREAM)
    if len(streams) == 1:
        return distinct(documents)
    found, index, filled = [], np.empty(len(documents), np.int64), 0
    for stream in range(len(streams)):
        chosen = np.flatnonzero(of == stream)
        keys, index_of = distinct(documents[chosen])
        index[chosen] = index_of + filled
        filled += len(keys)
        found.append(keys)
    return np.concatenate([np.empty(0, np.int64), *found]), index

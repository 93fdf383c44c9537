"""Results of joins as people take them: pair rows expanded to pairs of documents and to queries.

In: pair rows of one micro-batch and the queries that were dropped. Out: pairs of documents in order, some at a time,
(row, query) pairs, and for each what makes its result. Nothing is constructed before somebody asks: a pair names two
documents, which are read from their logs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fishweir.algebra.construct import joined_columns
from fishweir.algebra.nodes import Constant, Shape
from fishweir.evaluate.arrays import Ints, expand, number_rows
from fishweir.pipeline.bindings import JoinedResult, bound_result, places_of
from fishweir.pipeline.joining import cached_set, set_path
from fishweir.pipeline.taken import TakenDocument

PAIR_COLUMNS = ("left_stream", "left", "right_stream", "right")


def pairs_in_order(rows: pa.Table) -> tuple[Ints, dict[str, Ints]]:
    """All pairs of documents of some rows, by right document, then left, then row: each one's row and PAIR_COLUMNS."""
    lists = rows.column("partners").combine_chunks()
    lengths = lists.value_lengths().to_numpy(zero_copy_only=False)
    partners = lists.flatten().to_numpy(zero_copy_only=False)
    is_right = rows.column("is_right").to_numpy()
    own = {name: rows.column(name).to_numpy() for name in ("stream", "document", "partner_stream")}
    by_right, stream, document, other = (np.repeat(c, lengths) for c in (is_right, *own.values()))
    pairs = dict(
        zip(
            PAIR_COLUMNS,
            (
                np.where(by_right, other, stream),
                np.where(by_right, partners, document),
                np.where(by_right, stream, other),
                np.where(by_right, document, partners),
            ),
            strict=True,
        )
    )
    order = np.lexsort((pairs["left"], pairs["left_stream"], pairs["right"], pairs["right_stream"]))
    return np.repeat(np.arange(len(rows)), lengths)[order], {name: c[order] for name, c in pairs.items()}


def pair_blocks(
    rows: pa.Table, sets: Path, dead: Ints, wanted: Ints | None = None, size: int = 2_000
) -> Iterator[pa.Table]:
    """One row per pair of documents, some at a time: expanded sets may be large."""
    if wanted is not None:
        rows = rows.take(np.unique(expand_pairs(rows, sets, dead, wanted)[0]))
    source, pairs = pairs_in_order(rows)
    rest = rows.drop_columns(["is_right", "stream", "document", "partner_stream", "partners"])
    for start in range(0, len(source), size):
        some = slice(start, start + size)
        block = rest.take(source[some])
        for name, column in pairs.items():
            block = block.append_column(name, pa.array(column[some]))
        yield block


def expand_pairs(rows: pa.Table, sets: Path, dead: Ints, wanted: Ints | None = None) -> tuple[Ints, Ints]:
    """Row indexes and query numbers, sorted; `dead` are query numbers to leave out, `wanted` to keep."""
    found_rows, found = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    names = rows.column("set").combine_chunks().dictionary_encode()
    codes = names.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    counts = rows.column("count").to_numpy()
    for code, name in enumerate(names.dictionary.to_pylist()):
        chosen = np.flatnonzero(codes == code)
        members = cached_set(set_path(sets, name))
        if wanted is None:
            source, at = expand(np.zeros(len(chosen), np.int64), counts[chosen])
            found_rows.append(chosen[source])
            found.append(members[at])
            continue
        for place in np.flatnonzero(np.isin(members, wanted)):
            inside = chosen[counts[chosen] > place]
            found_rows.append(inside)
            found.append(np.full(len(inside), members[place]))
    lists = rows.column("members").combine_chunks()
    lengths = lists.value_lengths().to_numpy(zero_copy_only=False).astype(np.int64)
    listed = lists.flatten().to_numpy(zero_copy_only=False).astype(np.int64)
    keep = np.ones(len(listed), np.bool_) if wanted is None else np.isin(listed, wanted)
    found_rows.append(np.repeat(np.arange(len(rows)), lengths)[keep])
    found.append(listed[keep])
    row, numbers = np.concatenate(found_rows), np.concatenate(found)
    alive = ~np.isin(numbers, dead)
    row, numbers = row[alive], numbers[alive]
    order = np.lexsort((numbers, row))
    return row[order], numbers[order]


def count_joined(
    rows: pa.Table, sets: Path, dead: Ints, number: int, added: int, once: bool = False
) -> NDArray[np.float64]:
    """The timestamps of one query's results in these rows; `once` for each pair of documents."""
    if not len(rows):
        return np.empty(0, np.float64)
    row, _ = expand_pairs(rows, sets, dead, np.array([number]))
    seen = rows.take(row[rows.column("since").to_numpy()[row] >= added])
    source, pairs = pairs_in_order(seen)
    if once and len(source):
        source = source[np.unique(number_rows(*pairs.values()), return_index=True)[1]]
    return np.asarray(seen.column("timestamp").to_numpy()[source], np.float64)


def joined_results(
    shape: Shape, constants: tuple[Constant, ...], row: Mapping[str, Any], left: TakenDocument, right: TakenDocument
) -> Iterator[JoinedResult]:
    """Each result of a row for one query."""
    taken = (left, right)
    ordered = [left.id, right.id] if row["left_first"] else [right.id, left.id]
    if shape.formula is not None:
        yield ordered, {}, joined_columns(shape.columns, [(one.nodes[0], one.values) for one in taken])
        return
    for places in places_of(shape, constants, row["nodes"], taken):
        yield ordered, *bound_result(shape, taken, places)

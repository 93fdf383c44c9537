"""Many paths in a segment file: queries that consist of one path each, written in columns.

In: queries with their paths as constants (algebra/path_queries.py), as registered. Out: arrays with one row per query.
Readers of the segment build a table for each path. Writing the arrays takes a fraction of the time of building and
writing the tables. All these queries are twigs (twigs.py). Paths that many queries share are excluded, because they are
better looked up by their constants.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from fishweir.algebra.clauses import constants_in_order, to_normals
from fishweir.algebra.nodes import Constant, Source
from fishweir.algebra.path_queries import path_shape
from fishweir.evaluate.arrays import Ints
from fishweir.evaluate.group import Bundle, Strategy
from fishweir.evaluate.query_rows import PathRow, QueryRow
from fishweir.evaluate.select.strategies import ByTwigs
from fishweir.evaluate.select.twigs import FEWEST, LARGEST


@dataclass(frozen=True)
class ManyPaths:
    """The queries over one source, with queries of the same path adjacent."""

    kind: ClassVar[str] = "selections"

    source: Source
    numbers: Sequence[int]
    paths: Sequence[str]
    constants: Sequence[Sequence[Constant]]

    @property
    def size(self) -> int:
        return len(self.numbers)

    @property
    def groups(self) -> int:
        """One table per path."""
        return len(set(self.paths))

    def bundle(self, place: int) -> Bundle:
        return ByTwigs().bundle(range(place, place + self.groups))

    def header(self) -> Any:
        return [self.source]

    def arrays(self) -> dict[str, Any]:
        given = ["" if not some else json.dumps(some) for some in self.constants]
        return {
            "numbers": np.array(self.numbers, np.int64),
            "paths": pa.array(self.paths, pa.large_string()),
            "constants": pa.array(given, pa.large_string()),
        }


def many_paths(rows: Iterable[PathRow], requested: Sequence[Strategy]) -> tuple[list[ManyPaths], list[QueryRow]]:
    """The queries of each source that are written in columns, and the remaining ones as rows with their own templates.
    If strategies are requested by name, all queries become rows."""
    found: dict[Source, dict[str, list[tuple[int, Sequence[Constant]]]]] = {}
    for number, source, (path, *constants) in rows:
        found.setdefault(source, {}).setdefault(str(path), []).append((number, constants))
    columns: list[ManyPaths] = []
    others: list[QueryRow] = []
    for source, by_path in found.items():
        few = {path: some for path, some in by_path.items() if len(some) <= LARGEST}
        if len(few) < FEWEST or requested:
            few = {}
        for path, some in by_path.items():
            if path not in few:
                others += path_rows(source, path, some)
        listed = [(number, path, own) for path, some in few.items() for number, own in some]
        if listed:
            columns.append(ManyPaths(source, *zip(*listed, strict=True)))
    return columns, others


def path_rows(source: Source, path: str, queries: Sequence[tuple[int, Sequence[Constant]]]) -> Iterator[QueryRow]:
    """The queries of a path, with the path's template."""
    (normal,) = to_normals(path_shape(source, path))
    ordered = constants_in_order(normal)
    return ((number, normal.template, ordered(tuple(own))) for number, own in queries)


def read_paths(source: Source, arrays: Mapping[str, Any]) -> Iterator[list[QueryRow]]:
    """The queries of each path, in the order of the tables' places in the segment."""
    numbers: Ints = arrays["numbers"]
    by_path: dict[str, list[tuple[int, Sequence[Constant]]]] = {}
    columns = numbers.tolist(), arrays["paths"].to_pylist(), arrays["constants"].to_pylist()
    for number, path, constants in zip(*columns, strict=True):
        by_path.setdefault(path, []).append((number, json.loads(constants) if constants else ()))
    return (list(path_rows(source, path, some)) for path, some in by_path.items())

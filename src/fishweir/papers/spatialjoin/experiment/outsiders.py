"""Other systems on the same work: each in the form that suits it best, on one thread.

DuckDB and Polars join the batch with the table of queries. Queries with an equality are joined by it, separately from
the rest (DuckDB: by hash, else by its range joins; a filter over the table for each tuple was slower in every regime).
SQLite's R*Tree has at most five dimensions in 32-bit floats, so it has the five most selective attributes, and all are
compared once more. shapely's STRtree has two dimensions; the rest is compared with NumPy. The numba scan compares all
queries.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from fishweir.evaluate.select.boxes import Matches
from fishweir.papers.spatialjoin.experiment.contestants import BATCH, Pairs
from fishweir.papers.spatialjoin.experiment.scan import TILE, list_scanned
from fishweir.papers.spatialjoin.experiment.work import Floats, Work

MOST_CANDIDATES = 4_000_000
OUTSIDE = 1e9
"""Stands for infinity where boxes have to be finite."""


class Outsider:
    batch = BATCH
    clock: ClassVar[Callable[[], float]] = time.process_time

    def __init__(self, work: Work) -> None:
        self.order = work.selective_first()
        self.low, self.high = work.low[:, self.order], work.high[:, self.order]

    def conditions(self, low: str, high: str) -> list[str]:
        return [f"x{a} >= {low}{a} and x{a} <= {high}{a}" for a in range(len(self.order))]

    def query_columns(self, which: Any) -> dict[str, Any]:
        """number, l0, h0, l1, ...: the most selective attribute first."""
        columns: dict[str, Any] = {"number": which.astype(np.int32)}
        for a in range(len(self.order)):
            columns |= {f"l{a}": self.low[which, a], f"h{a}": self.high[which, a]}
        return columns

    def tuple_columns(self, tuples: Floats) -> dict[str, Any]:
        columns: dict[str, Any] = {"row": np.arange(len(tuples), dtype=np.int32)}
        return columns | {f"x{a}": np.ascontiguousarray(tuples[:, self.order[a]]) for a in range(len(self.order))}

    def split(self) -> Iterator[tuple[int | None, Any]]:
        """Queries by the first attribute with an equality, None for those without."""
        equal = self.low == self.high
        first = np.where(equal.any(axis=1), equal.argmax(axis=1), -1)
        for a in np.unique(first):
            yield (None if a < 0 else int(a)), np.flatnonzero(first == a)


class DuckDBJoin(Outsider):
    name = "DuckDB join"

    def __init__(self, work: Work) -> None:
        import duckdb

        super().__init__(work)
        self.connection = duckdb.connect()
        self.connection.execute("pragma threads=1")
        parts = []
        for equal, which in self.split():
            table = f"queries_{'range' if equal is None else equal}"
            self.connection.register("given", pa.table(self.query_columns(which)))
            self.connection.execute(f"create table {table} as select * from given")
            on = self.conditions("l", "h")
            if equal is not None:
                on[equal] = f"x{equal} = l{equal}"
            parts.append(f"select row, number from batch join {table} on {' and '.join(on)}")
        self.text = " union all ".join(parts)

    def match(self, tuples: Floats) -> Any:
        self.connection.register("batch", pa.table(self.tuple_columns(tuples)))
        return self.connection.execute(self.text).fetchnumpy()

    def pairs(self, found: Any) -> Pairs:
        return found["row"], found["number"]


class PolarsJoin(Outsider):
    name = "Polars join_where"

    def __init__(self, work: Work) -> None:
        os.environ.setdefault("POLARS_MAX_THREADS", "1")
        import polars

        super().__init__(work)
        self.polars = polars
        column, self.parts = polars.col, []
        for equal, which in self.split():
            on = []
            for a in range(len(self.order)):
                x, low, high = column(f"x{a}"), column(f"l{a}"), column(f"h{a}")
                on += [x == low] if a == equal else [x >= low, x <= high]
            self.parts.append((polars.DataFrame(self.query_columns(which)).lazy(), on))

    def match(self, tuples: Floats) -> Any:
        batch = self.polars.DataFrame(self.tuple_columns(tuples)).lazy()
        joined = [batch.join_where(queries, *on).select("row", "number") for queries, on in self.parts]
        return self.polars.concat(joined).collect()

    def pairs(self, found: Any) -> Pairs:
        return found["row"].to_numpy(), found["number"].to_numpy()


class RTree(Outsider):
    name = "SQLite R*Tree"

    def __init__(self, work: Work) -> None:
        super().__init__(work)
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        inside = range(min(5, len(self.order)))
        ends = ", ".join(f"min{a}, max{a}" for a in inside)
        exact = ", ".join(f"+l{a}, +h{a}" for a in range(len(self.order)))
        self.connection.execute(f"create virtual table regions using rtree(number, {ends}, {exact})")
        columns = self.query_columns(np.arange(work.queries))
        finite = [np.clip(columns[f"{end}{a}"], -OUTSIDE, OUTSIDE) for a in inside for end in "lh"]
        plain = [columns[f"{end}{a}"] for a in range(len(self.order)) for end in "lh"]
        rows = zip(*(column.tolist() for column in (columns["number"], *finite, *plain)), strict=True)
        places = ", ".join("?" * (1 + len(finite) + len(plain)))
        self.connection.execute("begin")
        self.connection.executemany(f"insert into regions values ({places})", rows)
        self.connection.execute("commit")
        names = ", ".join(["row", *(f"x{a}" for a in range(len(self.order)))])
        self.connection.execute(f"create temp table batch ({names})")
        where = [f"min{a} <= x{a} and max{a} >= x{a}" for a in inside]
        where += [f"l{a} <= x{a} and h{a} >= x{a}" for a in range(len(self.order))]
        self.text = f"select row, number from batch cross join regions where {' and '.join(where)}"

    def match(self, tuples: Floats) -> Any:
        self.connection.execute("delete from batch")
        rows = zip(*(column.tolist() for column in self.tuple_columns(tuples).values()), strict=True)
        places = ", ".join("?" * (1 + len(self.order)))
        self.connection.executemany(f"insert into batch values ({places})", rows)
        return self.connection.execute(self.text).fetchall()

    def pairs(self, found: Any) -> Pairs:
        both = np.array(found, dtype=np.int64).reshape(-1, 2)
        return both[:, 0], both[:, 1]


class STRtree(Outsider):
    name = "shapely STRtree"

    def __init__(self, work: Work) -> None:
        import shapely

        super().__init__(work)
        self.shapely = shapely
        low, high = np.clip(self.low[:, :2], -OUTSIDE, OUTSIDE), np.clip(self.high[:, :2], -OUTSIDE, OUTSIDE)
        if low.shape[1] == 1:
            low, high = np.repeat(low, 2, axis=1), np.repeat(high, 2, axis=1)
        self.tree = shapely.STRtree(shapely.box(low[:, 0], low[:, 1], high[:, 0], high[:, 1]))
        self.at_once = 1
        # Each column is contiguous: a comparison reads only what it needs.
        self.columns = [
            (np.ascontiguousarray(self.low[:, a]), np.ascontiguousarray(self.high[:, a]))
            for a in range(len(self.order))
        ]

    def match(self, tuples: Floats) -> tuple[Any, Any]:
        values = tuples[:, self.order]
        points = self.shapely.points(values[:, [0, min(1, len(self.order) - 1)]])
        found, start = [], 0
        while start < len(points):
            rows, queries = self.tree.query(points[start : start + self.at_once])
            rows += start
            start += self.at_once
            self.at_once = max(1, min(len(points), MOST_CANDIDATES * self.at_once // max(1, 2 * len(rows))))
            for a, (low, high) in enumerate(self.columns[2:], 2):
                x = values[rows, a]
                inside = (low[queries] <= x) & (x <= high[queries])
                rows, queries = rows[inside], queries[inside]
            found.append((rows, queries))
        return np.concatenate([r for r, _ in found]), np.concatenate([q for _, q in found])

    def pairs(self, found: Any) -> Pairs:
        return found


class NumbaScan(Outsider):
    name = "numba scan"

    def __init__(self, work: Work) -> None:
        super().__init__(work)
        self.lows, self.highs = np.ascontiguousarray(self.low.T), np.ascontiguousarray(self.high.T)

    def match(self, tuples: Floats) -> Matches:
        values = np.ascontiguousarray(tuples[:, self.order])
        return Matches.from_kernel(
            lambda row, position, numbers, offsets: list_scanned(
                values, self.lows, self.highs, row, position, numbers, offsets
            ),
            len(values),
            TILE * self.lows.shape[1],
        )

    def pairs(self, found: Matches) -> Pairs:
        return found.tuple_numbers(), found.numbers.astype(np.int64)


OUTSIDERS: tuple[type[Outsider], ...] = (DuckDBJoin, RTree, STRtree, PolarsJoin, NumbaScan)

"""The participating strategies, and the check that they find the same results.

Strategies of the engine take part as such (fast.py), except for one stream: each of its hundred thousand queries has a
row of RT, as published, and too many results to list. On that stream they count results separately. A contestant
registers queries, then takes documents in batches and returns the number of results that a batch adds to each query.
`seconds["join"]` is the time spent on joins alone, without finding and loading witnesses and without maintaining state,
as in the paper's figures. Time that a contestant cannot separate counts as join.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np

from fishweir.algebra.join_oracle import evaluate_join
from fishweir.papers.experiment.contestants import Disagreement
from fishweir.papers.mmqjp.duckdb_engine import DuckDBEngine
from fishweir.papers.mmqjp.experiment.fast import NAME as FAST
from fishweir.papers.mmqjp.experiment.fast import Fast
from fishweir.papers.mmqjp.mmqjp import Mmqjp, Views
from fishweir.papers.mmqjp.relational import Counts, JoinQuery, RelationalJoin
from fishweir.papers.mmqjp.relations import Arrival
from fishweir.papers.mmqjp.sequential import Sequential, SequentialSql


class Contestant(Protocol):
    """The interface of a participating strategy."""

    name: str

    @property
    def seconds(self) -> Mapping[str, float]: ...

    def register(self, queries: Sequence[JoinQuery]) -> None: ...

    def process(self, documents: Sequence[Arrival], keep: bool = True) -> Counts:
        """The number of results that these documents add to each query, in the order of registration. Unless `keep`,
        the state is restored afterwards."""
        ...

    @property
    def relational(self) -> Sequence[RelationalJoin]:
        """The joins over relations that it consists of, if any."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class Entry:
    """The definition of a contestant. `sample`: the number of queries it can take at a time; the time for all is then
    extrapolated. `only`: the points at which it takes part, by experiment; all by default."""

    name: str
    make: Callable[[bool], Contestant]
    """Creates the contestant. If the argument is true, equal queries share a row of RT."""
    counting: Callable[[], Contestant] | None = None
    """Creates the same contestant without listing results, if it would list them."""
    sample: int | None = None
    only: Mapping[str, tuple[float, ...]] | None = None

    def takes_part(self, experiment: str, x: float) -> bool:
        return self.only is None or x in self.only.get(experiment, ())


class Relational:
    """An algorithm on its own engine, which counts results without listing them."""

    def __init__(self, name: str, strategy: RelationalJoin, close: Callable[[], None]) -> None:
        self.name, self.strategy, self._close = name, strategy, close
        self.relational = (strategy,)

    @property
    def seconds(self) -> dict[str, float]:
        return self.strategy.seconds

    def register(self, queries: Sequence[JoinQuery]) -> None:
        self.strategy.register(queries)

    def process(self, documents: Sequence[Arrival], keep: bool = True) -> Counts:
        return self.strategy.count(documents, keep)

    def close(self) -> None:
        self._close()


def on_duckdb(name: str, views: Views) -> Callable[[], Contestant]:
    def make() -> Contestant:
        engine = DuckDBEngine()
        return Relational(name, Mmqjp(engine, views), engine.connection.close)

    return make


def on_spark(name: str, views: Views, session: Any) -> Callable[[bool], Contestant]:
    def make(share_equal: bool) -> Contestant:
        from fishweir.pipeline.spark.mmqjp_spark import SparkEngine

        engine = SparkEngine(session)
        return Relational(name, Mmqjp(engine, views, share_equal), engine.close)

    return make


def sequential() -> Contestant:
    return Relational(SEQUENTIAL, Sequential(), lambda: None)


def sequential_sql(share_equal: bool) -> Contestant:
    engine = DuckDBEngine()
    return Relational(SEQUENTIAL_SQL, SequentialSql(engine, share_equal), engine.connection.close)


SEQUENTIAL, SEQUENTIAL_SQL = "Sequential", "Sequential, DuckDB"
PLAIN, VIEWS = "MMQJP, DuckDB", "MMQJP with views, DuckDB"
SPARK_PLAIN, SPARK_VIEWS = "MMQJP, Spark SQL", "MMQJP with views, Spark SQL"


def entries(sample: int, session: Any = None, spark_at: Mapping[str, tuple[float, ...]] | None = None) -> list[Entry]:
    """All contestants. Sequential gets a hundred times the sample of the one that sends statements. Spark SQL takes
    part if there is a session, at some points: it needs a second or two per statement, and each template is one
    statement."""
    found = [
        Entry(FAST, lambda _: Fast()),
        Entry(VIEWS, partial(Fast, VIEWS, "mmqjp-views"), on_duckdb(VIEWS, "recomputed")),
        Entry(PLAIN, partial(Fast, PLAIN, "mmqjp"), on_duckdb(PLAIN, "none")),
        Entry(SEQUENTIAL, partial(Fast, SEQUENTIAL, "sequential"), sequential, sample=100 * sample),
        Entry(SEQUENTIAL_SQL, sequential_sql, sample=sample),
    ]
    if session is not None:
        found += [
            Entry(SPARK_PLAIN, on_spark(SPARK_PLAIN, "none", session), only=spark_at),
            Entry(SPARK_VIEWS, on_spark(SPARK_VIEWS, "recomputed", session), only=spark_at),
        ]
    return found


def oracle_counts(queries: Sequence[JoinQuery], documents: Sequence[Arrival]) -> Counts:
    given = [document for _, document in documents]
    return np.array([len(evaluate_join(shape, constants, [given, given])) for shape, constants in queries], np.int64)


def compare(what: str, name: str, given: Counts, expected: Counts) -> None:
    """Raises Disagreement unless the counts are equal. The expected counts may cover the first queries only."""
    same = given[: len(expected)] == expected[: len(given)]
    if not same.all():
        query = int(np.flatnonzero(~same)[0])
        raise Disagreement(f"{what}: {name} finds {given[query]:,} results of query {query}, not {expected[query]:,}")

"""Spark SQL as the engine of MMQJP's statements.

A table is a folder of Parquet files with a view over it. Appending writes one more file from here, and the JVM reads
what it needs. A materialized view is a cached DataFrame. Every statement takes one or more Spark jobs, so this is the
readable implementation on Spark, not the fast one.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.pandas.types import from_arrow_schema

from fishweir.pipeline.spark.session import DataFrame, SparkSession


class SparkEngine:
    def __init__(self, spark: SparkSession, folder: Path | None = None) -> None:
        self.spark = spark
        self.folder = Path(folder or tempfile.mkdtemp(prefix="fishweir-mmqjp-"))
        self._numbers: Iterator[int] = count()
        self._places: dict[str, Path] = {}
        self._cached: dict[str, DataFrame] = {}

    def create(self, name: str, table: pa.Table) -> None:
        self.drop(name)
        self._places[name] = self.folder / f"{name}-{next(self._numbers)}"
        self._places[name].mkdir(parents=True)
        self._add(name, table)

    def append(self, name: str, table: pa.Table) -> None:
        if len(table):
            self._add(name, table)

    def _add(self, name: str, table: pa.Table) -> None:
        pq.write_table(table, self._places[name] / f"{next(self._numbers)}.parquet")
        # With a given schema, opening the files needs no Spark job.
        frame = self.spark.read.schema(from_arrow_schema(table.schema)).parquet(str(self._places[name]))
        frame.createOrReplaceTempView(name)

    def materialize(self, name: str, query: str) -> None:
        self.drop(name)
        frame = self.spark.sql(query).cache()
        frame.count()
        frame.createOrReplaceTempView(name)
        self._cached[name] = frame

    def run(self, query: str) -> pa.Table:
        return self.spark.sql(query).toArrow()

    def drop(self, name: str) -> None:
        self.spark.catalog.dropTempView(name)
        if name in self._cached:
            self._cached.pop(name).unpersist()
        if name in self._places:
            shutil.rmtree(self._places.pop(name), ignore_errors=True)

    def close(self) -> None:
        """Frees everything that is cached."""
        for name in [*self._places, *self._cached]:
            self.drop(name)
        shutil.rmtree(self.folder, ignore_errors=True)

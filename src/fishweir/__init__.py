"""Fishweir: hundreds of thousands of standing queries over XML, feeds and tuples in one Spark job."""

from fishweir.engine.weir import Weir, open
from fishweir.errors import (
    FishweirError,
    HomeError,
    QueryError,
    QuerySyntaxError,
    SourceError,
)
from fishweir.pipeline.results import Result, Results

__all__ = [
    "FishweirError", "HomeError", "QueryError", "QuerySyntaxError", "Result", "Results", "SourceError", "Weir", "open",
]  # fmt: skip

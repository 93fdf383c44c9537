"""Fishweir: hundreds of thousands of standing queries over XML, feeds and tuples in one Spark job.

The names below are loaded when they are first used: a Spark worker imports a kernel, not the engine.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fishweir.engine.weir import Weir, open
    from fishweir.errors import FishweirError, HomeError, QueryError, QuerySyntaxError, SourceError
    from fishweir.pipeline.results import Result, Results

_PLACES = {
    "Weir": "engine.weir", "open": "engine.weir", "Result": "pipeline.results", "Results": "pipeline.results",
    "FishweirError": "errors", "HomeError": "errors", "QueryError": "errors", "QuerySyntaxError": "errors",
    "SourceError": "errors",
}  # fmt: skip

__all__ = [
    "FishweirError", "HomeError", "QueryError", "QuerySyntaxError", "Result", "Results", "SourceError", "Weir", "open",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'fishweir' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(f"fishweir.{_PLACES[name]}"), name)

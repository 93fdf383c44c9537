"""Fishweir: hundreds of thousands of standing queries over XML, feeds and tuples in one Spark job.

The names below are loaded on first use, so that a Spark worker imports a kernel without the engine.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fishweir.algebra.operators import Condition
    from fishweir.engine.check import check
    from fishweir.engine.extensions import (
        register_condition,
        register_source,
        unregister_condition,
        unregister_source,
    )
    from fishweir.engine.repair import repair
    from fishweir.engine.weir import Weir, open
    from fishweir.errors import BacklogError, FishweirError, HomeError, QueryError, QuerySyntaxError, SourceError
    from fishweir.evaluate.index.registry import IndexFactory
    from fishweir.pipeline.result import Result
    from fishweir.pipeline.results import Results

_PLACES = {
    "check": "engine.check", "repair": "engine.repair",
    "Weir": "engine.weir", "open": "engine.weir", "Result": "pipeline.result", "Results": "pipeline.results",
    "BacklogError": "errors",
    "FishweirError": "errors", "HomeError": "errors", "QueryError": "errors", "QuerySyntaxError": "errors",
    "SourceError": "errors", "Condition": "algebra.operators", "IndexFactory": "evaluate.index.registry",
    "register_condition": "engine.extensions", "unregister_condition": "engine.extensions",
    "register_source": "engine.extensions", "unregister_source": "engine.extensions",
}  # fmt: skip

__all__ = [
    "BacklogError",
    "Condition",
    "FishweirError",
    "HomeError",
    "IndexFactory",
    "QueryError",
    "QuerySyntaxError",
    "Result",
    "Results",
    "SourceError",
    "Weir",
    "check",
    "open",
    "register_condition",
    "register_source",
    "repair",
    "unregister_condition",
    "unregister_source",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'fishweir' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(f"fishweir.{_PLACES[name]}"), name)

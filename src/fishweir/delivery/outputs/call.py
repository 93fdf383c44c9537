"""`do call 'module:function'`, or a callable registered from Python: one call per result; at least once."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from typing import Any

from fishweir.delivery.options import BadArgument
from fishweir.delivery.payload import NotDelivered, NotRewindable
from fishweir.errors import QueryError
from fishweir.pipeline.result import Result


class Call(NotRewindable):
    def __init__(self, target: str | Callable[[Result], Any]) -> None:
        self.function = import_function(target) if isinstance(target, str) else target

    @staticmethod
    def check(arguments: Sequence[str]) -> None:
        """Rejects a function that cannot exist, without importing its module."""
        (target,) = arguments
        module, _, name = target.partition(":")
        if not all(part.isidentifier() for part in (*module.split("."), name)):
            raise BadArgument(target, f"cannot call '{target}': write 'module:function'")
        loaded = sys.modules.get(module)
        if loaded is None:
            if missing := _missing(module):
                raise BadArgument(target, f"cannot call '{target}': there is no module '{missing}'")
        elif _is_complete(loaded) and not callable(getattr(loaded, name, None)):
            raise BadArgument(target, f"cannot call '{target}': the module has no function '{name}'")

    def deliver(self, results: Sequence[Result]) -> None:
        for done, result in enumerate(results):
            try:
                self.function(result)
            except Exception as error:
                raise NotDelivered(repr(error), delivered=done) from error


def _missing(module: str) -> str | None:
    """The first part of a module's name that cannot be found. `importlib.util.find_spec` would import its packages."""
    path: Sequence[str] | None = None
    parts = module.split(".")
    for i in range(1, len(parts) + 1):
        name = ".".join(parts[:i])
        found = _spec(name, path)
        if found is None or (i < len(parts) and found.submodule_search_locations is None):
            return name if found is None else ".".join(parts[: i + 1])
        path = found.submodule_search_locations
    return None


def _spec(name: str, path: Sequence[str] | None) -> ModuleSpec | None:
    if name in sys.modules and (spec := getattr(sys.modules[name], "__spec__", None)) is not None:
        return spec  # type: ignore[no-any-return]
    specs = (finder.find_spec(name, path) for finder in sys.meta_path if hasattr(finder, "find_spec"))
    return next((spec for spec in specs if spec is not None), None)


def _is_complete(module: Any) -> bool:
    """Whether a module has been executed to its end, so that its functions are known."""
    spec = getattr(module, "__spec__", None)  # None for a script
    return spec is not None and not getattr(spec, "_initializing", False)


def import_function(target: str) -> Callable[[Result], Any]:
    module, _, name = target.partition(":")
    try:
        function = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise QueryError(f"cannot call '{target}': {error}; write 'module:function'") from error
    if not callable(function):
        raise QueryError(f"cannot call '{target}': it is not a function")
    return function  # type: ignore[no-any-return]

"""`do call 'module:function'`, or a callable registered from Python: one call per result; at least once."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

from fishweir.delivery.payload import NotDelivered, NotRewindable
from fishweir.errors import QueryError
from fishweir.pipeline.result import Result


class Call(NotRewindable):
    def __init__(self, target: str | Callable[[Result], Any]) -> None:
        self.function = import_function(target) if isinstance(target, str) else target

    def deliver(self, results: Sequence[Result]) -> None:
        for done, result in enumerate(results):
            try:
                self.function(result)
            except Exception as error:
                raise NotDelivered(repr(error), delivered=done) from error


def import_function(target: str) -> Callable[[Result], Any]:
    module, _, name = target.partition(":")
    try:
        function = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise QueryError(f"cannot call '{target}': {error}; write 'module:function'") from error
    if not callable(function):
        raise QueryError(f"cannot call '{target}': it is not a function")
    return function  # type: ignore[no-any-return]

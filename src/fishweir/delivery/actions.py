"""Actions: what `do NAME ARGUMENTS` can name. The registry is open: add a factory under a name.

A deliverer that can say where it stands (`position`) and go back there (`rewind`) delivers exactly
once, also over a crash; one that cannot delivers at least once.
"""

from __future__ import annotations

import importlib
import inspect
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from fishweir.algebra.nodes import Action
from fishweir.errors import QueryError
from fishweir.pipeline.result import Result


class Deliverer(Protocol):
    def position(self) -> int | None:
        """Where the target stands now, or None where it cannot go back."""

    def rewind(self, position: int) -> None:
        """Takes back whatever was delivered after `position`."""

    def deliver(self, results: Sequence[Result]) -> None: ...


class Append:
    """`do append 'FILE'`: one JSON line per result; exactly once."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)

    def position(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    def rewind(self, position: int) -> None:
        if self.position() > position:
            os.truncate(self.path, position)

    def deliver(self, results: Sequence[Result]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.writelines(f"{result.to_json()}\n" for result in results)
            file.flush()
            os.fsync(file.fileno())


class Call:
    """`do call 'module:function'`, or a callable registered from Python: one call per result; at least once."""

    def __init__(self, target: str | Callable[[Result], Any]) -> None:
        self.function = import_function(target) if isinstance(target, str) else target

    def position(self) -> None:
        return None

    def rewind(self, position: int) -> None:
        """A call cannot be taken back."""

    def deliver(self, results: Sequence[Result]) -> None:
        for result in results:
            self.function(result)


def import_function(target: str) -> Callable[[Result], Any]:
    module, _, name = target.partition(":")
    try:
        function = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise QueryError(f"cannot call '{target}': {error}; write 'module:function'") from error
    if not callable(function):
        raise QueryError(f"cannot call '{target}': it is no function")
    return function  # type: ignore[no-any-return]


Factory = Callable[..., Deliverer]
BUILT_IN: dict[str, Factory] = {"append": Append, "call": Call}
_NAME = re.compile(r"[^\W\d_](?:[\w.]|-(?!-))*")


class Actions:
    """The registry: names to factories, which get the action's arguments."""

    def __init__(self) -> None:
        self.factories: dict[str, Factory] = dict(BUILT_IN)

    def register(self, name: str, factory: Factory) -> None:
        """Adds an action; QueryError where no statement could name it, or the name is taken by a built-in one."""
        if not _NAME.fullmatch(name):
            raise QueryError(f"'{name}' cannot be the name of an action: expected one word")
        if name.lower() in BUILT_IN:
            raise QueryError(f"the action '{name}' is built in and cannot be replaced")
        self.factories[name.lower()] = factory

    def register_callable(self, name: str, function: Callable[[Result], Any]) -> None:
        self.register(name, lambda: Call(function))

    def check(self, action: Action) -> None:
        """QueryError where an action could never be opened: an unknown name, wrong arguments."""
        if action.name not in self.factories:
            known = ", ".join(sorted(self.factories))
            raise QueryError(f"the action '{action.name}' is not known; there are: {known}")
        try:
            inspect.signature(self.factories[action.name]).bind(*action.arguments)
        except TypeError as error:
            raise QueryError(f"the action {action.name} does not take {action.arguments}: {error}") from error

    def resolved(self, action: Action, base: Path) -> Action:
        """The action as it is stored: files are named whole, since the job may run in another folder."""
        if self.factories[action.name] is not Append:
            return action
        return Action(action.name, tuple(os.path.abspath(base / path) for path in action.arguments))

    def open(self, action: Action) -> Deliverer:
        self.check(action)
        return self.factories[action.name](*action.arguments)

"""The registry of outputs: maps names to factories, which get the action's arguments. Programs can register their own.

A factory may have further attributes, and the built-in ones do: `check(arguments)` raises BadArgument for invalid
arguments, `resolved(arguments, base)` makes paths absolute, `place(arguments)` returns the address and host of the
target, `own` is true if each query has separate deliveries, `together` if one sender sends many deliveries.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from fishweir.algebra.action_columns import ActionColumns, to_columns
from fishweir.algebra.nodes import Action
from fishweir.delivery.options import BadArgument, Options, split_options, with_secrets
from fishweir.delivery.outputs.append import each_folder_once
from fishweir.delivery.outputs.call import Call
from fishweir.delivery.payload import OpenOutput
from fishweir.errors import QueryError
from fishweir.guard import Guard, GuardError
from fishweir.pipeline.result import Result

Factory = Callable[..., OpenOutput]

BUILT_IN = {
    "append": "append:Append",
    "atom": "atom:Atom",
    "call": "call:Call",
    "file": "file:File",
    "http": "http:Http",
    "jsonfeed": "jsonfeed:JsonFeed",
    "jsonl": "append:Append",
    "mail": "mail:Mail",
    "mailto": "mail:Mail",
    "notify": "notify:Notify",
    "parquet": "parquet:Parquet",
    "rss": "rss:Rss",
}
"""Modules of this folder and their classes; imported on first use."""
_NAME = re.compile(r"[^\W\d_](?:[\w.]|-(?!-))*")


@cache
def _built_in(name: str) -> Factory:
    module, _, cls = BUILT_IN[name].partition(":")
    return getattr(import_module(f"{__package__}.{module}"), cls)  # type: ignore[no-any-return]


@lru_cache(maxsize=256)
def _refusal(factory: Factory, count: int) -> str | None:
    """The reason why a factory does not accept this number of arguments, or None."""
    try:
        inspect.signature(factory).bind(*[""] * count)
    except TypeError as error:
        return str(error)
    return None


class _Checks(NamedTuple):
    """A factory with its further attributes, which may be missing."""

    factory: Factory
    check: Callable[[tuple[str, ...]], None] | None
    resolved: Callable[[tuple[str, ...], Path], tuple[str, ...]] | None
    place: Callable[[tuple[str, ...]], tuple[str, str]] | None
    own: bool


class Outputs:
    def __init__(self, guard: Guard | None = None) -> None:
        self._own: dict[str, Factory] = {}
        self.guard = Guard.from_setting(None) if guard is None else guard

    def register(self, name: str, factory: Factory) -> None:
        """Registers an output. Raises QueryError if no statement could name it, or if a built-in output has its
        name.
        """
        if not _NAME.fullmatch(name):
            raise QueryError(f"'{name}' cannot be the name of an action: expected one word")
        if name.lower() in BUILT_IN:
            raise QueryError(f"the action '{name}' is built in and cannot be replaced")
        self._own[name.lower()] = factory

    def register_callable(self, name: str, function: Callable[[Result], Any]) -> None:
        self.register(name, lambda: Call(function))

    @property
    def names(self) -> list[str]:
        return sorted({*BUILT_IN, *self._own})

    def factory(self, name: str) -> Factory:
        if name in self._own:
            return self._own[name]
        if name not in BUILT_IN:
            raise QueryError(f"unknown action '{name}'; available actions: {', '.join(self.names)}")
        return _built_in(name)

    def resolved(self, action: Action, base: Path) -> Action:
        """The action as it is stored. Raises BadArgument or QueryError if it could never be opened."""
        return self.all_resolved(to_columns([action]), base).one(0)

    def all_resolved(self, actions: ActionColumns, base: Path) -> ActionColumns:
        """The same for many actions. Equal ones are checked once."""
        given = list(zip(actions.names, actions.arguments, strict=True))
        checks = {name: self._checks(name) for name in dict.fromkeys(actions.names)}
        with each_folder_once():
            known = {one: self._resolved(checks[one[0]], *one, base) for one in dict.fromkeys(given)}
        arguments, addresses, hosts = zip(*[known[one] for one in given], strict=True)
        return ActionColumns(actions.names, arguments, addresses, hosts, [checks[name].own for name in actions.names])

    def _resolved(
        self, checks: _Checks, name: str, arguments: tuple[str, ...], base: Path
    ) -> tuple[tuple[str, ...], str, str]:
        """The arguments of an action as they are stored, and its address and host."""
        own, options = split_options(arguments)
        if options.secret is not None and name in BUILT_IN and not hasattr(checks.factory, "secret"):
            raise BadArgument("secret", f"{name} does not sign deliveries: 'secret NAME' is for http")
        if (reason := _refusal(checks.factory, len(own))) is not None:
            raise BadArgument(name, f"{name} does not take {own}: {reason}")
        if checks.check is not None:
            checks.check(own)
        if checks.resolved is not None:
            whole = checks.resolved(own, base)
            arguments, own = (*whole, *arguments[len(own) :]), whole
        address, host = ("", "") if checks.place is None else checks.place(own)
        if self.guard.on:
            self._guard(name, own, host, base)
        return arguments, address, host

    def _guard(self, name: str, arguments: Sequence[str], host: str, base: Path) -> None:
        """Rejects functions, and all targets other than public hosts and allowed files."""
        if name in self._own or not arguments:
            return
        if name == "call":
            raise BadArgument(name, "the guard is on: functions cannot be called")
        place = f"http://{host.rpartition(':')[2]}" if name == "notify" else arguments[0]
        try:
            if name not in ("mail", "mailto"):
                self.guard.check(place, base)
        except GuardError as error:
            raise BadArgument(arguments[0], str(error)) from None

    def _checks(self, name: str) -> _Checks:
        try:
            factory = self.factory(name)
        except QueryError as error:
            raise BadArgument(name, error.reason) from None
        check, resolved, place = (getattr(factory, method, None) for method in ("check", "resolved", "place"))
        return _Checks(factory, check, resolved, place, getattr(factory, "own", False))

    def is_together(self, name: str) -> bool:
        """Whether many deliveries of an output are sent together."""
        try:
            return getattr(self.factory(name), "together", False)
        except QueryError:
            return False

    def open(self, name: str, arguments: Sequence[str]) -> tuple[OpenOutput, Options]:
        """The output, ready to deliver. An output with its own `secret` gets the secret's name."""
        own, options = split_options(arguments)
        opened = self.factory(name)(*(with_secrets(argument) for argument in own))
        if options.secret is not None and hasattr(opened, "secret"):
            opened.secret = options.secret
        if hasattr(opened, "guard"):
            opened.guard = self.guard
        return opened, options

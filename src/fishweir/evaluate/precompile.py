"""Compiles the kernels ahead of time, for `fishweir set-up`; `python -m fishweir.evaluate.precompile` does only that.

In: `kernels.txt` next to this module, with a line for each kernel and combination of argument types. Out: numba's
cache. A kernel that is already cached takes a few milliseconds, so this can be run whenever sources have changed.

The list is recorded from runs, not written by hand: `FISHWEIR_RECORD_KERNELS=1 make test` adds the kernels that the
tests call and removes those that no longer exist. Missing kernels are skipped. A call with other argument types is
compiled on demand.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numba.types

from fishweir.garbage import no_collection
from fishweir.jit import KERNELS

LIST = Path(__file__).with_name("kernels.txt")
LONGEST = ("subtree_kernels", "check_kernels", "walk_kernels", "twig_kernels", "ibs_js", "sj_kernels")
"""Modules that take many seconds each and come first, so that no process waits for the other at the end."""
AT_ONCE = 2
"""Number of compiling processes. More would cost more memory than the time they save is worth."""


def precompile(lines: Iterable[str]) -> int:
    """Compiles the given kernels that are not in the cache yet. Returns their number."""
    misses = 0
    with no_collection():
        for line in filter(_exists, lines):
            module, name, types = line.split(" ", 2)
            kernel: Any = getattr(import_module(module), name)
            kernel.compile(_to_types(types))
            misses += sum(kernel.stats.cache_misses.values())
    return misses


def recorded() -> list[str]:
    return LIST.read_text(encoding="utf-8").splitlines() if LIST.exists() else []


def record() -> None:
    """Adds the kernels called in this process to the list."""
    lines = {line for line in recorded() if _exists(line)} | set(called())
    temporary = LIST.with_name(f".{LIST.name}.{os.getpid()}")
    temporary.write_text("".join(f"{line}\n" for line in sorted(lines)), encoding="utf-8")
    temporary.replace(LIST)


def called() -> Iterator[str]:
    """The kernels called in this process, with the types of their arguments.

    A signature with a literal argument comes from a call by another kernel and is compiled together with the caller.
    """
    for kernel in KERNELS:
        function = kernel.py_func
        if function.__module__.startswith("fishweir.") and "<locals>" not in function.__qualname__:
            shown = (", ".join(map(_shown, types)) for types in kernel.signatures)
            lines = (f"{function.__module__} {function.__name__} ({types},)" for types in shown)
            yield from (line for line in lines if "Literal[" not in line)


def compiled_here() -> list[str]:
    """The kernels that this process had to compile because they were not in the cache."""
    return [
        f"{kernel.py_func.__module__}.{kernel.py_func.__name__}{types}"
        for kernel in KERNELS
        for types in kernel.stats.cache_misses
    ]


def _exists(line: str) -> bool:
    module, name, _ = line.split(" ", 2)
    try:
        return hasattr(import_module(module), name)
    except ImportError:
        return False


def _shown(type: Any) -> str:
    """A numba type as a Python expression that `_to_types` understands."""
    if not isinstance(type, numba.types.BaseTuple):
        return repr(type)
    members = "".join(f"{_shown(member)}, " for member in type.types)  # type: ignore[attr-defined]
    place = getattr(type, "instance_class", None)
    named = "" if place in (None, tuple) else f", '{place.__module__}:{place.__name__}'"
    return f"_tuple(({members}){named})"


def _to_types(text: str) -> Any:
    known = {name: value for name, value in vars(numba.types).items() if not name.startswith("_")}
    return eval(text, {"__builtins__": {}, **known, "bool": numba.types.boolean, "_tuple": _tuple})


def _tuple(members: tuple[Any, ...], place: str | None = None) -> Any:
    module, _, name = (place or "").partition(":")
    kind = getattr(import_module(module), name) if place else None
    to_type: Any = numba.types.BaseTuple.from_types
    return to_type(members, kind)


def compile_all() -> Iterator[tuple[int, int]]:
    """Compiles in two processes, module by module, so that kernels that call each other are compiled once.
    Yields, for each module, the number of its kernels and how many of them were not in the cache."""
    modules: dict[str, list[str]] = {}
    for line in recorded():
        modules.setdefault(line.split(" ", 1)[0], []).append(line)
    with ProcessPoolExecutor(AT_ONCE, get_context("spawn")) as pool:
        in_order = sorted(modules, key=lambda name: (name.rpartition(".")[2] not in LONGEST, -len(modules[name])))
        sizes = {pool.submit(precompile, modules[name]): len(modules[name]) for name in in_order}
        yield from ((sizes[done], done.result()) for done in as_completed(sizes))


def main() -> None:
    print(f"Kernels: {sum(compiled for _, compiled in compile_all()):,} compiled", file=sys.stderr)


if __name__ == "__main__":
    main()

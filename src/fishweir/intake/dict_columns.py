"""Converts published dicts to columns of the declared types: numbers in compiled code, everything else by column."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from operator import countOf, itemgetter
from typing import Any

import pyarrow as pa
from numpy.typing import NDArray

from fishweir.algebra.nodes import StreamDefinition
from fishweir.errors import QueryError
from fishweir.intake.convert import Bad, convert, convert_list, shown, side_by_side

TOGETHER = 2_000
"""Number of items that are converted at a time: they stay in the processor's cache while they are read several times.
"""
NUMBERS: dict[str, type] = {"int": int, "double": float}
"""Column types whose values are mostly of one type in Python."""
logger = logging.getLogger("fishweir.intake")

MANY = 100_000
"""The number of published dicts from which a process uses compiled code. Loading it takes a fifth of a second, so this
is done in the background."""

Reader = Callable[[Sequence[Any], Sequence[tuple[str, type]], int], "list[NDArray[Any]] | None"]


def columns_of_dicts(stream: StreamDefinition, items: Sequence[Any]) -> tuple[list[pa.Array], Bad]:
    """The declared columns, with NULL for invalid values, and the reasons by row. Raises QueryError if an item is not a
    mapping. The items must support slices."""
    found = _numbers(stream, items)
    rest = [column for column in stream.columns if column[0] not in found]
    bad: Bad = {}
    if rest:
        portions: list[list[pa.Array]] = []
        for start in range(0, max(len(items), 1), TOGETHER):
            arrays, wrong = _portion(stream, rest, items[start : start + TOGETHER], bool(found))
            portions.append(arrays)
            bad |= {start + row: reason for row, reason in wrong.items()}
        names, columns = [name for name, _ in rest], map(pa.concat_arrays, zip(*portions, strict=True))
        found |= zip(names, columns, strict=True)
    return [found[name] for name, _ in stream.columns], bad


def _numbers(stream: StreamDefinition, items: Sequence[Any]) -> dict[str, pa.Array]:
    """The columns of numbers, if the items are dicts with as many members as there are columns, and the numbers have
    the declared types; otherwise none."""
    columns = [(name, kind) for name, kind in stream.columns if kind in NUMBERS]
    reader = _compiled(len(items)) if columns else None
    if reader is None:
        return {}
    read = reader(items, [(name, NUMBERS[kind]) for name, kind in columns], len(stream.columns))
    if read is None:
        return {}
    return {name: convert(pa.array(one), kind)[0] for (name, kind), one in zip(columns, read, strict=True)}


class CompiledReader:
    """The compiled reader of numbers (dict_kernels.py), once it is worth it and loaded."""

    def __init__(self) -> None:
        self._seen, self._loads = 0, False
        self._reader: Reader | None = None

    def __call__(self, count: int) -> Reader | None:
        """Called with the number of dicts to read next."""
        self._seen += count
        if self._seen >= MANY and not self._loads and "numba" in sys.modules:  # numba would take as long again
            self._loads = True
            threading.Thread(target=self.load, name="fishweir kernels", daemon=True).start()
        return self._reader

    def load(self) -> None:
        try:
            from fishweir.intake.dict_kernels import read_numbers

            read_numbers([{"": 0}], [("", int)], 1)
            self._reader = read_numbers
        except Exception as error:  # the results are the same without it
            logger.warning("published dicts are converted without compiled code, which cannot be loaded: %s", error)


_compiled = CompiledReader()


def _portion(
    stream: StreamDefinition, columns: Sequence[tuple[str, str]], items: Sequence[Any], are_checked: bool
) -> tuple[list[pa.Array], Bad]:
    """Some columns of some items. `are_checked` tells that these are dicts with as many members as there are columns of
    the stream."""
    plain = are_checked or countOf(map(type, items), dict) == len(items)
    if not plain and (wrong := wrong_type(items, (Mapping,))):
        raise QueryError(f"stream {stream.name} accepts tuples as dicts, not {wrong}")
    names = [name for name, _ in columns]
    values, are_whole = _values(items, names, plain)
    converted = (convert_list(own, kind) for own, (_, kind) in zip(values, columns, strict=True))
    arrays, bad = side_by_side(list(zip(names, converted, strict=True)))
    declared = {name for name, _ in stream.columns}
    if are_whole and (are_checked or sum(map(len, items)) <= len(declared) * len(items)):
        return arrays, bad
    if set().union(*items) - declared:
        for row, item in enumerate(items):
            if unknown := [name for name in item if name not in declared]:
                bad[row] = f"unknown column {shown(unknown[0])} with value {shown(item[unknown[0]])}"
    return arrays, bad


def _values(items: Sequence[Any], names: Sequence[str], plain: bool) -> tuple[list[list[Any]], bool]:
    """The values of some columns, and whether all items are known to have all of these columns."""
    if plain:  # other mappings may compute missing keys
        with suppress(KeyError):
            return [list(map(itemgetter(name), items)) for name in names], True
    return [[row.get(name) for row in items] for name in names], False


def wrong_type(items: Any, kinds: tuple[type, ...]) -> str:
    """The name of the first type of items that is not one of these; empty if there is none. Checks each type once."""
    return next((kind.__name__ for kind in dict.fromkeys(map(type, items)) if not issubclass(kind, kinds)), "")

"""Converts values to the declared column types: one definition for single values, and a fast path for whole columns.

`to_kind` defines the conversion of a value. `convert` does the same for an Arrow column with Arrow's casts; if a cast
fails, the column is split until only the neighbourhood of the failing value is left for `to_kind`. Valid rows therefore
cost no Python time, and each invalid value gets its own error message.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from fishweir.algebra.values import to_number, to_text, to_timestamp
from fishweir.intake.schema import KINDS

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST, LAST = (
    (moment.replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1) for moment in (datetime.min, datetime.max)
)
SMALL, PIECES = 32, 8
BOOLEANS = {"true": True, "1": True, "false": False, "0": False}
REFUSED = (pa.ArrowException, ValueError, TypeError, OverflowError)

Bad = dict[int, str]
"""Reasons by row."""


def to_kind(value: Any, kind: str) -> Any:
    """The value as the declared type; None for NULL and NaN. Raises ValueError with the reason."""
    value = value.item() if hasattr(value, "item") else value
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    try:
        if isinstance(value, bytes):
            value = value.decode()
        converted = _SINGLE[kind](value.strip() if isinstance(value, str) and kind != "string" else value)
    except UnicodeDecodeError as error:
        raise ValueError(f"{shown(value)} is not UTF-8") from error
    except (ValueError, TypeError, OverflowError, KeyError) as error:
        raise ValueError(f"{shown(value)} is not {'an' if kind == 'int' else 'a'} {kind}") from error
    return converted


def shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _to_int(value: Any) -> int:
    if isinstance(value, str):
        try:
            value = int(value) if "_" not in value else None
        except ValueError:
            value = to_number(value)
    whole = int(value)
    if whole != value or not -(2**63) <= whole < 2**63:
        raise ValueError(value)
    return whole


def _to_double(value: Any) -> float:
    number = to_number(value) if isinstance(value, str) else value
    if not isinstance(number, int | float | Decimal):
        raise ValueError(value)
    return float(number)


def _to_boolean(value: Any) -> bool:
    if isinstance(value, str):
        return BOOLEANS[value.lower()]
    if value not in (0, 1):
        raise ValueError(value)
    return bool(value)


def _to_moment(value: Any) -> datetime:
    if isinstance(value, str) and to_number(value) is None:
        try:
            value = datetime.fromisoformat(value)  # exact to the microsecond, unlike a float
        except ValueError:
            value = to_timestamp(value)
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    seconds = to_number(value) if isinstance(value, str) else value
    if isinstance(seconds, bool) or not isinstance(seconds, int | float | Decimal):
        raise ValueError(value)
    return EPOCH + timedelta(microseconds=round(seconds * 1_000_000))


def _to_string(value: Any) -> str:
    if not isinstance(value, str | bool | int | float | Decimal | datetime | date):
        raise ValueError(value)
    text = value if isinstance(value, str) else to_text(value)
    text.encode()  # rejects lone surrogates
    return text


_SINGLE = {
    "int": _to_int, "double": _to_double, "boolean": _to_boolean, "timestamp": _to_moment,
    "string": _to_string,
}  # fmt: skip


def convert_values(values: Iterable[Any], kind: str) -> tuple[pa.Array, Bad]:
    """Converts Python values one by one. Returns the column, with NULL for invalid values, and the error messages."""
    converted: list[Any] = []
    bad: Bad = {}
    for row, value in enumerate(values):
        try:
            converted.append(to_kind(value, kind))
        except ValueError as error:
            converted.append(None)
            bad[row] = str(error)
    return pa.array(converted, KINDS[kind]), bad


def convert_list(values: list[Any], kind: str) -> tuple[pa.Array, Bad]:
    """Converts Python values as one column if they have the same type, otherwise one by one: Arrow would convert some
    of them to the type of others."""
    if kind == "int":
        with suppress(struct.error):  # some of them are not integers; otherwise this takes a quarter of the time
            return pa.array(np.frombuffer(struct.pack(f"{len(values)}q", *values), np.int64)), {}
    kinds = set(map(type, values)) - {type(None)}
    if len(kinds) > 1 and kinds != {int, float}:
        return convert_values(values, kind)
    try:
        column = pa.array(values)
    except REFUSED:
        return convert_values(values, kind)
    return convert(column, kind)


def convert(column: pa.Array | pa.ChunkedArray, kind: str) -> tuple[pa.Array, Bad]:
    """Converts an Arrow column to the declared type: NULL if a value cannot be converted, with an error message per
    row."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pt.is_dictionary(column.type):
        column = column.dictionary_decode()
    return _convert_piece(column, kind)


def side_by_side(columns: Sequence[tuple[str, tuple[pa.Array, Bad]]]) -> tuple[list[pa.Array], Bad]:
    """Combines converted columns. The reasons of a row name its columns."""
    bad: Bad = {}
    for name, (_, wrong) in columns:
        for row, reason in wrong.items():
            bad[row] = f"{bad[row]}; column {name}: {reason}" if row in bad else f"column {name}: {reason}"
    return [array for _, (array, _) in columns], bad


def _convert_piece(column: pa.Array, kind: str) -> tuple[pa.Array, Bad]:
    try:
        return _cast(column, kind), {}
    except REFUSED:
        if len(column) <= SMALL:
            return convert_values(_python_values(column), kind)
    size = -(-len(column) // PIECES)
    arrays: list[pa.Array] = []
    bad: Bad = {}
    for start in range(0, len(column), size):
        array, wrong = _convert_piece(column.slice(start, size), kind)
        arrays.append(array)
        bad |= {start + row: reason for row, reason in wrong.items()}
    return pa.concat_arrays(arrays), bad


def _python_values(column: pa.Array) -> list[Any]:
    if pt.is_string(column.type) or pt.is_large_string(column.type):
        column = column.cast(pa.large_binary())  # its bytes may not be UTF-8
    if pt.is_timestamp(column.type):
        column = pc.cast(column, pa.timestamp("us", tz=column.type.tz), safe=False)
    return list(column.to_pylist())


def _cast(column: pa.Array, kind: str) -> pa.Array:
    """Arrow's cast if it has the semantics of `to_kind`; raises otherwise."""
    given, target = column.type, KINDS[kind]
    if pt.is_null(given):
        return pa.nulls(len(column), target)
    if pt.is_binary(given) or pt.is_large_binary(given):
        column, given = column.cast(pa.string()), pa.string()
    if pt.is_string(given) or pt.is_large_string(given):
        return column.cast(target) if kind == "string" else _cast_text(column, kind)
    if kind == "timestamp":
        return _cast_moments(column)
    if kind == "string" and not (pt.is_integer(given) or pt.is_boolean(given)):
        raise TypeError(given)
    if (kind == "boolean" and not pt.is_boolean(given)) or pt.is_temporal(given):
        raise TypeError(given)
    return _nan_to_null(column).cast(target)


def _nan_to_null(column: pa.Array) -> pa.Array:
    if not pt.is_floating(column.type):
        return column
    return pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)


def _cast_text(column: pa.Array, kind: str) -> pa.Array:
    text = pc.utf8_trim_whitespace(column)
    match kind:
        case "int" if pc.any(pc.match_substring(text, "x", ignore_case=True)).as_py():
            raise ValueError("Arrow reads 0x1f as a number")
        case "double":
            numbers = text.cast(pa.float64())
            if pc.all(pc.is_finite(numbers)).as_py() is False:
                raise ValueError("Arrow reads nan and inf as numbers")
            return numbers
        case "timestamp":
            return _cast_moment_text(text)
    return text.cast(KINDS[kind])


def _cast_moment_text(text: pa.Array) -> pa.Array:
    for type_ in (pa.timestamp("us"), KINDS["timestamp"]):
        try:
            return _cast_moments(text.cast(type_))
        except pa.ArrowInvalid:
            continue
    return _cast_moments(_cast_text(text, "double"))


def _cast_moments(column: pa.Array) -> pa.Array:
    """Times without a zone are UTC, numbers are seconds since 1970. The year must be in Python's range."""
    moments = _any_moments(column, KINDS["timestamp"])
    bounds = pc.min_max(moments.cast(pa.int64()))
    if len(moments) > moments.null_count and not FIRST <= bounds["min"].as_py() <= bounds["max"].as_py() <= LAST:
        raise ValueError("a year before 1 or after 9999")
    return moments


def _any_moments(column: pa.Array, target: pa.DataType) -> pa.Array:
    given = column.type
    if pt.is_date(given) or pt.is_timestamp(given):
        zone = given.tz if pt.is_timestamp(given) else None
        return column.cast(pa.timestamp("us", tz=zone), safe=False).cast(target)
    if pt.is_integer(given):
        return pc.multiply_checked(column.cast(pa.int64()), 1_000_000).cast(target)
    if not pt.is_floating(given):
        raise TypeError(given)
    micros = pc.round(pc.multiply(_nan_to_null(column).cast(pa.float64()), 1e6))
    return micros.cast(pa.int64()).cast(target)

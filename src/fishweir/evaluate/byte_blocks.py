"""Tests and copies of many bytes at once, for kernels that scan texts. Each compiles to a few vector instructions.

In: arrays of bytes, and indexes from which a block of bytes begins. Out: for a test, a number with a bit set for each
byte for which it holds, the lowest bit for the first byte. The caller ensures that the bytes exist.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numba
import numba.extending
from llvmlite import ir

BLOCK = 32
"""The number of bytes of a block."""
_BYTES = ir.VectorType(ir.IntType(8), BLOCK)
Test = Callable[[Any, Any], Any]


def _every(byte: int) -> Any:
    return ir.Constant(_BYTES, [byte] * BLOCK)


def _block(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> Any:
    """The address of the bytes of an array from an index on."""
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), _BYTES.as_pointer())


def _loaded(builder: Any, address: Any) -> Any:
    found = builder.load(address)
    found.align = 1
    return found


def _bits(builder: Any, holds: Any) -> Any:
    return builder.zext(builder.bitcast(holds, ir.IntType(BLOCK)), ir.IntType(64))


def either(*tests: Test) -> Test:
    return lambda builder, block: reduce(builder.or_, (test(builder, block) for test in tests))


def is_byte(byte: int) -> Test:
    return lambda builder, block: builder.icmp_unsigned("==", block, _every(byte))


def is_not(test: Test) -> Test:
    return lambda builder, block: builder.not_(test(builder, block))


def is_between(first: int, last: int, ignored: int = 0) -> Test:
    """Whether a byte is in a range, once the `ignored` bits are set."""

    def test(builder: Any, block: Any) -> Any:
        moved = builder.sub(builder.or_(block, _every(ignored)), _every(first))
        return builder.icmp_unsigned("<=", moved, _every(last - first))

    return test


def testing(test: Test) -> Any:
    """A function of an array and an index that tests a block."""

    def intrinsic(typing_context: Any, array: Any, index: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return _bits(builder, test(builder, _loaded(builder, _block(context, builder, array, *args))))

        return numba.types.uint64(array, numba.types.int64), emit

    return numba.extending.intrinsic(intrinsic)


def _differences(typing_context: Any, array: Any, one: Any, other: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data, *indexes = args
        blocks = [_loaded(builder, _block(context, builder, array, data, index)) for index in indexes]
        return _bits(builder, builder.icmp_unsigned("!=", *blocks))

    return numba.types.uint64(array, numba.types.int64, numba.types.int64), emit


differences: Any = numba.extending.intrinsic(_differences)
"""The bytes in which two blocks of an array differ."""


def _copy_block(typing_context: Any, data: Any, index: Any, into: Any, at: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        block = _loaded(builder, _block(context, builder, data, *args[:2]))
        builder.store(block, _block(context, builder, into, *args[2:]), align=1)
        return context.get_dummy_value()

    return numba.types.void(data, numba.types.int64, into, numba.types.int64), emit


copy_block: Any = numba.extending.intrinsic(_copy_block)
"""Copies a block from an index of an array to an index of another."""

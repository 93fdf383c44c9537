"""Compiled kernels: a plain function over NumPy arrays, compiled by numba when first called.

Shared: compiled code is cached on disk beside the sources (or in numba's own cache folder where that one is not
writable), so that a second process does not compile again. The set-up compiles all of them (evaluate/precompile.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numba.extending
from llvmlite import ir

Function = TypeVar("Function", bound=Callable[..., Any])

KERNELS: list[Any] = []
"""The kernels of all modules that this process has imported."""


def kernel(function: Function) -> Function:
    """Compile without the interpreter lock; the kernels start no threads, Spark has its own workers."""
    return _compiled(function)


def lean_kernel(function: Function) -> Function:
    """As kernel, for one that makes no arrays: references are not counted, which takes long where arrays are many."""
    return _compiled(function, _nrt=False)


def _compiled(function: Function, **options: Any) -> Function:
    njit: Any = numba.njit
    compiled: Any
    try:
        compiled = njit(cache=True, nogil=True, **options)(function)
    except RuntimeError:  # numba found no folder to cache in
        compiled = njit(nogil=True, **options)(function)
    KERNELS.append(compiled)
    return compiled


def inlined(function: Function) -> Function:
    """A small function that becomes part of each kernel that calls it: no arrays are handed over."""
    compiled: Any = numba.njit(inline="always")(function)
    return compiled


def _as_intrinsic(emit: Callable[[Any, Any], Any]) -> Any:
    """A function of one 64-bit word that becomes a single machine instruction."""

    def intrinsic(typing_context: Any, word: Any) -> Any:
        signature = numba.types.int64(numba.types.uint64)
        return signature, lambda context, builder, _, args: emit(builder, args[0])

    return numba.extending.intrinsic(intrinsic)


_ZERO_IS_DEFINED = ir.Constant(ir.IntType(1), 0)
trailing_zeros: Callable[[Any], int] = _as_intrinsic(lambda builder, word: builder.cttz(word, _ZERO_IS_DEFINED))
population: Callable[[Any], int] = _as_intrinsic(lambda builder, word: builder.ctpop(word))


def _word_at(typing_context: Any, array: Any, index: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        bytes_ = context.make_array(signature.args[0])(context, builder, args[0])
        at = builder.gep(bytes_.data, [args[1]])
        word = builder.load(builder.bitcast(at, ir.IntType(64).as_pointer()))
        word.align = 1
        return word

    return numba.types.uint64(array, numba.types.int64), emit


word_at: Any = numba.extending.intrinsic(_word_at)
"""Eight bytes of an array from an index on as one number, the first one lowest; the caller sees that they are there."""

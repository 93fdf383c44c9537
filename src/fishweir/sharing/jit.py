"""Compiled kernels: a plain function over NumPy arrays, compiled by numba when first called.

Shared: compiled code is cached on disk beside the sources (or in numba's own cache folder where that one is not
writable), so that a second process does not compile again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numba.extending
from llvmlite import ir

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Compile without the interpreter lock; the kernels start no threads, Spark has its own workers."""
    compiled: Any
    try:
        compiled = numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # numba found no folder to cache in
        compiled = numba.njit(nogil=True)(function)
    return compiled


def lean_kernel(function: Function) -> Function:
    """As kernel, for one that makes no arrays: nothing is counted, which where there are many of them takes long."""
    compiled: Any
    try:
        compiled = numba.njit(cache=True, nogil=True, _nrt=False)(function)
    except RuntimeError:
        compiled = numba.njit(nogil=True, _nrt=False)(function)
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

"""The one place that knows whether numba is there.

In: a plain Python function over NumPy arrays. Out: the same function, compiled when first called if numba is
installed, as it is if not. Shared: compiled code is cached on disk beside the sources (or in numba's own cache
folder where that one is not writable), so that a second process does not compile again.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

numba: Any
try:
    numba = importlib.import_module("numba")
    importlib.import_module("numba.extending")
except ImportError:  # the NumPy way of every index is then the only one
    numba = None

HAVE_NUMBA: bool = numba is not None


def kernel(function: Function) -> Function:
    """Compile without the interpreter lock; the kernels start no threads, Spark has its own workers."""
    if numba is None:
        return function
    try:
        return numba.njit(cache=True, nogil=True)(function)  # type: ignore[no-any-return, unused-ignore]
    except RuntimeError:  # numba found no folder to cache in
        return numba.njit(nogil=True)(function)  # type: ignore[no-any-return, unused-ignore]


def _as_intrinsic(emit: Callable[[Any, Any], Any]) -> Any:
    """A function of one 64-bit word that becomes a single machine instruction."""

    def intrinsic(typing_context: Any, word: Any) -> Any:
        signature = numba.types.int64(numba.types.uint64)
        return signature, lambda context, builder, _, args: emit(builder, args[0])

    return numba.extending.intrinsic(intrinsic)


if HAVE_NUMBA:
    _llvm = importlib.import_module("llvmlite.ir")
    _ZERO_IS_DEFINED = _llvm.Constant(_llvm.IntType(1), 0)
    trailing_zeros: Callable[[Any], int] = _as_intrinsic(lambda builder, word: builder.cttz(word, _ZERO_IS_DEFINED))
    population: Callable[[Any], int] = _as_intrinsic(lambda builder, word: builder.ctpop(word))
else:

    def trailing_zeros(word: Any) -> int:
        return (int(word) & -int(word)).bit_length() - 1 if word else 64

    def population(word: Any) -> int:
        return int(word).bit_count()

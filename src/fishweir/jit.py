"""Compiled kernels: plain functions over NumPy arrays that numba compiles on the first call.

Shared: compiled code is cached on disk next to the sources, or in numba's own cache folder if that location is not
writable, so that other processes need not compile it again. The set-up compiles all kernels (evaluate/precompile.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numba.extending
from llvmlite import ir
from numba.np import arrayobj

Function = TypeVar("Function", bound=Callable[..., Any])

KERNELS: list[Any] = []
"""The kernels of all modules that this process has imported."""


def kernel(function: Function) -> Function:
    """Compiles a function to run without the interpreter lock. Kernels start no threads: Spark has its own workers."""
    return _compiled(function)


def lean_kernel(function: Function) -> Function:
    """Like `kernel`, but without reference counting, which is slow with many arrays. Only for functions that allocate
    no arrays."""
    return _compiled(function, _nrt=False, forceinline=False)


def leaf_kernel(function: Function) -> Function:
    """Like `lean_kernel`, but LLVM inlines it into each calling kernel. A call passes seven words per array, which
    takes longer than what a small function does."""
    return _compiled(function, _nrt=False, forceinline=True)


def interpreter_kernel(function: Function) -> Function:
    """Like `lean_kernel`, but with the interpreter lock, for functions that use Python objects."""
    return _compiled(function, nogil=False, _nrt=False, forceinline=False)


def _compiled(function: Function, nogil: bool = True, **options: Any) -> Function:
    njit: Any = numba.njit
    compiled: Any
    try:
        compiled = njit(cache=True, nogil=nogil, **options)(function)
    except RuntimeError:  # numba found no writable cache folder
        compiled = njit(nogil=nogil, **options)(function)
    KERNELS.append(compiled)
    return compiled


def inlined(function: Function) -> Function:
    """Compiles a small function that is inlined into each calling kernel, so that no arrays are passed."""
    compiled: Any = numba.njit(inline="always")(function)
    return compiled


def _as_intrinsic(emit: Callable[[Any, Any], Any]) -> Any:
    """A function of one 64-bit word that compiles to a single machine instruction."""

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


def _word_from(typing_context: Any, address: Any, index: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        words = builder.inttoptr(args[0], ir.IntType(64).as_pointer())
        return builder.load(builder.gep(words, [args[1]]))

    return numba.types.uint64(numba.types.uint64, numba.types.int64), emit


word_from: Any = numba.extending.intrinsic(_word_from)
"""Reads an element of an array of 64-bit words by the address of the array, so that a kernel can take any number of
arrays. The caller ensures that the array and the element exist."""

word_at: Any = numba.extending.intrinsic(_word_at)
"""Reads eight bytes of an array from an index as one little-endian number. The caller ensures that they exist."""


def _put_word(typing_context: Any, array: Any, index: Any, word: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        bytes_ = context.make_array(signature.args[0])(context, builder, args[0])
        at = builder.gep(bytes_.data, [args[1]])
        builder.store(args[2], builder.bitcast(at, ir.IntType(64).as_pointer()), align=1)
        return context.get_dummy_value()

    return numba.types.void(array, numba.types.int64, numba.types.uint64), emit


put_word: Any = numba.extending.intrinsic(_put_word)
"""Writes a number to eight bytes of an array from an index on. The caller ensures that they exist."""


def _prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        elements = context.make_array(signature.args[0])(context, builder, args[0])
        at = builder.bitcast(builder.gep(elements.data, [args[1]]), ir.IntType(8).as_pointer())
        word = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [at.type, word, word, word])
        into_all_caches = [ir.Constant(word, value) for value in (0, 3, 1)]
        builder.call(builder.module.declare_intrinsic("llvm.prefetch", [at.type], kind), [at, *into_all_caches])
        return context.get_dummy_value()

    return numba.types.void(array, numba.types.int64), emit


prefetch: Any = numba.extending.intrinsic(_prefetch)
"""Begins to load an element of an array into the processor's cache, by its place in the array as a whole."""


def _bytes_at(typing_context: Any, address: Any, size: Any) -> Any:
    kind = numba.types.Array(numba.types.uint8, 1, "C")
    fill: Any = arrayobj.populate_array

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(kind)(context, builder)
        data = builder.inttoptr(args[0], ir.IntType(8).as_pointer())
        one = context.get_constant(numba.types.intp, 1)
        fill(array, data=data, shape=[args[1]], strides=[one], itemsize=one, meminfo=None)
        return array._getvalue()

    return kind(numba.types.int64, numba.types.int64), emit


bytes_at: Any = numba.extending.intrinsic(_bytes_at)
"""An array of some bytes from an address on, so that a kernel can write any number of arrays. The caller ensures that
they exist."""

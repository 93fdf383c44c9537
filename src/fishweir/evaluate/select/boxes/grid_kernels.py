"""The inner loops of the grid of bitmaps, compiled by numba.

In: keys of tuples, then (bitmap row, slice of starts, slice of ends) per tuple and axis. Out: bitmaps, or concatenated
query numbers. The working bitmap stays in the first-level cache: 12.5 KB for 100,000 queries.

Indices are unsigned where it matters. For a signed index, numba adds a test for negative indices, which makes clearing
a bit four times as slow.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import numpy.typing as npt

from fishweir.evaluate.select.boxes.matches import Numbers, Offsets, Words
from fishweir.evaluate.select.boxes.regions import Keys
from fishweir.jit import kernel, population, trailing_zeros

Found = npt.NDArray[np.int64]
Counts = npt.NDArray[np.int64]

AT_ONCE = 4
"""Number of rows that are ANDed in one pass. The axes of `Found` are padded to a multiple of it."""
WORDS_A_LINE = 8
IN_LINE = np.uint64(WORDS_A_LINE - 1)
UNROLLED = 8
"""Number of entries that listing may write beyond the last number."""
DENSE = 4
"""Set bits per word from which a table lookup per piece is the faster way to list them."""
DENSER = 12
"""Set bits per word from which bytes are better than longer pieces, because more and more of the latter have eight or
more set bits."""
PIECE = 13
"""Number of bits looked up at once while few are set: a table of 64 KB, five pieces per word."""


def places(bits: int) -> Words:
    """For each number with this many bits, the positions of its first eight set bits, one byte each."""
    left, found = np.arange(1 << bits, dtype=np.uint64), np.zeros((1 << bits, 8), np.uint8)
    for i in range(8):
        found[:, i] = np.bitwise_count(~left & (left - np.uint64(1)))
        left &= left - np.uint64(1)
    return found.view(np.uint64).ravel()


BYTE_PLACES, PIECE_PLACES = places(8), places(PIECE)

_llvm: Any = importlib.import_module("llvmlite.ir")
_numba: Any = importlib.import_module("numba")


def _list_word(width: int, numbers: Any, places: Any) -> Any:
    """For each piece, one instruction writes eight numbers. The next piece overwrites the surplus ones."""
    signature = _numba.types.uint64(numbers, _numba.types.uint64, _numba.types.uint64, _numba.types.int32, places)

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        (to, at, bits, first, _), int32, int64 = args, _llvm.IntType(32), _llvm.IntType(64)
        bytes_, eight = _llvm.VectorType(_llvm.IntType(8), 8), _llvm.VectorType(int32, 8)
        out = context.make_array(signature.args[0])(context, builder, to).data
        table = context.make_array(signature.args[4])(context, builder, args[4]).data
        undefined = _llvm.Constant(eight, _llvm.Undefined)
        lane = builder.insert_element(undefined, first, int32(0))
        bases = builder.shuffle_vector(lane, undefined, _llvm.Constant(eight, [0] * 8))
        for shift in range(0, 64, width):
            piece = builder.and_(builder.lshr(bits, int64(shift)), int64((1 << width) - 1))
            found = builder.load(builder.bitcast(builder.gep(table, [piece]), bytes_.as_pointer()))
            found.align = 8
            listed = builder.add(builder.zext(found, eight), builder.add(bases, _llvm.Constant(eight, [shift] * 8)))
            builder.store(listed, builder.bitcast(builder.gep(out, [at]), eight.as_pointer())).align = 4
            at = builder.add(at, builder.ctpop(piece))
        return at

    return signature, emit


@_numba.extending.intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def list_word(typing_context: Any, numbers: Any, here: Any, word: Any, base: Any, places: Any) -> Any:
    """Writes base + the positions of the word's set bits from numbers[here] on. Returns the position after them."""
    return _list_word(8, numbers, places)


@_numba.extending.intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def list_pieces(typing_context: Any, numbers: Any, here: Any, word: Any, base: Any, places: Any) -> Any:
    """Like list_word, for a word that is not crowded."""
    return _list_word(PIECE, numbers, places)


@_numba.extending.intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def prefetch(typing_context: Any, words: Any, place: Any) -> Any:
    """Prefetches the cache line of a word of the bitmaps, numbered across all rows, without blocking."""
    signature = _numba.types.void(words, _numba.types.uint64)

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        address, int32 = _llvm.IntType(8).as_pointer(), _llvm.IntType(32)
        kind = _llvm.FunctionType(_llvm.VoidType(), [address, int32, int32, int32])
        ask = builder.module.declare_intrinsic("llvm.prefetch", [address], kind)
        reading, second_level, of_data = int32(0), int32(2), int32(1)
        builder.call(ask, [builder.bitcast(builder.gep(data, [args[1]]), address), reading, second_level, of_data])
        return context.get_dummy_value()

    return signature, emit


@kernel
def count_below(cuts: Keys, first: int, width: int, key: int) -> int:
    """The index of the first of some cuts above a key. Unsigned, with no branches except the loop's."""
    below, left = np.uint64(first), np.uint64(width)
    while left > np.uint64(0):
        half = (left + np.uint64(1)) >> np.uint64(1)
        below += half if cuts[below + half - np.uint64(1)] <= key else np.uint64(0)
        left -= half
    return below  # type: ignore[return-value]


@kernel
def look_up(
    keys: Any,
    cell_cuts: Keys,
    cuts: Keys,
    first_rank: Counts,
    around: Numbers,
    limits: Numbers,
    cells_before: int,
    queries_before: int,
    found: Any,
) -> None:
    """For one axis and each tuple: its bitmap row, the slice of surplus starts, and the slice of surplus ends.

    First the cell is found, whose cuts stay in the cache, then the rank within it. Few lines of the large arrays are
    read.
    """
    for row in range(len(keys)):
        cell = count_below(cell_cuts, 0, len(cell_cuts), keys[row])
        first = first_rank[cell]
        rank = count_below(cuts, first, first_rank[cell + np.uint64(1)] - first - 1, keys[row])
        found[row, 0] = cells_before + np.int64(cell)
        found[row, 1] = queries_before + around[rank, 0]
        found[row, 2] = queries_before + limits[cell, 0]
        found[row, 3] = queries_before + limits[cell, 1]
        found[row, 4] = queries_before + around[rank, 1]


@kernel
def clear(members: Numbers, start: int, end: int, words: Any) -> None:
    one, low_bits = np.uint64(1), np.uint64(63)
    for position in range(np.uint64(start), np.uint64(end)):
        query = np.uint64(members[position])
        words[query >> np.uint64(6)] &= ~(one << (query & low_bits))


@kernel
def fill_bitmaps(first_rank: Found, started: Found, ended: Found, starts: Numbers, ends: Numbers, out: Words) -> None:
    """The queries that overlap each cell: those of the previous cell, without those that ended, plus those that begin.

    An empty query ends before it begins, at rank 0, and is in no bitmap.
    """
    one = np.uint64(1)
    for cell in range(len(out)):
        if cell > 0:
            out[cell] = out[cell - 1]
        least, after = first_rank[cell], first_rank[cell + 1]
        for position in range(started[least], started[after]):
            query = starts[position]
            out[cell, query >> 6] |= one << np.uint64(query & 63)
        gone = 0 if cell == 0 else ended[first_rank[cell - 1] + 1]
        for position in range(gone, ended[least + 1]):
            query = ends[position]
            out[cell, query >> 6] &= ~(one << np.uint64(query & 63))


@kernel
def and_one(found: Any, bitmaps: Words, starts: Numbers, ends: Numbers, words: Any) -> None:
    """The bitmap of one tuple: ANDs the rows, then clears the queries that begin after the tuple or end before it."""
    for axis in range(0, len(found), AT_ONCE):
        one, two = bitmaps[found[axis, 0]], bitmaps[found[axis + 1, 0]]
        three, four = bitmaps[found[axis + 2, 0]], bitmaps[found[axis + 3, 0]]
        if axis == 0:
            for position in range(len(words)):
                words[position] = one[position] & two[position] & three[position] & four[position]
        else:
            for position in range(len(words)):
                words[position] &= one[position] & two[position] & three[position] & four[position]
    for axis in range(len(found)):
        clear(starts, found[axis, 1], found[axis, 2], words)
        clear(ends, found[axis, 3], found[axis, 4], words)


@kernel
def and_bitmaps(found: Found, bitmaps: Words, starts: Numbers, ends: Numbers, out: Words) -> None:
    for row in range(len(found)):
        and_one(found[row], bitmaps, starts, ends, out[row])


@kernel
def list_dense(words: Words, position: int, numbers: Numbers, bitmaps: Words, coming: Words) -> int:
    """Writes the positions of the set bits, using a table. The time does not depend on the number of set bits."""
    here = np.uint64(position)
    for at in range(len(words)):
        prefetch(bitmaps, coming[np.uint64(at) & IN_LINE] + (np.uint64(at) & ~IN_LINE))
        here = list_word(numbers, here, words[at], np.int32(at << 6), BYTE_PLACES)
    return np.int64(here)  # type: ignore[return-value]


@kernel
def is_crowded(word: int) -> bool:
    """Whether a piece has more set bits than its table entry can hold."""
    counts = 0
    for i in range(-(-64 // PIECE)):
        counts |= population((word >> np.uint64(i * PIECE)) & np.uint64((1 << PIECE) - 1))
    return counts >= 8


@kernel
def list_middling(words: Words, position: int, numbers: Numbers, bitmaps: Words, coming: Words) -> int:
    """Like list_dense, with longer pieces while they have few set bits."""
    here = np.uint64(position)
    for at in range(len(words)):
        prefetch(bitmaps, coming[np.uint64(at) & IN_LINE] + (np.uint64(at) & ~IN_LINE))
        word, base = words[at], np.int32(at << 6)
        if is_crowded(word):
            here = list_word(numbers, here, word, base, BYTE_PLACES)
        else:
            here = list_pieces(numbers, here, word, base, PIECE_PLACES)
    return np.int64(here)  # type: ignore[return-value]


@kernel
def list_sparse(words: Words, position: int, numbers: Numbers, bitmaps: Words, coming: Words) -> int:
    """Writes the positions of the set bits, always four at a time. Surplus entries are overwritten next.

    A loop that ends with each word's last bit is mispredicted once per word and takes nearly twice as long.
    """
    one = np.uint64(1)
    here = np.uint64(position)
    for at in range(len(words)):
        prefetch(bitmaps, coming[np.uint64(at) & IN_LINE] + (np.uint64(at) & ~IN_LINE))
        word = words[at]
        base = np.int32(at << 6)
        after = here + np.uint64(population(word))
        while True:
            for ahead in range(4):
                numbers[here + np.uint64(ahead)] = base + np.int32(trailing_zeros(word))
                word &= word - one
            here += np.uint64(4)
            if word == np.uint64(0):
                break
        here = after
    return np.int64(here)  # type: ignore[return-value]


@kernel
def list_matches(
    found: Found,
    bitmaps: Words,
    starts: Numbers,
    ends: Numbers,
    row: int,
    position: int,
    numbers: Numbers,
    offsets: Offsets,
) -> tuple[int, int]:
    """Writes the numbers of one tuple after another while there is room. The previous tuple determines how they are
    listed.

    Listing is bound by computation and ANDing by memory. While a tuple is listed, the rows of the next one (for up to
    eight axes) are therefore prefetched: with each word listed, a line of eight words of one of them.
    """
    words = np.empty(bitmaps.shape[1], dtype=np.uint64)
    coming = np.empty(WORDS_A_LINE, dtype=np.uint64)
    while row < len(found):
        if position + len(words) * 64 + UNROLLED > len(numbers):
            return row, position
        and_one(found[row], bitmaps, starts, ends, words)
        before = offsets[row] - offsets[row - 1] if row > 0 else 0
        after = min(row + 1, len(found) - 1)
        for axis in range(WORDS_A_LINE):
            coming[axis] = found[after, axis % found.shape[1], 0] * len(words)
        if before > DENSER * len(words):
            position = list_dense(words, position, numbers, bitmaps, coming)
        elif before > DENSE * len(words):
            position = list_middling(words, position, numbers, bitmaps, coming)
        else:
            position = list_sparse(words, position, numbers, bitmaps, coming)
        row += 1
        offsets[row] = position
    return row, position

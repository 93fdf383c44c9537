"""Pieces of an ordinary document: what the check found, so that texts of nodes are written without reading it again.

A piece is a tag, a text, or anything else between two tags. The check (check_kernels.py) lists the pieces of the
document element in order: where each begins, its kind with flags, and, for a start tag, the places of its end tag and
of its parent. A piece ends where the next one begins. The last piece is followed by one more, which says where it ends,
how many elements there are, and whether one of them declares namespaces.
"""

from __future__ import annotations

from typing import Any

from fishweir.jit import inlined

BEGIN, FLAGS, LAST, PARENT, ELEMENT, PIECE = range(6)
"""Columns of a piece: its first byte, its kind with flags, the place of the last piece of its element, and the place of
the parent, or -1. `ELEMENT` in row `n` is the place of the n-th element instead."""

TEXT, START, EMPTY, END, SECTION, COMMENT, INSTRUCTION, NOTHING = range(8)
"""Kinds of pieces. `EMPTY` is a tag that ends with `/>`, `SECTION` a CDATA section."""
KIND = 7

COPIED, PLAIN, DECLARES = 8, 16, 32
"""Flags: markup copies the piece as it is; the string value copies the text as it is; the tag declares namespaces."""


@inlined
def put_piece(pieces: Any, place: int, begin: int, flags: int) -> None:
    """Lists a piece, if pieces are listed at all."""
    if place < len(pieces):
        pieces[place, BEGIN], pieces[place, FLAGS], pieces[place, LAST] = begin, flags, place


def most_pieces(size: int) -> int:
    """The maximum number of pieces in a number of bytes. A text is at least one byte, a tag three."""
    return size // 2 + 2

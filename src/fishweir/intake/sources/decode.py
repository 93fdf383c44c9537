"""Decodes response bodies: content codings and compressed files, with a limit on the decompressed size.

In: the bytes of a body and the codings that its server declares. A coding that the bytes do not have is ignored, since
some servers declare one by mistake. A body that is itself a gzip file (`feed.xml.gz`) is decompressed as well.
"""

from __future__ import annotations

import zlib
from typing import Any

import brotli

CODINGS = "gzip, deflate, br"
"""The value of Accept-Encoding."""
GZIP = b"\x1f\x8b"


class TooLarge(ValueError):
    """More bytes than allowed."""


def decoded(body: bytes, codings: str, limit: int) -> bytes:
    """The decoded body. Raises TooLarge, or ValueError if it is truncated or invalid."""
    for coding in reversed([name.strip().lower() for name in codings.split(",")]):
        if coding in ("gzip", "x-gzip") and body.startswith(GZIP):
            body = _inflated(body, 31, limit)
        elif coding == "deflate" and body:
            body = _inflated(body, 15 if body[0] & 15 == 8 else -15, limit)
        elif coding == "br" and body and not body.lstrip().startswith((b"<", b"{")):
            body = _unbrotlied(body, limit)
    return _inflated(body, 31, limit) if body.startswith(GZIP) else body


def _inflated(body: bytes, window: int, limit: int) -> bytes:
    """Decompresses a body. A gzip file may have several consecutive members, and other data after the last one."""
    found = bytearray()
    try:
        while body and (not found or body.startswith(GZIP)):
            stream = zlib.decompressobj(window)
            found += stream.decompress(body, limit + 1 - len(found))
            if len(found) > limit:
                raise TooLarge(f"it is larger than {limit:,} bytes")
            if not stream.eof:
                raise ValueError("the compressed data is truncated")
            body = stream.unused_data
    except zlib.error as error:
        raise ValueError(f"the compressed data is invalid: {error}") from None
    return bytes(found)


def _unbrotlied(body: bytes, limit: int) -> bytes:
    stream: Any = brotli.Decompressor()
    found = bytearray()
    try:
        found += stream.process(body, output_buffer_limit=limit + 1)
        while len(found) <= limit and not stream.is_finished():
            more = stream.process(b"", output_buffer_limit=limit + 1)
            if not more:
                raise ValueError("the compressed data is truncated")
            found += more
    except brotli.error as error:
        raise ValueError(f"the compressed data is invalid: {error}") from None
    if len(found) > limit:
        raise TooLarge(f"it is larger than {limit:,} bytes")
    return bytes(found)

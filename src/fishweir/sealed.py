"""Files of a home: written atomically, sealed with a checksum, verified when they are read.

A *seal* is the length of a file and the xxh3 hash of its content. Each reference to a write-once file contains its seal
(in the segment list of a log, or in a commit). A process verifies a file when it first reads it. JSON files and array
files contain their own seal. Every defect of a file raises a `HomeError` that names the file and the remedy.
"""

from __future__ import annotations

import errno
import json
import logging
import mmap
import os
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from io import RawIOBase
from pathlib import Path
from typing import Any, TypeVar

import xxhash

from fishweir.errors import CannotWrite, HomeError

logger = logging.getLogger("fishweir.home")

T = TypeVar("T")

TO_DO = "restore it from a backup; `fishweir check` lists other damage, `fishweir repair` rebuilds what can be rebuilt"
OPENING, CONTENT, CLOSING = '{"xxh3": "', '", "content": ', "}\n"
DIGITS = 16
SMALL = 1 << 18
PIECES = 1024
"""The number of pieces that the operating system writes in one call."""

Stamp = tuple[int, int, int]
"""Size, modification time and inode of a file."""


def damaged(path: Path, wrong: str, to_do: str = TO_DO) -> HomeError:
    return HomeError(f"{path} {wrong}: {to_do}")


@contextmanager
def reading(path: Path, to_do: str = TO_DO) -> Iterator[None]:
    """Turns errors while a file is read into an error that names the file."""
    try:
        yield
    except CannotWrite:
        raise
    except FileNotFoundError as error:
        raise damaged(path, "is missing", to_do) from error
    except PermissionError as error:
        raise damaged(
            path, "cannot be read: permission denied", "grant read permission to the user of the job"
        ) from error
    except (OSError, ValueError, LookupError, TypeError, NotImplementedError, struct.error) as error:
        raise damaged(path, f"is damaged ({str(error)[:200]})", to_do) from error


@contextmanager
def writing(path: Path, temporary: Path | str | None = None) -> Iterator[None]:
    """Turns errors while a file is written into an error that names the file, and removes the temporary file."""
    try:
        yield
    except OSError as error:
        if temporary is not None:
            with suppress(OSError):
                os.unlink(temporary)
        if isinstance(error, CannotWrite):
            raise
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        to_do = "free some space; nothing is lost" if full else "grant the user of the job write permission to the home"
        raise CannotWrite(error.errno or 0, f"cannot write {path} ({error.strerror or error}): {to_do}") from error


def in_folder(path: Path, write: Callable[[], T]) -> T:
    """Writes a file whose folder may not exist yet. It mostly does, so it is not looked for first."""
    try:
        return write()
    except OSError as error:
        if error.errno != errno.ENOENT:
            raise
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    return write()


def digest(data: bytes | memoryview) -> str:
    return xxhash.xxh3_64_hexdigest(data)


def write_all(file: RawIOBase, content: bytes | memoryview) -> None:
    """Writes all bytes to an unbuffered file. If the disk is almost full, the first write may be partial without an
    error; writing the rest then raises it."""
    rest = memoryview(content)
    while rest:
        rest = rest[file.write(rest) :]


def write_pieces(file: RawIOBase, pieces: Sequence[bytes | memoryview]) -> None:
    """Writes pieces one after another to an unbuffered file, in few calls and without copying them together. What a
    call has left out is written by itself."""
    for first in range(0, len(pieces), PIECES):
        some = pieces[first : first + PIECES]
        written = os.writev(file.fileno(), some)
        for piece in some if written < sum(map(len, some)) else ():
            done = min(written, len(piece))
            written -= done
            write_all(file, memoryview(piece)[done:])


def seal_of_bytes(content: bytes | memoryview) -> str:
    """The seal of a file with this content."""
    return f"{len(content)}:{digest(content)}"


def seal_of(path: Path, start: int = 0) -> str:
    """The seal of a file as it is on disk: its length, and the checksum of the bytes from `start` on."""
    with reading(path), open(path, "rb", buffering=0) as file:
        length = os.fstat(file.fileno()).st_size
        if length <= SMALL:  # cheaper than mapping the file
            content = file.read()
            return f"{len(content)}:{digest(memoryview(content)[start:])}"
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data, memoryview(data)[start:] as rest:
            return f"{length}:{digest(rest)}"


def verify(path: Path, seal: str, start: int = 0) -> Stamp:
    """Verifies a write-once file and returns its stamp. Only the first call reads the file."""
    now = stamp(path)
    _verify(path, seal, start, now)
    return now


def stamp(path: Path | str) -> Stamp:
    """Distinguishes a file from earlier files at the same path: data cached by stamp is read again after a change.
    Reading a mapped file that was truncated would crash the process."""
    try:
        now = os.stat(path)
    except OSError:
        with reading(Path(path)):
            raise
    return now.st_size, now.st_mtime_ns, now.st_ino


@lru_cache(maxsize=1 << 17)
def _verify(path: Path, seal: str, start: int, now: Stamp) -> None:
    _check_length(path, seal, now[0])
    if seal_of(path, start) != seal:
        raise damaged(path, "is damaged (checksum mismatch)")


def read_verified(path: Path, seal: str) -> bytes:
    """The content of a small write-once file, verified as it is read, so that the file is opened once."""
    with reading(path), open(path, "rb", buffering=0) as file:
        content = file.read()
    _check_length(path, seal, len(content))
    if seal_of_bytes(content) != seal:
        raise damaged(path, "is damaged (checksum mismatch)")
    return content


def length_of(seal: str) -> int:
    return int(seal.partition(":")[0])


def _check_length(path: Path, seal: str, size: int) -> None:
    check_size(path, length_of(seal), size)


def check_size(path: Path, length: int, size: int) -> None:
    if size != length:
        raise damaged(path, f"has {size:,} bytes instead of {length:,}")


def write_json(path: Path, value: Any) -> str:
    """Writes a file atomically, even if several threads write it, and returns its checksum."""
    text = sealed_json(value)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.tmp")
    with writing(path, temporary):
        with open(temporary, "wb", buffering=0) as file:
            write_all(file, text)
        os.replace(temporary, path)
    return _sum(text)


def overwrite_json(path: Path, value: Any) -> None:
    """Writes a small file in place, which takes a twentieth of the time of a new file. It is damaged if the machine
    stops during the write, so use this only for files that can be rebuilt.
    """
    text = sealed_json(value)
    try:
        with open(path, "r+b", buffering=0) as file:
            write_all(file, text)
            if os.fstat(file.fileno()).st_size > len(text):
                file.truncate()
    except OSError:  # it does not exist yet, or it can be replaced but not written
        write_json(path, value)


def sealed_json(value: Any) -> bytes:
    body = json.dumps(value)
    return f"{OPENING}{digest(body.encode())}{CONTENT}{body}{CLOSING}".encode()


def read_json(path: Path, default: Any = None, rebuilt: str = "") -> Any:
    """The content of a JSON file, or the default if there is none. If the file is damaged and `rebuilt` says how it is
    rebuilt automatically, logs a warning and returns the default.
    """
    try:
        return read_sealed(path)[0]
    except HomeError as error:
        if isinstance(error.__cause__, FileNotFoundError) and not path.is_symlink():
            return default
        if not rebuilt:
            raise
        logger.warning("%s; it will be rebuilt by %s", str(error).partition(":")[0], rebuilt)
        return default


def read_sealed(path: Path) -> tuple[Any, str]:
    """The content of a JSON file, and its checksum."""
    with reading(path):
        text = path.read_bytes()
    head = len(OPENING) + DIGITS + len(CONTENT)
    body, sum = text[head : -len(CLOSING)], _sum(text)
    whole = text[:head] + text[-len(CLOSING) :] == f"{OPENING}{sum}{CONTENT}{CLOSING}".encode(errors="replace")
    if not whole or digest(body) != sum:
        raise damaged(path, "is empty" if not text else "is damaged (checksum mismatch)")
    with reading(path):
        return json.loads(body), sum


def _sum(text: bytes) -> str:
    return text[len(OPENING) : len(OPENING) + DIGITS].decode(errors="replace")

"""`append 'FILE'` and `jsonl 'FILE'`: one JSON line per result, or the output of a stylesheet; exactly once."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from fishweir.delivery.options import BadArgument
from fishweir.delivery.payload import Payload
from fishweir.pipeline.result import Result, json_texts


class FileTarget:
    """The common part of outputs to files."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)

    @staticmethod
    def check(arguments: Sequence[str]) -> None:
        path = arguments[0]
        if "://" in path:
            raise BadArgument(path, f"'{path}' is a URL, not the path of a file")
        if not path.strip() or path.endswith(("/", os.sep)) or "\0" in path:
            raise BadArgument(path, f"'{path}' is not a file path")

    @staticmethod
    def resolved(arguments: Sequence[str], base: Path) -> tuple[str, ...]:
        """The arguments with absolute paths, since the job may run in another folder."""
        whole = os.path.abspath(os.path.join(base, arguments[0]))
        if os.path.isdir(whole) and not whole.endswith(".parquet"):
            raise BadArgument(arguments[0], f"'{arguments[0]}' is a folder")
        check_writable(whole, arguments[0])
        return (whole, *arguments[1:])

    @staticmethod
    def place(arguments: Sequence[str]) -> tuple[str, str]:
        return f"file:{arguments[0]}", ""


def check_writable(whole: str, written: str) -> None:
    """Raises BadArgument if no file can be created at the path. Missing folders are created."""
    known, folder = _folders.get(), os.path.dirname(whole)
    if known is None or folder not in known:
        _check_folder(folder, written)
        if known is not None:
            known.add(folder)


@contextmanager
def each_folder_once() -> Iterator[None]:
    """A context in which each writable folder is checked only once."""
    token = _folders.set(set())
    try:
        yield
    finally:
        _folders.reset(token)


_folders: ContextVar[set[str] | None] = ContextVar("folders", default=None)


def _check_folder(above: str, written: str) -> None:
    while not os.path.exists(above) and above != os.path.dirname(above):
        above = os.path.dirname(above)
    if not os.path.isdir(above):
        raise BadArgument(written, f"'{written}' cannot be written: {above} is not a folder")
    if not os.access(above, os.W_OK | os.X_OK):
        raise BadArgument(written, f"'{written}' cannot be written: no permission to write to {above}")


class Append(FileTarget):
    together = True
    """One sender sends many of them together (sending_files.py), since none takes long."""

    def position(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    def rewind(self, position: int) -> None:
        if self.position() > position:
            os.truncate(self.path, position)

    def deliver(self, results: Sequence[Result]) -> None:
        file = self.write("".join(lines(results)).encode())
        try:
            os.fsync(file)
        finally:
            os.close(file)

    def write(self, text: bytes) -> int:
        """Writes without waiting for the disk, and returns the open file, which the caller can sync."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        try:
            file = os.open(self.path, flags, 0o666)
        except FileNotFoundError:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            file = os.open(self.path, flags, 0o666)
        try:
            left = memoryview(text)
            while left:
                left = left[os.write(file, left) :]
        except BaseException:
            os.close(file)
            raise
        return file


def lines(results: Sequence[Result]) -> list[str]:
    if isinstance(results, Payload) and results.media is not None:
        return [f"{str(result.output).rstrip()}\n" for result in results]
    return [f"{text}\n" for text in (results.texts if isinstance(results, Payload) else json_texts(results))]

"""`append 'FILE'` and `jsonl 'FILE'`: one JSON line per result, or what a stylesheet made of it; exactly once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from fishweir.delivery.options import BadArgument
from fishweir.delivery.parcels import Parcel
from fishweir.pipeline.result import Result, json_lines


class FileTarget:
    """What outputs to files have in common."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)

    @staticmethod
    def check(arguments: Sequence[str]) -> None:
        path = arguments[0]
        if "://" in path:
            raise BadArgument(path, f"'{path}' is a URL, not the path of a file")
        if not path.strip() or path.endswith(("/", os.sep)) or "\0" in path:
            raise BadArgument(path, f"'{path}' is no path of a file")

    @staticmethod
    def resolved(arguments: Sequence[str], base: Path) -> tuple[str, ...]:
        """Files are named whole, since the job may run in another folder."""
        whole = os.path.abspath(base / arguments[0])
        if os.path.isdir(whole) and not whole.endswith(".parquet"):
            raise BadArgument(arguments[0], f"'{arguments[0]}' is a folder")
        check_writable(whole, arguments[0])
        return (whole, *arguments[1:])

    @staticmethod
    def place(arguments: Sequence[str]) -> tuple[str, str]:
        return f"file:{arguments[0]}", ""


def check_writable(whole: str, written: str) -> None:
    """BadArgument where no file can be made there: folders are made where they are missing."""
    above = Path(whole).parent
    while not above.exists() and above != above.parent:
        above = above.parent
    if not above.is_dir():
        raise BadArgument(written, f"'{written}' cannot be written: {above} is no folder")
    if not os.access(above, os.W_OK | os.X_OK):
        raise BadArgument(written, f"'{written}' cannot be written: there is no right to write to {above}")


class Append(FileTarget):
    def position(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    def rewind(self, position: int) -> None:
        if self.position() > position:
            os.truncate(self.path, position)

    def deliver(self, results: Sequence[Result]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.writelines(lines(results))
            file.flush()
            os.fsync(file.fileno())


def lines(results: Sequence[Result]) -> Iterable[str]:
    if isinstance(results, Parcel) and results.media is not None:
        return (f"{str(result.output).rstrip()}\n" for result in results)
    return json_lines(results)

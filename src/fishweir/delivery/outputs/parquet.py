"""`parquet 'FOLDER'`: a folder of Parquet files with the columns of `results().to_arrow()`, one file per delivery.

A file is named by the key of its delivery, so a retry replaces its own file: exactly once.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq

from fishweir.delivery.options import BadArgument
from fishweir.delivery.outputs.append import check_writable
from fishweir.delivery.payload import NotRewindable, Payload
from fishweir.pipeline.result_columns import to_table


class Parquet(NotRewindable):
    def __init__(self, path: str) -> None:
        self.path = Path(path)

    @staticmethod
    def check(arguments: Sequence[str]) -> None:
        if "://" in arguments[0] or not arguments[0].strip() or "\0" in arguments[0]:
            raise BadArgument(arguments[0], f"'{arguments[0]}' is not a folder path")

    @staticmethod
    def resolved(arguments: Sequence[str], base: Path) -> tuple[str, ...]:
        whole = os.path.abspath(base / arguments[0])
        if os.path.isfile(whole):
            raise BadArgument(arguments[0], f"'{arguments[0]}' is a file: parquet writes a folder of files")
        check_writable(whole, arguments[0])
        return (whole, *arguments[1:])

    @staticmethod
    def place(arguments: Sequence[str]) -> tuple[str, str]:
        return f"file:{arguments[0]}", ""

    def deliver(self, results: Payload) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        temporary = self.path / f".{results.key}.tmp"
        pq.write_table(to_table(results), temporary)
        temporary.replace(self.path / f"{results.key}.parquet")

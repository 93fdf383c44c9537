"""The home folder: where everything durable of one engine lies.

catalog.db        what is registered          streams/N/   definition and log of stream N
plan/             segments of the shared plan results/     results and commits by micro-batch
checkpoint/       Spark's                     delivery/    what has been delivered
state/            runs that joins retain      job.lock     held by the running job
statistics.json   counted values              bell         rung by who publishes
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fishweir.algebra.codec import from_json, to_json
from fishweir.algebra.nodes import StreamDefinition
from fishweir.errors import HomeError

if TYPE_CHECKING:
    from fishweir.intake.log import StreamLog


class Home:
    def __init__(self, path: Path | str) -> None:
        self.path = Path(path).resolve()
        self.plan, self.results = self.path / "plan", self.path / "results"
        self.streams, self.checkpoint = self.path / "streams", self.path / "checkpoint"
        self.state = self.path / "state"
        self.delivery, self.statistics = self.path / "delivery", self.path / "statistics.json"

    def create(self) -> None:
        try:
            for folder in (self.plan, self.results, self.streams, self.delivery):
                folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise HomeError(f"cannot use {self.path} as a home: {error}") from error

    def add_stream(self, id: int, stream: StreamDefinition) -> None:
        folder = self.streams / str(id)
        if not (folder / "stream.json").exists():
            (folder / "log").mkdir(parents=True, exist_ok=True)
            write_json(folder / "stream.json", to_json(stream))

    def stream_ids(self) -> list[int]:
        return sorted(int(e.name) for e in os.scandir(self.streams) if (self.streams / e.name / "stream.json").exists())

    @contextmanager
    def job_lock(self) -> Iterator[None]:
        """Only one process runs the job of a home; others may register and publish meanwhile."""
        with (self.path / "job.lock").open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise HomeError(f"another process is running the job of {self.path}") from error
            yield


def open_log(streams: Path, id: int) -> StreamLog:
    """The log of a stream, opened once per process; a home made anew in the same place has other ones."""
    folder = streams / str(id)
    return _log(folder, (folder / "stream.json").stat().st_mtime_ns)


@lru_cache(maxsize=4096)
def _log(folder: Path, _written: int) -> StreamLog:
    from fishweir.intake.log import StreamLog  # late: who registers reads no log

    return StreamLog(folder / "log", from_json(json.loads((folder / "stream.json").read_text())))


def write_json(path: Path, value: Any) -> None:
    """Written whole or not at all, also where several threads write it."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.tmp")
    temporary.write_text(json.dumps(value))
    temporary.replace(path)


def read_json(path: Path, default: Any) -> Any:
    return json.loads(path.read_text()) if path.exists() else default

"""The home folder, which contains all durable data of one engine.

home.json         format and id of the home   catalog.json progress of the catalog
catalog.db        streams, queries and so on  streams/N/   definition and log of stream N
plan/             segments of the shared plan results/     results and commits by micro-batch
checkpoint/       Spark's checkpoint          delivery/    progress of deliveries
state/            runs that joins retain      job.lock     held by the running job
statistics.json   counted values              bell         wakes the job
arrivals          streams with new entries
"""

from __future__ import annotations

import fcntl
import os
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from fishweir.algebra.codec import from_json, to_json
from fishweir.algebra.nodes import StreamDefinition
from fishweir.errors import HomeError
from fishweir.intake.arrivals import NAME as ARRIVALS
from fishweir.intake.arrivals import announce_stream
from fishweir.records import dataclass
from fishweir.sealed import damaged, read_json, reading, write_json, writing

if TYPE_CHECKING:
    from fishweir.intake.log import StreamLog
    from fishweir.pipeline.log_heads import LogHeads

__all__ = ["FORMAT", "Home", "open_log", "read_json", "write_json"]

FORMAT = 5
"""The format number, increased when older versions cannot read the files of this one, or this one theirs."""
READABLE = (4, FORMAT)
"""The formats that this version reads. Format 4 had no packs (intake/packs.py)."""
OLDER = (
    "either it was deleted (`fishweir repair` rebuilds it), or the home was written before homes had a format: "
    "open it with the version that wrote it, or run its script on a new home"
)
OTHER = "open it with the version that wrote it, or run its script on a new home"


@dataclass(frozen=True)
class CatalogNote:
    """A lower bound on the progress of a home's catalog: its version and the runs of the job; and whether the catalog
    is in the home.
    """

    version: int = 0
    generation: int = 0
    own: bool = True


class Home:
    def __init__(self, path: Path | str) -> None:
        self.path = Path(path).resolve()
        self.id = ""
        self.plan, self.results = self.path / "plan", self.path / "results"
        self.streams, self.checkpoint = self.path / "streams", self.path / "checkpoint"
        self.state = self.path / "state"
        self.delivery, self.statistics = self.path / "delivery", self.path / "statistics.json"

    def create(self) -> None:
        """Creates missing folders; refuses a home of another format."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self.id = self._identify()
            for folder in (self.plan, self.results, self.streams, self.delivery):
                folder.mkdir(parents=True, exist_ok=True)
            (self.path / ARRIVALS).touch()
        except OSError as error:
            raise HomeError(f"cannot use {self.path} as a home: {error}") from error

    def _identify(self) -> str:
        """The id of the home, which its catalog contains too. Several processes may create a home at once."""
        about = self.path / "home.json"
        if not about.exists():
            if (self.path / "catalog.db").exists() or self.has_streams:
                raise damaged(about, "is missing", OLDER)
            new = self.path / f".home.{os.getpid()}.{threading.get_ident()}.tmp"
            write_json(new, {"format": FORMAT, "id": secrets.token_hex(8)})
            with suppress(FileExistsError):
                os.link(new, about)
            new.unlink()
        content = read_json(about)
        if content["format"] not in READABLE:
            raise HomeError(f"{about} has the format {content['format']}, this version reads {FORMAT}: {OTHER}")
        if content["format"] != FORMAT:
            write_json(about, {**content, "format": FORMAT})
        return str(content["id"])

    @property
    def noted(self) -> Path:
        return self.path / "catalog.json"

    def note_catalog(self, note: CatalogNote) -> None:
        """Records the progress of the catalog, so that an older catalog is noticed."""
        write_json(self.noted, asdict(note))

    def catalog_noted(self) -> CatalogNote:
        return CatalogNote(**read_json(self.noted, {}, rebuilt="the next run"))

    @property
    def has_streams(self) -> bool:
        return self.streams.exists() and any(self.streams.iterdir())

    def add_stream(self, id: int, stream: StreamDefinition) -> None:
        if not self.has_stream(id):
            folder = self.streams / str(id)
            with writing(folder):
                (folder / "log").mkdir(parents=True, exist_ok=True)
            write_json(folder / "stream.json", to_json(stream))
            announce_stream(self.path / ARRIVALS, str(id))

    @cached_property
    def logs(self) -> LogHeads:
        from fishweir.pipeline.log_heads import LogHeads  # late: it opens logs, and registering opens none

        return LogHeads(self)

    def has_stream(self, id: int) -> bool:
        return os.path.exists(f"{self.streams}/{id}/stream.json")  # called very often: strings are faster than paths

    def stream_ids(self) -> list[int]:
        with reading(self.streams):
            names = os.listdir(self.streams)
        return sorted(int(name) for name in names if _is_declared(self.streams, name))

    @contextmanager
    def job_lock(self) -> Iterator[None]:
        """Ensures that only one process runs the job of a home. Others may register and publish meanwhile."""
        place = self.path / "job.lock"
        with writing(place):
            opened = place.open("a")
        with opened as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise HomeError(f"another process is running the job of {self.path}") from error
            yield


def _is_declared(streams: Path, name: str) -> bool:
    """Whether a stream exists. While it is being created, its log is empty."""
    if os.path.exists(f"{streams}/{name}/stream.json"):  # called very often: strings are faster than paths
        return True
    log = streams / name / "log"
    if any(path.suffix in (".arrow", ".pack") for path in log.glob("[0-9]*")):
        raise damaged(streams / name / "stream.json", "is missing")
    return False


def open_log(streams: Path, id: int) -> StreamLog:
    """The log of a stream, opened once per process. A home that is recreated in the same place gets new logs."""
    folder = f"{streams}/{id}"
    try:
        written = os.stat(f"{folder}/stream.json")
    except OSError:
        all_see = f"the home must be on a file system that all workers see as {streams.parent}"
        with reading(Path(folder) / "stream.json", all_see):
            raise
    return _log(folder, written.st_ctime_ns, written.st_ino)  # a copy may have the other times of the original


def about_feed(home: Home, id: int) -> dict[str, str]:
    """The metadata of a feed as of its last fetch."""
    return (open_log(home.streams, id).newest("fetched") or {}).get("about", {})


@lru_cache(maxsize=4096)
def _log(folder: str, *_written: int) -> StreamLog:
    from fishweir.intake.log import StreamLog  # late: registering reads no log

    return StreamLog(Path(folder) / "log", from_json(read_json(Path(folder) / "stream.json")))

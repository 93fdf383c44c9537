"""Opens the source of a stream from its definition. Programs can register their own formats."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from fishweir.algebra.nodes import StreamDefinition
from fishweir.algebra.simple_paths import parse_path
from fishweir.errors import SourceError
from fishweir.guard import Guard, GuardError
from fishweir.intake.sources.addresses import file_of, is_glob, is_url, without_credentials
from fishweir.records import dataclass

if TYPE_CHECKING:
    from fishweir.intake.log import StreamLog
    from fishweir.intake.sources.refresh import Refresh

UNGUARDED = Guard()
FILES = ("xml", "csv", "json", "parquet")
"""The formats of files that are read here (sources/files.py)."""


class Source(Protocol):
    """Appends arrivals to a stream's log."""

    trouble: str | None
    """The current problem of the source as a whole, with stream and path."""

    working: bool
    """Whether the source has work in progress, so that the job is not idle."""

    def poll(self, now: float) -> Iterator[int]:
        """Appends new entries, yielding their number after each segment.

        The caller may stop after any of them; the next poll continues there. It never raises for invalid input, which
        becomes problem entries, or `trouble` if nothing can be read at all.
        """


@runtime_checkable
class Fetching(Protocol):
    """A source that fetches outside of the caller's thread; `poll` starts a fetch or takes its result."""

    def begin(self, now: float) -> None:
        """Starts a fetch, if it is time and none is in progress."""

    def wait(self) -> None:
        """Waits until no fetch is in progress. The source limits the time."""

    def close(self) -> None:
        """Cancels a fetch in progress."""


@dataclass(frozen=True, slots=True)
class SourceFormat:
    """A format that a program has registered: opens its streams, and checks them at their declaration.

    `check` raises SourceError if the stream can never be read; the program interprets the path.
    """

    open: Callable[[StreamDefinition, StreamLog, Path], Source]
    check: Callable[[StreamDefinition, Path], None] | None = None


_REGISTERED: dict[str, SourceFormat] = {}


def add_format(name: str, format: SourceFormat) -> None:
    """Registers a format for `create stream ... from '...' format NAME`. Raises SourceError if it is built in."""
    if name in (*FILES, "feed", "kafka"):
        raise SourceError(f"the format '{name}' is built in and cannot be replaced")
    _REGISTERED[name] = format


def remove_format(name: str) -> None:
    _REGISTERED.pop(name, None)


def open_source(
    stream: StreamDefinition, log: StreamLog, base: Path, guard: Guard = UNGUARDED, refresh: Refresh | None = None
) -> Source | None:
    """The source of a stream, continuing at the log's cursors; None for a pushed stream. Relative paths are relative to
    `base`. Raises SourceError for an invalid definition. `refresh` schedules the sources that have no interval.
    """
    if stream.path is None:
        return None
    base = Path(os.path.abspath(base))
    if stream.format in _REGISTERED:
        return _REGISTERED[stream.format].open(stream, log, base)
    _check_definition(stream)
    if stream.format == "feed":
        from fishweir.intake.sources.fetched import FetchedSource  # imported late: Spark's workers need no HTTP client
        from fishweir.intake.sources.parsers import parse

        return FetchedSource(stream, log, base, parse, guard, refresh)
    if is_url(stream.path):
        return _open_xml(stream, log, base, guard, refresh)
    if stream.rows is not None:
        from fishweir.intake.sources.changing import ChangingSource

        return ChangingSource(stream, log, base)
    from fishweir.intake.sources.files import FileSource  # imported late: declaring a stream does not read files

    return FileSource(stream, log, base)


def _open_xml(stream: StreamDefinition, log: StreamLog, base: Path, guard: Guard, refresh: Refresh | None) -> Source:
    """A source for XML on the web."""
    if stream.rows is not None:
        from fishweir.intake.sources.web_rows import WebRows

        return WebRows(stream, log, base, guard)
    from fishweir.intake.sources.fetched import FetchedSource
    from fishweir.intake.sources.web_xml import xml_reader

    return FetchedSource(stream, log, base, xml_reader(stream.split), guard, refresh)


def check_source(stream: StreamDefinition, base: Path, guard: Guard = UNGUARDED) -> None:
    """Raises SourceError, naming stream and path, if a stream can never be read as declared."""
    if stream.path is None:
        return
    try:
        guard.check(stream.path, base)
    except GuardError as error:
        raise SourceError(f"stream {stream.name} from '{without_credentials(stream.path)}': {error}") from None
    if stream.format in _REGISTERED:
        check = _REGISTERED[stream.format].check
        if check is not None:
            check(stream, Path(os.path.abspath(base)))
        return
    _check_definition(stream)
    if is_url(stream.path):
        return
    path = Path(os.path.abspath(base)) / file_of(stream.path)
    if (stream.format == "feed" or not is_glob(stream.path)) and not path.exists():
        raise SourceError(f"stream {stream.name}: {path} does not exist")
    if stream.rows is not None and path.is_dir():
        raise SourceError(f"stream {stream.name}: rows ... key ... needs a single file, but {path} is a folder")


def _check_definition(stream: StreamDefinition) -> None:
    start = f"stream {stream.name} from '{without_credentials(stream.path or '')}':"
    if stream.format == "feed":
        return
    if stream.format is not None and stream.format not in (*FILES, "kafka"):
        formats = ", ".join((*FILES, "feed", *_REGISTERED))
        raise SourceError(
            f"{start} unknown format {stream.format}: expected {formats}; other formats must be registered first"
        )
    if is_url(stream.path or "") and stream.is_tuples:
        raise SourceError(f"{start} only XML and feeds are read from the web")
    if ("://" in (stream.path or "") and not is_url(stream.path or "")) or stream.format == "kafka":
        raise SourceError(f"{start} only files, folders, globs, and XML and feeds on the web can be read")
    if stream.format == "json" and stream.rows is None and stream.split is None:
        return
    if stream.format is not None and stream.is_tuples != (stream.format != "xml"):
        what = "columns, which XML does not have" if stream.is_tuples else "no columns"
        raise SourceError(f"{start} format {stream.format}, but the stream declares {what}")
    _check_paths(stream, start)


def _check_paths(stream: StreamDefinition, start: str) -> None:
    for what, text in (("split on", stream.split), ("rows", stream.rows)):
        if text is not None and stream.is_tuples:
            raise SourceError(f"{start} {what} {text} is for XML, but the stream declares columns")
        if text is not None and parse_path(text).steps[-1].axis == "attribute":
            raise SourceError(f"{start} {what} {text} must lead to elements")
    if (stream.rows is None) != (stream.key is None):
        raise SourceError(f"{start} rows and key must be used together")
    if stream.rows is not None and is_glob(stream.path or ""):
        raise SourceError(f"{start} rows ... key ... needs a single file, not a glob")
    if stream.key is not None:
        parse_path(stream.key)

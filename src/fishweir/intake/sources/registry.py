"""From a stream's definition to the source that fills its log."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from fishweir.algebra.documents import parse_path
from fishweir.algebra.nodes import StreamDefinition
from fishweir.errors import SourceError
from fishweir.intake.log import StreamLog
from fishweir.intake.sources.addresses import file_of, is_url
from fishweir.intake.sources.changing import ChangingSource
from fishweir.intake.sources.files import READERS, FileSource, is_glob


class Source(Protocol):
    """What brings arrivals into a stream's log."""

    trouble: str | None
    """What is wrong with the source as a whole at the moment, naming stream and path."""

    working: bool
    """Whether something is under way without which it cannot be said that nothing is left to do."""

    def poll(self, now: float) -> Iterator[int]:
        """Append what is new, yielding the number of entries after each segment.

        The caller may stop after any of them; the next poll goes on there. It never raises for bad
        input: that becomes problem entries, and `trouble` if nothing can be read at all.
        """


def open_source(stream: StreamDefinition, log: StreamLog, base: Path) -> Source | None:
    """The source of a stream, going on where the log's cursors say; None where the stream is pushed.

    Relative paths are relative to `base`. SourceError where the definition itself makes no sense.
    """
    if stream.path is None:
        return None
    _check_definition(stream)
    base = Path(os.path.abspath(base))
    if stream.format == "feed":
        from fishweir.intake.sources.feed import FeedSource  # late: Spark's workers need no HTTP client

        return FeedSource(stream, log, base)
    return FileSource(stream, log, base) if stream.rows is None else ChangingSource(stream, log, base)


def check_source(stream: StreamDefinition, base: Path) -> None:
    """SourceError, naming stream and path, where a stream could never be read as it is declared."""
    if stream.path is None:
        return
    _check_definition(stream)
    if stream.format == "feed" and is_url(stream.path):
        return
    path = Path(os.path.abspath(base)) / file_of(stream.path)
    if (stream.format == "feed" or not is_glob(stream.path)) and not path.exists():
        raise SourceError(f"stream {stream.name}: {path} does not exist")
    if stream.rows is not None and path.is_dir():
        raise SourceError(f"stream {stream.name}: rows ... key ... needs one file, and {path} is a folder")


def _check_definition(stream: StreamDefinition) -> None:
    start = f"stream {stream.name} from '{stream.path}':"
    if stream.format == "feed":
        return
    if "://" in (stream.path or "") or stream.format == "kafka":
        raise SourceError(f"{start} only files, folders, globs and feeds can be read; for a feed add: format feed")
    if stream.format is not None and stream.format not in READERS:
        raise SourceError(f"{start} unknown format {stream.format}, expected {', '.join(READERS)}")
    if stream.format is not None and stream.is_tuples != (stream.format != "xml"):
        what = "columns, which XML has not" if stream.is_tuples else "no columns"
        raise SourceError(f"{start} format {stream.format}, but the stream declares {what}")
    _check_paths(stream, start)


def _check_paths(stream: StreamDefinition, start: str) -> None:
    for what, text in (("split on", stream.split), ("rows", stream.rows)):
        if text is not None and stream.is_tuples:
            raise SourceError(f"{start} {what} {text} is for XML, but the stream declares columns")
        if text is not None and parse_path(text).steps[-1].axis == "attribute":
            raise SourceError(f"{start} {what} {text} must lead to elements")
    if (stream.rows is None) != (stream.key is None):
        raise SourceError(f"{start} rows and key belong together")
    if stream.rows is not None and is_glob(stream.path or ""):
        raise SourceError(f"{start} rows ... key ... needs one file, not a glob")
    if stream.key is not None:
        parse_path(stream.key)

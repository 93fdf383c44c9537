"""Bodies of log entries in the form that the walk accepts, and the event times in documents.

In: entries of a log. Out: for each body, its bytes if they are ordinary, else the tree parsed by libxml2, else the
reason for setting it aside. The check runs when a body is first read, not when it is appended. Publishers therefore
need no kernels, and entries that are left out under overload are not checked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from threading import get_ident
from typing import Any

from fishweir.algebra.documents import BadDocument, Element, first_value, parse_document
from fishweir.algebra.nodes import Step, StreamDefinition
from fishweir.algebra.simple_paths import SimplePath, parse_path
from fishweir.algebra.values import to_timestamp
from fishweir.evaluate.witnesses.automaton.checking import are_ordinary
from fishweir.evaluate.witnesses.path_tables import Path
from fishweir.evaluate.witnesses.shared_paths import SharedPaths

Content = Element | bytes | BadDocument
Entries = Sequence[Mapping[str, Any]]


def read_bodies(entries: Entries) -> list[Content]:
    ordinary = are_ordinary([entry["body"] or b"" for entry in entries]).tolist()
    return [_content(entry, plain) for entry, plain in zip(entries, ordinary, strict=True)]


def _content(entry: Mapping[str, Any], ordinary: bool) -> Content:
    if entry["problem"] is not None:
        return BadDocument(entry["problem"])
    if ordinary or entry["change"] == "deleted":
        return bytes(entry["body"])
    try:
        return parse_document(entry["body"])
    except BadDocument as error:
        return error


class EventTimes:
    """The event times of a stream's documents: given explicitly, at a path of the document, or the arrival time."""

    def __init__(self, stream: StreamDefinition) -> None:
        self.stream = stream
        self._path = parse_path(stream.timestamp) if stream.timestamp else None
        self._walked = to_steps(self._path) if self._path else None

    def of(self, entries: Entries, contents: Sequence[Content]) -> list[float | BadDocument]:
        if self._path is None:
            return [e["arrival"] if e["timestamp"] is None else e["timestamp"] for e in entries]
        untimed = [i for i, e in enumerate(entries) if e["timestamp"] is None and e["change"] != "deleted"]
        texts = self._texts({i: contents[i] for i in untimed})
        return [self._seconds(texts.get(i)) if i in texts else e["timestamp"] for i, e in enumerate(entries)]

    def _texts(self, contents: Mapping[int, Content]) -> dict[int, str | None]:
        """The value of the first node at the path; None if there is none or the document cannot be read."""
        assert self._path is not None
        texts: dict[int, str | None] = dict.fromkeys(contents)
        plain = {i: content for i, content in contents.items() if isinstance(content, bytes)}
        if self._walked:
            texts |= _first_values(self._walked, plain)
        for i, content in contents.items():
            if not isinstance(content, BadDocument | bytes):
                texts[i] = first_value(content, self._path)
            elif isinstance(content, bytes) and not self._walked:
                texts[i] = first_value(parse_document(content), self._path)
        return texts

    def _seconds(self, text: str | None) -> float | BadDocument:
        if text is None:
            return BadDocument(f"no timestamp at {self.stream.timestamp}")
        seconds = to_timestamp(text)
        if seconds is None:
            form = "neither seconds, ISO 8601 nor RFC 822"
            return BadDocument(f"the timestamp at {self.stream.timestamp} is {form}: {text[:80]!r}")
        return seconds


def _first_values(path: Path, bodies: Mapping[int, bytes]) -> dict[int, str]:
    walk = _shared(path, get_ident()).start()
    for i, body in bodies.items():
        walk.add(i, body)
    table = walk.tables().get(path)
    if table is None:
        return {}
    return dict(zip(table.first.documents.tolist(), table.first.texts.to_pylist(), strict=True))


@lru_cache(maxsize=256)
def _shared(path: Path, thread: int) -> SharedPaths:
    """The path as an automaton, one per thread: an automaton learns while it walks."""
    shared = SharedPaths()
    shared.hold({"": {path: True}})
    return shared


def to_steps(path: SimplePath) -> Path | None:
    """The path in the form that the automaton accepts; None for a path without an element, which is not worth it."""
    first, *others = path.steps
    if first.axis == "attribute":
        return None
    return (first if path.absolute else Step(first.name, "descendant"), *others)

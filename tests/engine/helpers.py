"""Results as short tuples, and XML documents and files for tests."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from fishweir.engine.weir import Weir
from fishweir.pipeline.result import Result

Row = tuple[str, float, dict[str, tuple[Any, str]], str]


def rows(weir: Weir, query: str | None = None) -> list[Row]:
    """(document, timestamp, {variable: (node, value)}, output) of each result, in order."""
    return [(only(r.documents), r.timestamp, bound(r), r.output) for r in weir.results(query)]


def outputs(weir: Weir, query: str | None = None) -> list[tuple[str, str]]:
    """(document, output) of each result, in order."""
    return [(only(r.documents), r.output) for r in weir.results(query)]


def all_outputs(weir: Weir) -> list[tuple[str, str, str]]:
    """(query, document, output) of every result, sorted."""
    return sorted((r.query, only(r.documents), r.output) for r in weir.results())


def bound(result: Result) -> dict[str, tuple[Any, str]]:
    """Node and value by variable; each is bound in the result's own document."""
    assert {b["document"] for b in result.bindings.values()} <= set(result.documents)
    return {name: (b["node"], b["value"]) for name, b in result.bindings.items()}


def only(items: Iterable[Any]) -> Any:
    (item,) = items
    return item


def aside(weir: Weir, stream: str | None = None) -> dict[str, str]:
    """Reasons by document. The counts in the status must agree with the list."""
    found = weir.set_aside(stream)
    counted = weir.status().set_aside if stream is None else weir.status().streams[stream].set_aside
    assert counted == len(found)
    return {entry.document: entry.reason for entry in found}


def wait_for(condition: Callable[[], Any], seconds: float = 600.0) -> None:
    """Waits until a condition holds; fails if it does not hold in time."""
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends, f"not within {seconds:g} s"
        time.sleep(0.1)


def write_files(folder: Path, files: Mapping[str, str | bytes]) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def quote(symbol: str, price: float | str) -> str:
    return f"<Quote><Symbol>{symbol}</Symbol><Price>{price}</Price></Quote>"


def quotes(*pairs: tuple[str, float | str]) -> str:
    return f"<Quotes>{''.join(quote(*pair) for pair in pairs)}</Quotes>"

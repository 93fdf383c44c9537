"""`explain` for a query's paths: the number of nodes and documents that reached each path."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fishweir.algebra.nodes import Source
from fishweir.algebra.normal import dotted
from fishweir.evaluate.witnesses.counters import StreamCounters
from fishweir.evaluate.witnesses.path_tables import Path

Walked = Mapping[Source, StreamCounters]


def explain_reached(source: Source, paths: Iterable[Path], walked: Walked) -> list[str]:
    """One line per path, once documents have been walked. Documents from before the query's registration count too."""
    counted = walked.get(source)
    if counted is None or not counted.documents:
        return []
    lines: list[str] = []
    for path in paths:
        nodes, documents = counted.of(path)
        shown = f"{nodes:,} nodes in {documents:,} of {counted.documents:,} documents"
        lines.append(f"  {'' if lines else 'reached':9} {dotted(path)}: {shown if nodes else 'no node'}")
    return lines

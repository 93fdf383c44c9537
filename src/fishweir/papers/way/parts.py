"""The parts of the experiment, in the order in which they run. A new part is a module with a `PART` and a line here."""

from __future__ import annotations

from fishweir.papers.way import documents, growth, join_documents, latency, registration, results, start, streams
from fishweir.papers.way.part import Part

PARTS: tuple[Part, ...] = (
    latency.PART,
    *documents.PARTS,
    *join_documents.PARTS,
    *growth.PARTS,
    streams.PART,
    results.PART,
    registration.PART,
    start.PART,
)

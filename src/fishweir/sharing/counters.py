"""What the walk of a stream's documents counted: counted on the workers, added up on the driver, shown to the user.

`explain` shows how many nodes of how many documents reached a query's paths, `status` how much was walked. They count
nodes; the statistics of values count the embeddings of a path's steps, and only where a condition reads the values.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class StreamCounters:
    """Of one stream. `elements` were in the documents, `skipped` of them in subtrees that no path enters."""

    documents: int = 0
    elements: int = 0
    skipped: int = 0
    paths: int = 0
    """Distinct paths that its documents were walked for last."""
    reached: dict[str, tuple[int, int]] = field(default_factory=dict)
    """By dotted path: nodes that reached its end, documents that had one."""

    def add(self, other: StreamCounters) -> None:
        self.documents += other.documents
        self.elements += other.elements
        self.skipped += other.skipped
        self.paths = other.paths
        known, none = self.reached, (0, 0)
        for path, (nodes, documents) in other.reached.items():
            before = known.get(path, none)
            known[path] = before[0] + nodes, before[1] + documents

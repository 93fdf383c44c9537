"""The name of the change stream of a changing file."""

from __future__ import annotations

from fishweir.algebra.nodes import StreamDefinition

SUFFIX = ".changes"


def changes_stream(rows: StreamDefinition) -> StreamDefinition:
    """The stream of the changes of another stream. A document has the timestamp of its row."""
    return StreamDefinition(f"{rows.name}{SUFFIX}", changes_of=rows.name, timestamp=rows.timestamp, late=rows.late)

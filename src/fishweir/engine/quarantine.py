"""Documents that could not be evaluated, stored with the reason."""

from __future__ import annotations

from fishweir.catalog.catalog import Catalog
from fishweir.pipeline.commits import ResultsTable
from fishweir.pipeline.home import Home, open_log
from fishweir.records import dataclass


@dataclass(frozen=True, slots=True)
class SetAside:
    """A document that could not be evaluated, stored with the reason."""

    stream: str
    document: str
    reason: str
    body: bytes | None


def set_aside(home: Home, catalog: Catalog, table: ResultsTable, stream: str | None) -> list[SetAside]:
    """The documents set aside in one stream, or in all."""
    names = catalog.stream_names()
    found = []
    for commit in table.commits():
        for row in table.aside(commit).to_pylist() if commit.aside else []:
            name, log = names[row["stream"]], open_log(home.streams, row["stream"])
            if stream is None or name == stream:
                entry = log.entry(row["document"])
                found.append(SetAside(name, entry.id, row["reason"], entry.body))
    return found

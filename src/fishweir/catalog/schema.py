"""The tables of the catalog (`schema.sql`), and special values in them."""

from __future__ import annotations

import re
from pathlib import Path

NOT_YET = 2**62
"""`added` of a query that has not started: higher than any version of the catalog."""
ABSENCE = "unless"
"""How the normal form of a shape begins whose documents wait for the end of their window."""
PATHS = "paths"
"""The normal form of the shapes whose queries have their path as a constant (algebra/path_queries.py)."""
COLLECTED = "collected"
"""The name of the fact with the last micro-batch whose results have been handed to the outbox."""
PENDING_START = "waited "
"""The prefix of facts, followed by the number of a query whose start was in the future when it was registered."""
GENERATION = "generation"
"""The name of the fact that counts the runs of the job. A catalog with fewer runs than the home is out of date."""


def definitions() -> dict[str, list[str]]:
    """For each table, the statement that creates it and those that create its indexes."""
    found: dict[str, list[str]] = {}
    text = re.sub(r"^--.*\n", "", Path(__file__).with_name("schema.sql").read_text(encoding="utf-8"), flags=re.M)
    for statement in filter(None, map(str.strip, text.split(";\n"))):
        table = re.search(r"create table (\w+)| on (\w+) ", statement)
        assert table is not None
        found.setdefault(table[1] or table[2], []).append(statement)
    return found


def columns_of(definition: str) -> list[str]:
    """The columns of a table, from the statement that creates it."""
    return re.findall(r"^    (?!primary key)(\w+) ", definition, re.M)

"""The tables of the catalog (`schema.sql`), and values with a meaning of their own in them."""

from __future__ import annotations

import re
from pathlib import Path

NOT_YET = 2**62
"""`added` of a query that has not started: no version of the catalog has it."""
PATHS = "paths"
"""The normal form of the shapes whose queries have their path as a constant (algebra/path_queries.py)."""
COLLECTED = "collected"
"""The fact that says up to which micro-batch results have been handed to the outbox."""
WAITED = "waited "
"""How facts begin that say of a query, by its number, that its start was to come when it was registered."""
GENERATION = "generation"
"""The fact that counts the runs of the job: a catalog with fewer than the home knows of is an older one."""


def definitions() -> dict[str, list[str]]:
    """By table, the statement that creates it and those that create its indexes."""
    found: dict[str, list[str]] = {}
    text = re.sub(r"^--.*\n", "", Path(__file__).with_name("schema.sql").read_text(encoding="utf-8"), flags=re.M)
    for statement in filter(None, map(str.strip, text.split(";\n"))):
        table = re.search(r"create table (\w+)| on (\w+) ", statement)
        assert table is not None
        found.setdefault(table[1] or table[2], []).append(statement)
    return found


def columns_of(definition: str) -> list[str]:
    """The columns of a table, by the statement that creates it."""
    return re.findall(r"^    (?!primary key)(\w+) ", definition, re.M)

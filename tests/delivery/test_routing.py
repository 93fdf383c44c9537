"""The subscriptions in force for a micro-batch: on every database, for any number of queries, looked up once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fishweir.catalog.catalog import Catalog
from fishweir.catalog.database import Database
from fishweir.catalog.other_databases import OtherDatabase
from fishweir.delivery import routing
from fishweir.delivery.routing import Routing

START = 1763440169.1234567
"""More digits than JSON has in SQLite."""
QUERY = {"unnamed": False, "shape": 1, "constants": "[]", "text": "", "every": 0.0, "paused": False, "published": False}
SUBSCRIPTION = {"timed": False, "by_query": True, "text": "", "paused": False, "dropped": None, "start": None}
SUBSCRIPTIONS: list[dict[str, Any]] = [
    *({"query": f"q{n}", "feed": f"it's {n}", "channel": n % 3, "added": n} for n in range(1, 40)),
    {"query": "q5", "feed": "again", "channel": 9, "added": 50, "dropped": 60},
    {"query": "q6", "feed": "later", "channel": 9, "added": 50, "start": START},
    {"query": "q7", "feed": "timed", "channel": 9, "added": 50, "timed": True},
]


@dataclass
class Commit:
    batch: int
    version: int
    at: float


@pytest.fixture(params=["sqlite", "other"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Database:
    found = Catalog(tmp_path / "catalog.db").database
    with found.begin() as connection:
        connection.insert_rows("queries", [{"number": n, "name": f"q{n}", "added": n} | QUERY for n in range(1, 51)])
        connection.insert_rows("subscriptions", [SUBSCRIPTION | one for one in SUBSCRIPTIONS])
    found.close()
    return found if request.param == "sqlite" else OtherDatabase(f"sqlite:///{tmp_path / 'catalog.db'}")


def in_force(numbers: set[int], commit: Commit) -> dict[int, dict[int, str]]:
    found: dict[int, dict[int, str]] = {}
    for one in (SUBSCRIPTION | one for one in SUBSCRIPTIONS):
        number, dropped, start = int(one["query"][1:]), one["dropped"], one["start"]
        is_current = one["added"] <= commit.version and (dropped is None or dropped > commit.version)
        if number in numbers and is_current and not one["timed"] and (start is None or start <= commit.at):
            found.setdefault(one["channel"], {})[number] = one["feed"]
    return found


@pytest.mark.parametrize(("chunk", "remembered"), [(7, 200_000), (10_000, 200_000), (10_000, 10)])
def test_subscriptions_in_force(
    database: Database, monkeypatch: pytest.MonkeyPatch, chunk: int, remembered: int
) -> None:
    monkeypatch.setattr(routing, "CHUNK", chunk)
    monkeypatch.setattr(routing, "ROUTE_CACHE_SIZE", remembered)
    routes = Routing(database, None, None)  # type: ignore[arg-type]
    before = np.nextafter(START, 0)
    asked = [({1, 5, 6}, 70, START), ({5, 6, 7, 48}, 55, before), (set(range(1, 51)), 30, START), (set(), 70, 0.0),
             (set(range(1, 51)), 70, START), ({48, 49}, 70, START), (set(range(3, 20)), 55, before)]  # fmt: skip
    for batch, (numbers, version, at) in enumerate(asked):
        commit: Any = Commit(batch, version, float(at))
        found = routes.on_change(commit, np.array(sorted(numbers), np.int64))
        expected = in_force(numbers, commit)
        assert {channel: some.tolist() for channel, some in found.items()} == {
            channel: sorted(feeds) for channel, feeds in expected.items()
        }
        if remembered > 10:
            of_channel = routes.of_channels(list(expected))
            assert {channel: of_channel[channel](commit) for channel in expected} == expected

"""Strategies of all kinds at once, and a strategy that cannot run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from fishweir.errors import QueryError
from tests.papers.strategies.support import Execute, Publish, explained, inline, play

REQUESTED = {"joins": "sequential", "selections": "ibs", "window-joins": "sj-join", "filters": "naive"}
SCRIPT = """create stream R (a double, b double); create stream S (c double);
create stream News; create stream Posts;
create query box as select * from R where a > 1 and b > 1;
create query less as select * from R [range 9] as l, S [range 9] as r where l.a < r.c;
create feed rock from News as $n where $n[title contains 'rock'];
create query same as News//title->x JOIN{x = y, 9} Posts//title->y;"""
ITEM = "<item><title>rock</title></item>"
HISTORY = [
    Execute(SCRIPT),
    Publish("R", [{"a": 2.0, "b": 2.0}], [1.0]),
    Publish("S", [{"c": 3.0}], [2.0]),
    Publish("News", [ITEM], [1.0]),
    Publish("Posts", [ITEM], [2.0]),
]
SHOWN = {
    "box": "strategy  ibs",
    "less": "decided   by the strategy sj-join",
    "rock": "filters   of News, by the naive plan",
    "same": "decided   by the strategy sequential",
}


def test_all_kinds_at_once(tmp_path: Path) -> None:
    expected = play(inline(tmp_path / "default", {}), HISTORY)
    assert sorted(result["query"] for result in expected) == sorted(SHOWN)
    assert play(inline(tmp_path / "requested", REQUESTED), HISTORY) == expected
    for query, line in SHOWN.items():
        assert line in explained(inline(tmp_path / "requested", {}), query)
        assert line not in explained(inline(tmp_path / "default", {}), query)


def test_without_duckdb_the_error_names_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(QueryError, match=r"joins=mmqjp needs DuckDB: pip install 'fishweir\[bench\]'"):
        play(inline(tmp_path, {"joins": "mmqjp"}), HISTORY)

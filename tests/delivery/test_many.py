"""One target for very many queries: more results than are cached, more queries than are looked up one by one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fishweir import testing
from fishweir.delivery import contents, routing


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents, "CACHED_RESULTS", 3)
    monkeypatch.setattr(routing, "MAX_NAMES_LISTED", 5)


def rows(count: int) -> list[dict[str, object]]:
    return [{"name": f"q{i}", "x": i} for i in range(count)]


@pytest.mark.parametrize("remembered", [0, 1_000])
def test_each_result_is_delivered_once_and_in_order(
    weir: testing.Weir, monkeypatch: pytest.MonkeyPatch, remembered: int
) -> None:
    monkeypatch.setattr(
        routing, "ROUTE_CACHE_SIZE", remembered
    )  # without the cache, as after a restart, subscriptions are looked up
    weir.execute("create stream M (x int)")
    weir.register_many("create query $name as select x from M where x >= $x do append 'all.jsonl'", rows(20))
    for some in ([3, 12], [0], [19, 25]):
        weir.publish("M", [{"x": x} for x in some])
        weir.run(until_idle=True)
    lines = [json.loads(line) for line in Path("all.jsonl").read_text().splitlines()]
    assert lines == [json.loads(result.to_json()) for result in weir.results()]
    assert len(lines) == 4 + 13 + 1 + 20 + 20


def test_lines_match_the_json_of_results(weir: testing.Weir) -> None:
    weir.execute("""
        create stream B;
        create query pairs as B//a->x1[.//k->x2] JOIN{x2=x4, 100} B//b->x3[.//k->x4] do append 'pairs.jsonl';
        create query "ü" as select k from B where k contains 'ö' do append 'pairs.jsonl';
    """)
    weir.publish("B", ["<a><k>ö</k></a>", "<b><k>ö</k></b>", "<b><k>ö</k></b>"], timestamps=[1.0, 2.0, 3.0])
    weir.run(until_idle=True)
    assert Path("pairs.jsonl").read_text() == "".join(f"{result.to_json()}\n" for result in weir.results())


def test_columns_are_written_like_single_results(weir: testing.Weir) -> None:
    """Texts constructed in columns, for two names of one query, equal those of the results one by one."""
    weir.execute("""
        create stream T (x int, name string, y double);
        create query t as select name, x, y from T where x > 0 do append 't.jsonl' do http 'http://127.0.0.1:9/';
        create query pairs as select a.x, b.name from T [range 100 seconds] a, T [range 100 seconds] b
            where a.x = b.x and a.name != b.name do append 'pairs.jsonl';
    """)
    rows = [
        {"x": 1, "name": 'ü "q" \\', "y": 0.5},
        {"x": 1, "name": "a\nb", "y": None},
        {"x": 0, "name": None, "y": 1e30},
    ]
    weir.publish("T", rows, timestamps=[1.0, 2.5, 1e12], ids=["plain", 'quo"ted ü', "c"])
    weir.step()
    for name in ("t", "pairs"):
        results = list(weir.results(name))
        assert len(results) == 2
        assert Path(f"{name}.jsonl").read_text() == "".join(f"{result.to_json()}\n" for result in results)
    (delivery,) = weir.letters()
    content = weir._delivery_service.sender.contents.of(channel_of(weir, "http"), delivery.after, delivery.upto)
    assert content.texts == [result.to_json() for result in weir.results("t")]
    assert content.results == list(weir.results("t"))


def channel_of(weir: testing.Weir, output: str) -> int:
    return int(weir.catalog.database.scalar("select id from channels where output = :output", output=output) or 0)

"""Queries, streams and other processes are added and removed while the job runs."""

from __future__ import annotations

import json
import random
import subprocess
import sys

import pytest

import fishweir
from fishweir import testing
from fishweir.errors import HomeError
from tests.engine.helpers import all_outputs, outputs, wait_for

ABOVE = 'create {} where <a>$v</> in "S", $v > {} construct $v'


def test_queries_are_added_and_dropped_at_random(spark_weir):
    weir = spark_weir
    """Each document is evaluated for exactly the queries that existed when it was published."""
    pick = random.Random(7)
    weir.execute("create stream S")
    weir.start()
    alive: dict[str, int] = {}
    expected = []
    for step in range(10):
        for name in pick.sample(sorted(alive), k=min(len(alive), pick.randint(0, 1))):
            weir.drop(name)
            del alive[name]
        for _ in range(pick.randint(0, 3)):
            name = f"n{pick.randint(0, 5)}"  # a name may come again with another constant
            if name not in alive:
                alive[name] = pick.randint(0, 6)
                weir.execute(ABOVE.format(name, alive[name]))
        value = pick.randint(0, 10)
        weir.publish("S", [f"<a>{value}</a>"], ids=[f"d{step}"])
        weir.wait_idle()
        expected += [(name, f"d{step}", str(value)) for name, low in alive.items() if value > low]
    weir.stop()
    assert len(expected) > 10
    assert all_outputs(weir) == sorted(expected)
    assert weir.status().queries == len(alive)


PUBLISH = """
import fishweir
with fishweir.open("home") as weir:
    print(weir.publish("S", ["<a>6</a>"]) + weir.publish("T", ["<b>7</b>"]))
"""


def test_another_process_registers_and_publishes(weir, tmp_path):
    def command(*arguments: str) -> str:
        return subprocess.run(
            [sys.executable, *arguments], cwd=tmp_path, check=True, capture_output=True, text=True
        ).stdout

    weir.execute("create stream S;" + ABOVE.format("here", 0))
    weir.start()
    weir.publish("S", ["<a>5</a>"])
    weir.wait_idle()
    script = f"create stream T; create there where <b>$v</> in 'T' construct $v; {ABOVE.format('both', 0)};"
    assert command("-m", "fishweir", "execute", script, "--home", "home").split() == ["there", "both"]
    assert command("-c", PUBLISH).strip() == "['S-2', 'T-1']"
    weir.wait_idle()
    second = testing.open(weir.home.path)
    with second, pytest.raises(HomeError, match=f"another process is running the job of {weir.home.path}"):
        second.run(until_idle=True)
    with pytest.raises(HomeError, match="already running"):
        weir.start()
    weir.publish("S", ["<a>8</a>"])
    weir.wait_idle()
    assert all_outputs(weir) == [
        ("both", "S-2", "6"),
        ("both", "S-3", "8"),
        ("here", "S-1", "5"),
        ("here", "S-2", "6"),
        ("here", "S-3", "8"),
        ("there", "T-1", "7"),
    ]
    weir.stop()
    with pytest.raises(fishweir.QueryError, match="the job is not running"):
        weir.wait_idle()


def test_start_and_stop_at_once(spark_weir):
    weir = spark_weir
    for _ in range(2):
        weir.start()
        weir.stop()
    assert weir.status().micro_batches == 0


def test_versions_drops_and_restart(weir):
    weir.execute("create stream S;" + ABOVE.format("a", 0))
    assert weir.status().version == 2
    weir.execute(";".join(ABOVE.format(name, 0) for name in ("b", "c")))
    assert weir.status().version == 4
    weir.publish("S", ["<a>1</a>"])
    weir.run(until_idle=True)
    weir.drop("b")
    weir.execute("delete c")
    assert (weir.status().version, weir.status().queries) == (6, 1)
    weir.publish("S", ["<a>2</a>"])
    weir.close()
    with testing.open(weir.home.path) as again:
        assert again.publish("S", ["<a>3</a>"]) == ["S-3"]
        again.run(until_idle=True)
        assert outputs(again, "a") == [("S-1", "1"), ("S-2", "2"), ("S-3", "3")]
        assert outputs(again, "b") == outputs(again, "c") == [("S-1", "1")]
        assert (again.status("b").alive, again.status("b").results) == (False, 1)
        again.execute(ABOVE.format("b", 3))
        again.publish("S", ["<a>4</a>"])
        again.run(until_idle=True)
        assert outputs(again, "b") == [("S-4", "4")], "the name is a new query now"
        assert [r.documents for r in again.results() if r.query == "b"] == [["S-1"], ["S-4"]]
        assert again.status().streams["S"].evaluated == 4


def test_expire(weir):
    weir.clock = clock = testing.Clock(1e9)
    late = ABOVE.format("late", 0) + " expire 1 hour"
    weir.execute(f"create stream S; {ABOVE.format('soon', 0)} expire 1 second; {late}; {ABOVE.format('ever', 0)};")
    clock.advance(2)
    weir.publish("S", ["<a>1</a>"])
    weir.run(until_idle=True)
    assert all_outputs(weir) == [("ever", "S-1", "1"), ("late", "S-1", "1")]
    assert weir.catalog.names() == ["late", "ever"]
    assert not weir.status("soon").alive


def test_many_queries_while_running(weir):
    weir.execute("create stream S;" + ABOVE.format("before", 0))
    weir.start()
    weir.publish("S", ["<a>20000</a>"])
    weir.wait_idle()
    many = [{"name": f"m{i}", "low": i} for i in range(20_000)]
    statement = 'create query $name as where <a>$v</> in "S", $v > $low construct $v'
    assert weir.register_many(statement, many) == 20_000
    assert weir.register_many(statement, many) == 20_000, "already registered"
    weir.publish("S", ["<a>3</a>", "<a>-1</a>", "<a>20000</a>"])
    weir.wait_idle()
    weir.drop("m1")
    weir.publish("S", ["<a>3</a>"])
    weir.wait_idle()
    weir.stop()
    assert weir.status().queries == 20_000
    names = [(r.query, r.documents[0]) for r in weir.results()]
    assert {q for q, d in names if d == "S-2"} == {"before", "m0", "m1", "m2"}
    assert {q for q, d in names if d == "S-3"} == set()
    assert sum(d == "S-4" for _, d in names) == 20_001
    assert {q for q, d in names if d == "S-5"} == {"before", "m0", "m2"}
    assert len(names) == 1 + 4 + 20_001 + 3


def double(result):
    """Called by `do call`: writes its output to a file."""
    with open("called.txt", "a") as file:
        file.write(f"{result.query} {result.output}\n")


def test_actions(weir, tmp_path, monkeypatch, caplog):
    (tmp_path / "broken_module.py").write_text("this is no python")
    monkeypatch.syspath_prepend(tmp_path)
    seen = []
    weir.action("collect", seen.append)
    weir.action("fail", lambda result: 1 / 0)
    weir.execute(
        f"""
        create stream S;
        {ABOVE.format("appended", 1)} do append 'out/some.jsonl';
        {ABOVE.format("collected", 1)} do collect;
        {ABOVE.format("called", 1)} do call 'tests.engine.test_run_time:double';
        {ABOVE.format("failing", 1)} do fail;
        {ABOVE.format("broken", 1)} do call 'broken_module:f';
        {ABOVE.format("silent", 1)};
        """
    )
    weir.start()
    for value in (1, 2, 3):
        weir.publish("S", [f"<a>{value}</a>"], timestamps=[value])
        weir.wait_idle()
    weir.stop()
    assert [(r.query, r.documents, r.output) for r in seen] == [
        ("collected", ["S-2"], "2"),
        ("collected", ["S-3"], "3"),
    ]
    lines = [json.loads(line) for line in (tmp_path / "out/some.jsonl").read_text().splitlines()]
    assert lines[0] == {
        "query": "appended",
        "documents": ["S-2"],
        "timestamp": 2.0,
        "bindings": {"v": {"document": "S-2", "node": 0, "value": "2"}},
        "output": "2",
    }
    assert [line["output"] for line in lines] == ["2", "3"]
    assert (tmp_path / "called.txt").read_text() == "called 2\ncalled 3\n"
    waiting = {letter.feeds: str(letter.error).split("(")[0] for letter in weir.letters() if letter.attempts}
    assert waiting == {
        ("broken",): "SyntaxError",
        ("failing",): "ZeroDivisionError",
    }
    assert "to fail failed (attempt 1): ZeroDivisionError('division by zero')" in caplog.text
    assert len(outputs(weir, "silent")) == 2


def test_an_endless_dataframe_blocks_no_others(spark_weir, spark):
    """A DataFrame attached while the job runs, which always has more, delays neither delivery nor stop."""
    weir = spark_weir
    seen = []
    weir.action("collect", seen.append)
    weir.execute(f"create stream S; {ABOVE.format('pushed', 0)} do collect")
    weir.start()
    weir.wait_idle()
    weir.attach("endless", spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 2).load())
    weir.execute('create first where <endless><value>$v</></> in "endless", $v < 3 construct $v')
    wait_for(lambda: weir.status().streams["endless"].evaluated >= 6)
    weir.publish("S", ["<a>1</a>"])
    wait_for(lambda: seen)
    weir.stop()
    assert [r.documents for r in seen] == [["S-1"]]
    assert sorted(o for _, o in outputs(weir, "first")) == ["0", "1", "2"]

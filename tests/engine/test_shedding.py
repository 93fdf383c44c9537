"""Shedding in the job: what is left out, how it is reported, repeated micro-batches, and making up for it."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import fishweir
from fishweir import testing
from fishweir.engine.status import EngineStatus
from fishweir.engine.weir import Weir
from fishweir.pipeline.shed import Shedder
from fishweir.shedding.overload import Overload


@dataclass
class Slow(Overload):
    """An overload in which each document takes a tenth of a second."""

    def took(self, documents: int, seconds: float, shed: int = 0, part: float = 1.0) -> None:
        self._costs.append(0.1)


def overloaded(weir: testing.Weir, latency: float = 10.0) -> Slow:
    weir.overload = Slow(latency)
    weir.overload.took(1, 1.0)
    return weir.overload


def tuples(count: int, after: int = 0) -> list[dict[str, Any]]:
    return [{"id": n, "price": 2000.0 if n % 10 == 0 else 5.0} for n in range(after + 1, after + count + 1)]


def found(weir: testing.Weir, query: str) -> list[int]:
    return [result.output["id"] for result in weir.results(query)]  # type: ignore[index]


def test_preferred_tuples_are_kept_during_a_burst(weir: testing.Weir, caplog: pytest.LogCaptureFixture) -> None:
    weir.execute("create stream R (id int, price double); create query all as select id from R pref price > 1000")
    overloaded(weir)
    weir.publish("R", tuples(40))
    weir.step()
    assert len(found(weir, "all")) == 40, "50 fit into the target"
    weir.publish("R", tuples(200, 40))
    with caplog.at_level(logging.WARNING, "fishweir.shedding"):
        weir.step()
    burst = found(weir, "all")[40:]
    assert len(burst) == 40
    assert set(range(50, 241, 10)) <= set(burst), "those over 1000 come first"
    assert "shedding starts: 200 entries are waiting, leaving out 80% of R" in caplog.text
    status = weir.status()
    assert isinstance(status, EngineStatus)
    assert status.streams["R"].shed == 160
    assert "160 left out under overload" in str(status)
    commit = weir.table.newest()
    assert sum(commit.shed.values()) == 160
    weir.publish("R", tuples(20, 240))
    with caplog.at_level(logging.WARNING, "fishweir.shedding"):
        weir.run(until_idle=True)
    assert found(weir, "all")[80:] == list(range(241, 261))
    assert "shedding ends" in caplog.text
    assert fishweir.check(weir.home.path).is_whole, "what was left out is neither damaged nor lost"


def test_queries_without_preference_are_never_degraded(weir: testing.Weir) -> None:
    weir.execute("""
        create stream R (id int, price double); create stream T (id int, price double) shed allowed;
        create query wished as select id from R pref price > 1000;
        create query plain as select id from R;
        create query other as select id from T
    """)
    overloaded(weir)
    weir.publish("R", tuples(100))
    weir.publish("T", tuples(100))
    weir.run(until_idle=True)
    assert len(found(weir, "plain")) == len(found(weir, "wished")) == 100
    assert 0 < len(found(weir, "other")) < 10, "T makes up for R"


def test_documents_by_value(weir: testing.Weir) -> None:
    weir.execute("""
        create stream S;
        create query q as for $a in stream('S')/t return $a/order/@id pref v(order[price > 1000]) = 0.9
    """)
    overloaded(weir)
    prices = [2000 if n % 20 == 0 else 3 for n in range(200)]
    weir.publish("S", [f"<t><order id='{n}'><price>{p}</price></order></t>" for n, p in enumerate(prices)])
    weir.run(until_idle=True)
    kept = [int(str(result.output)) for result in weir.results("q")]
    assert len(kept) == 40
    assert set(range(0, 200, 20)) <= set(kept)


def test_without_a_target_nothing_is_left_out(weir: testing.Weir) -> None:
    weir.execute("create stream R (id int, price double) shed allowed; create query all as select id from R")
    weir.publish("R", tuples(500))
    weir.run(until_idle=True, latency=1000)
    weir.publish("R", tuples(500, 500))
    weir.run(until_idle=True)
    assert len(found(weir, "all")) == 1000


def test_a_repeated_micro_batch_sheds_the_same(weir: testing.Weir, monkeypatch: pytest.MonkeyPatch) -> None:
    weir.execute("create stream R (id int, price double) shed allowed; create query all as select id from R")
    overload = overloaded(weir)
    weir.publish("R", tuples(200))

    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(weir.table, "commit", crash)
        with pytest.raises(KeyboardInterrupt):
            weir.step()
    assert found(weir, "all") == []
    overload._costs.clear()
    overload._costs.append(1e-9)  # by now there would be time for all
    weir.step()
    assert len(found(weir, "all")) == 40


@pytest.mark.parametrize("within", ["1 hour", "1 second"])
def test_shed_documents_are_made_up_for(weir_at: tuple[testing.Weir, testing.Clock], within: str) -> None:
    weir, clock = weir_at
    weir.execute(f"""
        create stream R (id int, price double) shed allowed make up within {within};
        create query all as select id from R;
        create query pairs as select a.id as id, b.id as other from R [range 1000 seconds] a, R [range 1000 seconds] b
            where a.id < b.id and a.price = b.price and a.price > 1000
    """)
    overloaded(weir)
    weir.publish("R", tuples(200))
    weir.step()
    assert len(found(weir, "all")) == 40
    clock.advance(60.0)
    weir.run(until_idle=True)
    complete = within == "1 hour"
    assert len(found(weir, "all")) == (200 if complete else 40)
    if complete:
        assert sorted(found(weir, "all")) == list(range(1, 201))
        results = {tuple(result.documents): result.timestamp for result in weir.results("all")}
        assert set(results) == {(f"R-{n}",) for n in range(1, 201)}
        assert set(results.values()) == {1000.0}
        assert len(found(weir, "pairs")) == 20 * 19 // 2
        status = weir.status()
        assert isinstance(status, EngineStatus)
        assert "160 left out under overload, 160 evaluated later" in str(status)


def test_publishing_waits_for_the_job_or_is_refused(weir: testing.Weir) -> None:
    weir.execute("create stream R (id int, price double); create query all as select id from R")
    weir.backlog = 10
    runner = weir._runner = weir._new_runner(threading.Event(), weir._new_rebuilder())
    weir.publish("R", tuples(20))
    refused: list[Exception] = []

    def publish(wait: float | None) -> None:
        try:
            weir.publish("R", tuples(5, 20), wait=wait)
        except fishweir.BacklogError as error:
            refused.append(error)

    first = threading.Thread(target=publish, args=(0.0,))
    first.start()
    first.join()
    assert "stream R: 20 entries are waiting to be evaluated; the limit is 10" in str(refused[0])
    second = threading.Thread(target=publish, args=(None,))
    second.start()
    while second.is_alive():
        runner.step()
    runner.step()
    weir._runner = None
    assert len(refused) == 1
    assert found(weir, "all") == list(range(1, 26))


@pytest.fixture
def weir_at(tmp_path: Path) -> Any:
    clock = testing.Clock(1000.0)
    with testing.open(tmp_path / "home", clock=clock) as weir:
        yield weir, clock


def test_decisions_are_recorded(weir: testing.Weir) -> None:
    weir.execute("create stream R (id int, price double) shed allowed")
    shedder = Shedder(weir.home, overloaded(weir), lambda _: {})
    weir.publish("R", tuples(100))
    (stream,) = weir.home.stream_ids()
    decided = shedder.decide(3, 0, {stream: 100})
    assert [one.keep for one in decided.values()] == [0.4]
    assert shedder.decide(3, 0, {stream: 200}) == decided
    assert [one.keep for one in shedder.decide(4, 0, {stream: 200}).values()] == [0.2]


def test_a_target_must_be_positive(weir: testing.Weir) -> None:
    with pytest.raises(fishweir.QueryError, match="above 0"):
        weir.run(until_idle=True, latency=0)


def test_shedding_on_spark(spark_weir: Weir) -> None:
    """The same on Spark: the burst is cut to what fits, and made up for afterwards."""
    spark_weir.execute("""
        create stream R (id int, price double) make up within 1 hour;
        create query all as select id from R pref price > 1000
    """)
    spark_weir.overload = Slow(10.0)
    spark_weir.overload.took(1, 1.0)
    spark_weir.publish("R", tuples(200))
    spark_weir.run(until_idle=True)
    first, *later = spark_weir.table.commits()
    assert sum(first.shed.values()) == 160
    assert all(not commit.shed for commit in later)
    assert sorted(result.output["id"] for result in spark_weir.results("all")) == list(range(1, 201))  # type: ignore[index]

"""Changes under overload: queries are added and dropped, the process is interrupted, preferences are invalid."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import pytest

from fishweir import QueryError, QuerySyntaxError, Result, testing
from fishweir.engine.shedding import preference_groups_of
from fishweir.pipeline.home import read_json
from fishweir.pipeline.output_timing import OutputTimer
from fishweir.pipeline.shed import Shedder
from fishweir.shedding.decision import StreamShed
from fishweir.shedding.overload import Overload
from tests.engine.test_shed_patterns import Q1, overloaded, transactions

PREFERRED = f"{Q1} pref v(name) = 0.5, v(tel) = 0.3, v(price) = 0.19, v(addr) = 0.01"


def _sheds(streams: Mapping[str, Any]) -> dict[str, StreamShed]:
    return {id: StreamShed.from_json(one) for id, one in streams.items()}


def lacking(weir: testing.Weir, query: str) -> list[bool]:
    return ["list/transaction/contact/addr" in result.left_out for result in weir.results(query)]


def test_queries_are_added_and_dropped_under_overload(weir: testing.Weir) -> None:
    """The decision is repeated for the current queries."""
    weir.action("keep", lambda _: None)
    weir.execute(f"create stream transactions; create query Q1 as {PREFERRED} do keep; create query plain as {Q1}")
    overloaded(weir)
    weir.publish("transactions", transactions(30))
    weir.step()
    assert any(lacking(weir, "Q1"))
    weir.execute(f"create query later as {PREFERRED} do keep")
    weir.drop("Q1")
    weir.publish("transactions", transactions(30, 30))
    weir.step()
    assert weir.overload is not None
    assert weir.overload.shedding
    assert len(lacking(weir, "later")) == 15
    assert any(lacking(weir, "later"))
    weir.drop("later")
    weir.publish("transactions", transactions(30, 60))
    weir.step()
    assert not weir.table.newest().cut, "the remaining query has no preference"
    assert lacking(weir, "plain") == [False] * 45


def test_a_process_that_ends_between_decision_and_commit_sheds_the_same(weir: testing.Weir) -> None:
    """The decision is recorded before the micro-batch runs: another process repeats it, whatever is waiting by then."""
    found: list[Result] = []
    weir.action("keep", found.append)
    weir.execute(f"create stream transactions shed allowed; create query Q1 as {PREFERRED} do keep")
    overloaded(weir)
    weir.publish("transactions", transactions(200))

    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    weir.table.commit = crash  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        weir.step()
    decided = read_json(weir.home.path / "shedding.json", {})
    home = weir.home.path
    weir.close()
    with testing.open(home) as again:
        again.action("keep", found.append)
        again.overload = Overload(1000.0)
        again.publish("transactions", transactions(5, 200))
        again.step()
        commit = again.table.of_batch(decided["batch"])
        assert _sheds(commit.shedding) == _sheds(decided["streams"])
        assert sum(commit.shed.values()) + sum(commit.cut.values()) > 0
        again.run(until_idle=True)
        assert len({result.documents[0] for result in again.results("Q1")}) == len(list(again.results("Q1")))


def test_outputs_that_take_longer_than_micro_batches_are_overload(weir: testing.Weir) -> None:
    """Most micro-batches end while outputs of an earlier one are being constructed, so they say nothing about
    outputs."""
    overload, spent = Overload(5.0), OutputTimer()
    shedder = Shedder(weir.home, overload, lambda _: {}, spent)
    with spent.counting(batch=1, documents=1):
        time.sleep(0.06)
    for _ in range(20):
        shedder.took(2_000, 0, 0.01)
    assert overload.budget(10) is None
    assert overload.budget(10, constructing=1_000) is not None, "a thousand times sixty milliseconds"


@pytest.mark.parametrize(
    "preference",
    [
        "pref",
        "pref v(name) = 2",
        "pref v(name) = -1",
        "pref v(nme) = 0.2",
        "pref name > name",
        "pref v(name) = 0.2, v(name) = 0.3",
        "pref v(name) =",
        "pref name >",
        "pref v() = 0.1",
        "pref name > tel > nosuch",
        "pref v(name) = nan",
    ],
)
def test_preferences_that_make_no_sense_are_refused_and_change_nothing(weir: testing.Weir, preference: str) -> None:
    weir.execute("create stream transactions")
    with pytest.raises((QuerySyntaxError, QueryError)):
        weir.execute(f"create query q as {Q1} {preference}")
    assert weir.execute(f"create query q as {Q1} pref name > tel") == ["q"]


def test_documents_without_patterns_count_less_in_the_backlog(weir: testing.Weir) -> None:
    """Documents waiting for outputs are weighted by the cost of these outputs without the omitted patterns."""
    weir.action("keep", lambda _: None)
    weir.execute(f"create stream transactions; create query Q1 as {PREFERRED} do keep; create query plain as {Q1}")
    waiting: list[tuple[int, int]] = []
    overload = Overload(2.0)
    overload.took(1, 1.0)
    overload.took(10_000, 0.1)
    overload.constructed(1_000, 10.0)
    shedder = Shedder(weir.home, overload, preference_groups_of(weir.catalog), behind=lambda: waiting)
    weir.publish("transactions", transactions(400))
    version = weir.catalog.version()
    (stream,) = weir.home.stream_ids()
    (cut,) = shedder.decide(7, version, {stream: 400}).values()
    assert not all(level.is_full for level in cut.levels)
    seen: list[float] = []
    overload.budget = lambda _, behind=0, passed=0: seen.append(behind)  # type: ignore[method-assign,assignment]
    for batch in (6, 7):
        waiting[:] = [(batch, 100)]
        shedder.decide(batch + 2, version, {stream: 400})
    assert seen[0] == 100
    assert 0 <= seen[1] < 100

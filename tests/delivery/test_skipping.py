"""Commits while there are no subscriptions: nobody is woken for them, and none of those after the first is missed."""

from __future__ import annotations

from pathlib import Path

import pytest

from fishweir import testing
from fishweir.delivery import collector
from fishweir.testing import Weir
from tests.engine.helpers import wait_for


@pytest.fixture(name="weir")
def _weir(tmp_path: Path) -> Weir:
    with testing.open(tmp_path / "home") as weir:
        weir.execute("create stream R (x int); create query q as select x from R")
        yield weir


def publish(weir: Weir, value: int) -> None:
    weir.publish("R", [{"x": value}])
    while weir.step():
        pass


def test_the_collector_wakes_once_per_version_without_subscriptions(weir: Weir) -> None:
    service = weir._delivery_service
    service.start()
    try:
        publish(weir, 1)
        wait_for(lambda: service.collector.batch == 0)
        service._collect.clear()
        for value in range(2, 6):
            publish(weir, value)
        assert (service.collector.batch, service._collect.is_set(), service.is_idle()) == (4, False, True)
        weir.execute("create query other as select x from R where x > 3")
        publish(weir, 6)
        wait_for(lambda: service.collector.batch == 5)
    finally:
        service.stop()


def test_the_first_subscription_gets_all_results_from_then_on(weir: Weir) -> None:
    heard: list[object] = []
    weir.action("hear", lambda result: heard.append(result.output["x"]))
    service = weir._delivery_service
    service.start()
    try:
        for value in range(3):
            publish(weir, value)
        weir.execute("create query later as select x from R do hear")
        for value in range(3, 6):
            publish(weir, value)
        wait_for(lambda: len(heard) >= 3)
    finally:
        service.stop()
    assert heard == [3, 4, 5]


def test_the_position_is_recorded_from_time_to_time(weir: Weir, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "RECORD_EVERY", 4)
    for value in range(7):
        publish(weir, value)
    found = weir._delivery_service.collector
    assert found.batch == 6
    found.catch_up()
    assert found.batch == 4

"""Callbacks start in the transaction that collects their results: each result arrives, in order, even after a crash."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from fishweir import testing
from fishweir.delivery import collector, routing
from fishweir.delivery.outbox import Delivery
from fishweir.errors import HomeError
from fishweir.pipeline.result import Result
from fishweir.testing import Clock, Weir


def publish(weir: Weir, *values: int) -> None:
    weir.publish("R", [{"x": value} for value in values])


def in_outbox(weir: Weir) -> list[tuple[int, int, int]]:
    """For each row, its range and its number of attempts."""
    with weir.catalog.database.connect() as connection:
        return [tuple(row) for row in connection.execute("select after, upto, attempts from outbox order by id")]


def committed(weir: Weir, monkeypatch: pytest.MonkeyPatch, *values: int) -> None:
    """Commits a micro-batch that delivery has not collected."""
    with monkeypatch.context() as patched:
        patched.setattr(weir._delivery_service, "step", lambda: 0)
        publish(weir, *values)
        weir.step()


def looked(weir: Weir) -> list[Delivery]:
    """The deliveries that would start now, without sending them."""
    weir._delivery_service._poll()
    return weir._delivery_service.collector.started()


def test_started_deliveries_are_repeated_after_a_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def opened() -> Weir:
        return testing.open(tmp_path / "home")

    with opened() as weir:
        weir.action("hear", lambda result: None)
        weir.execute("create stream R (x int); create query q as select x from R do hear")
        committed(weir, monkeypatch, 7)
        (started,) = looked(weir)
        assert (started.attempts, in_outbox(weir)) == (1, [(-1, 0, 1)])  # and then the process dies
    with opened() as weir:
        heard: list[Result] = []
        weir.action("hear", heard.append)
        weir.step()
        assert [result.output for result in heard] == [{"x": 7}]
        assert in_outbox(weir) == []


def test_waiting_deliveries_go_first(weir: Weir, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a failed delivery, later ones do not take the fast path: they follow it, and none is lost."""
    heard: list[object] = []
    fails = True

    def hear(result: Result) -> None:
        if fails:
            raise ValueError("not now")
        heard.append(result.output)

    weir.action("hear", hear)
    weir.execute("create query q as select x from R do hear")
    publish(weir, 1)
    weir.step()
    committed(weir, monkeypatch, 2)
    assert looked(weir) == []
    assert in_outbox(weir) == [(-1, 0, 1), (0, 1, 0)]
    fails = False
    clock.advance(3600.0)
    weir.step()
    assert heard == [{"x": 1}, {"x": 2}]


def test_results_wait_for_a_running_callback(weir: Weir) -> None:
    heard: list[object] = []
    entered, may_go_on = threading.Event(), threading.Event()

    def hear(result: Result) -> None:
        entered.set()
        assert may_go_on.wait(60)
        heard.append(result.output)

    weir.action("hear", hear)
    weir.execute("create query q as select x from R do hear")
    service = weir._delivery_service
    service.start()
    try:
        for value in (1, 2, 3):
            publish(weir, value)
            weir.step()
            service.wake()
            assert entered.wait(60)
        may_go_on.set()
    finally:
        service.stop(patience=60.0)
    weir.step()  # the deliveries collected before it stopped
    assert heard == [{"x": 1}, {"x": 2}, {"x": 3}]


def test_deliveries_begin_before_all_micro_batches_are_collected(weir: Weir, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "SLICE", 0.0)
    weir.action("hear", lambda _: None)
    weir.execute("create query q as select x from R do hear")
    for value in (1, 2, 3):
        committed(weir, monkeypatch, value)
    service = weir._delivery_service
    started: list[list[tuple[int, int]]] = []
    waiting: list[int] = []

    def begin() -> None:
        started.append([(one.after, one.upto) for one in service.collector.started()])
        waiting.append(len(service.collector.waiting()))

    service._poll(begin)
    assert started == [[(-1, 0)], [], []], "the next ones follow the first, which is in flight"
    assert waiting == [2, 1, 0]
    assert in_outbox(weir) == [(-1, 0, 1), (0, 1, 0), (1, 2, 0)]


def test_results_are_released_when_they_have_been_sent_and_read_again_by_a_retry(weir: Weir, clock: Clock) -> None:
    heard: list[Result] = []
    fails = True

    def hear(result: Result) -> None:
        heard.append(result)
        if fails:
            raise ValueError("not now")

    weir.action("hear", hear)
    weir.execute("create stream S; create query q as for $a in stream('S')/t return $a/x do hear")
    weir.publish("S", ["<t><x>1</x></t>"])
    weir.step()
    contents = weir._delivery_service.sender.contents
    assert not contents._cache
    fails = False
    clock.advance(3600.0)
    weir.step()
    assert [result.output for result in heard] == ["<x>1</x>", "<x>1</x>"]


def test_several_micro_batches_are_one_delivery(weir: Weir, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "SLICE", 3600.0)
    heard: list[object] = []
    weir.action("hear", lambda result: heard.append(result.output))
    weir.execute("create query q as select x from R where x > 1 do hear; create query r as select x from R do hear")
    for value in (1, 2, 3):
        committed(weir, monkeypatch, value)
    (started,) = looked(weir)
    assert (started.after, started.upto) == (-1, 2)
    weir._delivery_service._settle([weir._delivery_service.sender.send(started)])
    assert heard == [{"x": 1}, {"x": 2}, {"x": 2}, {"x": 3}, {"x": 3}]


def test_subscriptions_are_those_of_the_micro_batch(weir: Weir, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cached subscriptions are looked up again when they change, and dropping one does not revoke earlier results."""
    heard: list[tuple[str, object]] = []
    weir.action("hear", lambda result: heard.append((result.query, result.output)))
    weir.execute("create query q as select x from R do hear")
    publish(weir, 1)
    weir.step()
    weir.execute("create query r as select x from R do hear")
    committed(weir, monkeypatch, 2)
    weir.execute("drop query q")
    weir._delivery_service.step()
    publish(weir, 3)
    weir.step()
    assert heard == [("q", {"x": 1}), ("q", {"x": 2}), ("r", {"x": 2}), ("r", {"x": 3})]


def test_started_deliveries_are_sent_even_if_later_steps_fail(weir: Weir, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[object] = []
    weir.action("hear", lambda result: heard.append(result.output))
    weir.execute("create query q as select x from R do hear")
    service = weir._delivery_service
    committed(weir, monkeypatch, 1)
    with monkeypatch.context() as patched:
        patched.setattr(service.timers, "fire", fail)
        with pytest.raises(OSError, match="no timers"):
            service.step()
    assert (heard, in_outbox(weir)) == ([{"x": 1}], [])
    publish(weir, 2)
    weir.step()
    assert heard == [{"x": 1}, {"x": 2}]


def fail(_: object) -> int:
    raise OSError("no timers")


def test_subscriptions_that_could_not_be_read_are_read_again(weir: Weir, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[object] = []
    weir.action("hear", lambda result: heard.append(result.output))
    weir.execute("create query q as select x from R do hear")
    committed(weir, monkeypatch, 1)
    with monkeypatch.context() as patched:
        patched.setattr(routing, "_AT_ONCE", "select number from nowhere where number in :some")
        with pytest.raises(HomeError):
            weir._delivery_service.step()
    weir._delivery_service.step()
    assert heard == [{"x": 1}]


def test_options_are_applied(weir: Weir, clock: Clock) -> None:
    heard: list[object] = []

    class Heard:
        def __init__(self, _: str) -> None:
            """The argument, which options follow."""

        def position(self) -> None:
            return None

        def rewind(self, position: int) -> None:
            raise AssertionError

        def deliver(self, results: list[Result]) -> None:
            heard.extend(result.output for result in results)

    weir.register_action("heard", Heard)
    weir.execute("create query q as select x from R do heard 'a' at most 1 per hour")
    for value in (1, 2):
        publish(weir, value)
        weir.step()
    assert heard == [{"x": 1}]
    clock.advance(3601.0)
    weir.step()
    assert heard == [{"x": 1}, {"x": 2}]

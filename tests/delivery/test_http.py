"""`http`: retried until a 2xx response acknowledges it, under one key, in order; a hanging target delays no other."""

from __future__ import annotations

import base64
import hashlib
import hmac
import threading
from pathlib import Path

import pytest

from fishweir import testing
from fishweir.delivery import outbox, service
from fishweir.delivery.outputs import http
from fishweir.delivery.retries import PER_HOST, CircuitBreaker
from fishweir.pipeline.commits import Commit
from fishweir.testing import Clock, Weir
from tests.delivery.servers import Hooks, dripping_server, hook_server
from tests.engine.helpers import wait_for


def publish(weir: Weir, *values: int) -> None:
    weir.publish("R", [{"x": value} for value in values])
    weir.step()


def values(hooks: Hooks) -> list[int]:
    return [result["output"]["x"] for one in hooks.taken for result in one.results]


@pytest.mark.parametrize("statement", ["subscribe to big output http '{}/h'",
                                       "create query b2 as select x from R where x > 5 do http '{}/h'"])  # fmt: skip
def test_posts_results_as_json(weir: Weir, hooks: Hooks, statement: str) -> None:
    weir.execute(statement.format(hooks.url))
    publish(weir, 1, 7, 8)
    publish(weir, 2)
    (one,) = hooks.posted
    name = "big" if statement.startswith("subscribe") else "b2"
    assert one.results == [result.to_dict() for result in weir.results(name)]
    assert (one.path, one.headers["content-type"]) == ("/h", "application/json")
    assert one.key


@pytest.mark.parametrize("trouble", [500, 404, 301, "drop"])
def test_retries_have_the_same_key(weir: Weir, clock: Clock, hooks: Hooks, trouble: int | str) -> None:
    weir.execute(f"subscribe to big output http '{hooks.url}'")
    hooks.answer = lambda _: trouble if len(hooks.posted) < 2 else 200
    publish(weir, 7)
    for _ in range(4):
        clock.advance(5)
        weir.step()
    assert [one.status for one in hooks.posted] == [trouble, trouble, 200]
    assert len({one.key for one in hooks.posted}) == 1
    assert weir.letters() == []


def test_order_is_kept_and_waiting_results_are_one_delivery(weir: Weir, clock: Clock, hooks: Hooks) -> None:
    weir.execute(f"subscribe to big output http '{hooks.url}'")
    hooks.answer = lambda _: 503
    for value in (7, 8, 9):
        publish(weir, value)
    assert [one.results[0]["output"]["x"] for one in hooks.posted] == [7]
    hooks.answer = lambda _: 200
    clock.advance(1)
    weir.step()
    assert values(hooks) == [7, 8, 9]
    assert [len(one.results) for one in hooks.taken] == [1, 2]


def test_retried_after_a_restart_unless_acknowledged(weir: Weir, clock: Clock, hooks: Hooks) -> None:
    weir.execute(f"subscribe to big output http '{hooks.url}'")
    publish(weir, 6)
    hooks.answer = lambda _: 500
    publish(weir, 7)
    weir.close()
    hooks.answer = lambda _: 200
    for _ in range(2):
        with testing.open(weir.home.path, clock=clock) as again:
            again.step()
    assert values(hooks) == [6, 7]
    assert hooks.posted[1].key == hooks.posted[2].key != hooks.posted[0].key


def test_many_results_take_several_posts_that_resume_after_a_failure(weir: Weir, clock: Clock, hooks: Hooks) -> None:
    weir.execute(f"subscribe to big output http '{hooks.url}'")
    hooks.answer = lambda _: 500 if len(hooks.posted) == 1 else 200
    publish(weir, *range(10, 2510))
    clock.advance(1)
    weir.step()
    assert [len(one.results) for one in hooks.taken] == [1000, 1000, 500]
    assert values(hooks) == list(range(10, 2510))
    assert len({one.key for one in hooks.taken}) == 3


def test_the_server_determines_the_time_of_the_retry(weir: Weir, clock: Clock, hooks: Hooks) -> None:
    weir.execute(f"subscribe to big output http '{hooks.url}'")
    hooks.answer, hooks.headers = (lambda _: 429), {"Retry-After": "120"}
    publish(weir, 7)
    clock.advance(119)
    weir.step()
    assert len(hooks.posted) == 1
    clock.advance(2)
    weir.step()
    assert len(hooks.posted) == 2


@pytest.mark.parametrize(("written", "signs_with"), [("s3cret", b"s3cret"), ("whsec_czNjcmV0", b"s3cret")])
def test_signed_with_a_secret_that_is_not_in_the_statement(
    weir: Weir, clock: Clock, hooks: Hooks, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, written: str,
    signs_with: bytes,
) -> None:  # fmt: skip
    weir.execute(f"subscribe to big output http '{hooks.url}' secret my-hook")
    publish(weir, 7)
    assert "there is no secret my-hook: set FISHWEIR_SECRET_MY_HOOK" in str(weir.letters()[0].error)
    (tmp_path / "secret").write_text(f"{written}\n")
    monkeypatch.setenv("FISHWEIR_SECRET_MY_HOOK_FILE", str(tmp_path / "secret"))
    clock.advance(1)
    weir.step()
    (one,) = hooks.taken
    signed = b".".join([one.key.encode(), one.headers["webhook-timestamp"].encode(), one.body])
    digest = base64.b64encode(hmac.new(signs_with, signed, hashlib.sha256).digest()).decode()
    assert one.headers["webhook-signature"] == f"v1,{digest}"


def test_not_idle_while_results_are_in_flight(weir: Weir, clock: Clock, hooks: Hooks, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    """Each move of results happens between two checks of `is_idle`."""
    weir.execute(f"subscribe to big output http '{hooks.url}'")
    service = weir._delivery_service
    waiting, next_timer, next_due = service.collector.waiting, service.timers.next, service.outbox.next_due
    claiming: list[threading.Thread] = []

    def collect() -> list[Commit]:
        monkeypatch.setattr(service.collector, "waiting", waiting)
        found = waiting()
        service._poll()
        return found

    def collect_later() -> float | None:
        service._poll()
        return next_timer()

    def claim() -> float | None:
        claiming.append(threading.Thread(target=service._claim))
        claiming[0].start()
        return next_due()

    monkeypatch.setattr(service, "step", lambda: 0)
    publish(weir, 7)
    monkeypatch.setattr(service.timers, "next", collect_later)
    assert not service.is_idle(), "it was committed before, and would be collected between two checks"
    monkeypatch.setattr(service.timers, "next", next_timer)
    monkeypatch.setattr(service.collector, "waiting", collect)
    assert not service.is_idle(), "it was collected after the first check"
    monkeypatch.setattr(service.outbox, "next_due", claim)
    assert not service.is_idle(), "it is claimed while the outbox is read"
    claiming[0].join()
    assert service._busy
    assert not service.is_idle()


def test_a_failing_host_is_not_contacted(weir: Weir, clock: Clock, hooks: Hooks) -> None:
    for i in range(20):
        weir.execute(f"subscribe to big output http '{hooks.url}/{i}'")
    hooks.answer = lambda _: 500
    publish(weir, 7)
    assert len(hooks.posted) == 8, "the maximum per host at a time; then the circuit breaker is open"
    clock.advance(12)
    weir.step()
    assert len(hooks.posted) == 9, "one request tests whether the host is back"
    hooks.answer = lambda _: 200
    clock.advance(60)
    weir.step()
    assert len(hooks.taken) == 20


def test_dead_letters_are_listed_and_resent(weir: Weir, clock: Clock, hooks: Hooks) -> None:
    weir.execute(f"subscribe to big output http '{hooks.url}'")
    hooks.answer = lambda _: 500
    publish(weir, 7)
    for _ in range(20):
        clock.advance(6 * 3600)
        weir.step()
    (letter,) = weir.dead_letters()
    assert (letter.feeds, letter.action, letter.error) == (("big",), f"http {hooks.url}", "the server answered 500")
    hooks.answer = lambda _: 200
    publish(weir, 8)
    assert values(hooks) == [8], "an abandoned delivery blocks no others"
    assert weir.resend() == 1
    weir.step()
    assert (values(hooks), weir.letters()) == ([8, 7], [])
    assert hooks.posted[0].key == hooks.posted[-1].key


def test_at_most_n_deliveries_per_hour(weir: Weir, clock: Clock, hooks: Hooks) -> None:
    weir.execute(f"subscribe to big output http '{hooks.url}' at most 2 per hour")
    for value in (6, 7, 8, 9):
        publish(weir, value)
        clock.advance(60)
    assert values(hooks) == [6, 7]
    clock.advance(3600)
    weir.step()
    assert values(hooks) == [6, 7, 8, 9]
    assert len(hooks.posted) == 3


def test_quiet_hours(weir: Weir, clock: Clock, hooks: Hooks) -> None:
    weir.execute(f"subscribe to big output http '{hooks.url}' quiet 22:00-07:00")
    clock.now = 23 * 3600.0
    publish(weir, 7)
    clock.now = 24 * 3600 + 6.9 * 3600
    weir.step()
    assert hooks.posted == []
    clock.now = 24 * 3600 + 7 * 3600
    weir.step()
    assert values(hooks) == [7]


def test_a_hanging_target_delays_no_other(tmp_path: Path, hooks: Hooks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    hooks.answer = lambda one: "hang" if one.path == "/hangs" else 200
    with testing.open(tmp_path / "home") as weir:
        weir.execute("create stream R (x int); create query big as select x from R where x > 5 do append 'box'")
        weir.execute(
            f"subscribe to big output http '{hooks.url}/hangs'; subscribe to big output http '{hooks.url}/good'"
        )
        weir.start()
        for value in (6, 7, 8):
            weir.publish("R", [{"x": value}])
            wait_for(lambda value=value: value in values(hooks))
        wait_for(lambda: len(Path("box").read_text().splitlines()) == 3)
        assert [one.path for one in hooks.posted if one.status == "hang"] == ["/hangs"]
        hooks.answer = lambda one: 200
        hooks.released.set()
        wait_for(lambda: len(values(hooks)) == 6)
        weir.stop()


def test_until_idle_waits_for_a_server_that_fails_at_first(tmp_path: Path, hooks: Hooks) -> None:
    hooks.answer = lambda one: 500 if len(hooks.posted) < 3 else 200
    with testing.open(tmp_path / "home") as weir:
        weir.execute(f"create stream R (x int); create query q as select x from R do http '{hooks.url}'")
        weir.publish("R", [{"x": 1}])
        weir.run(until_idle=True)
        assert values(hooks) == [1]


def test_many_hanging_targets_delay_no_others(tmp_path: Path, hooks: Hooks, monkeypatch: pytest.MonkeyPatch) -> None:
    """There are more of them than senders, more than are examined together, and they are due before the others."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(service, "MAX_SENDERS", 16)
    monkeypatch.setattr(outbox, "DUE_TARGETS_PER_CLAIM", 64)
    hooks.answer = lambda one: "hang" if one.path.startswith("/hangs") else 200
    with testing.open(tmp_path / "home") as weir, hook_server() as other:
        weir.execute("create stream R (x int); create query big as select x from R where x > 5")
        weir.execute(";".join(f"subscribe to big output http '{hooks.url}/hangs/{i}'" for i in range(100)))
        weir.start()
        weir.publish("R", [{"x": 6}])
        wait_for(lambda: len(hooks.posted) == PER_HOST)
        weir.execute(f"subscribe to big output http '{other.url}'; subscribe to big output append 'box'")
        weir.publish("R", [{"x": 7}])
        wait_for(lambda: values(other) == [7] and Path("box").exists())
        assert len(hooks.posted) == PER_HOST
        hooks.answer = lambda one: 200
        hooks.released.set()
        weir.stop()


def test_a_dripping_server_times_out(weir: Weir, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of its bytes arrives in time, its complete response never does."""
    monkeypatch.setattr(http, "LONGEST", 0.5)
    with dripping_server() as url:
        weir.execute(f"subscribe to big output http '{url}'")
        weir.publish("R", [{"x": 7}])
        weir.step()
        (letter,) = weir.letters()
        assert str(letter.error).startswith("ReadTimeout")


def test_failing_hosts_leave_senders_to_others() -> None:
    breaker = CircuitBreaker(16)
    for number in range(30):
        breaker.acquire(f"h{number}")
        breaker.record(f"h{number}", False, 0.0)
    begun = [host for host in breaker.hosts if breaker.has_room(host) and breaker.acquire(host) is None]
    assert len(begun) == 8
    assert breaker.has_room("new")
    assert not breaker.has_room("h29")
    assert set(breaker.full()) == set(begun)
    for number in range(4):
        breaker.acquire(f"new{number}")
    assert not breaker.has_room("newer"), "four are left to files"
    assert breaker.has_room("")

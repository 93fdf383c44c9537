"""Small POSTs: persistent connections, endless responses, hosts that fail while more deliveries are claimed."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from fishweir import testing
from fishweir.delivery.host_queues import HostQueues
from fishweir.delivery.options import Options
from fishweir.delivery.outbox import Channel, Delivery
from fishweir.delivery.outputs import http_connections
from fishweir.delivery.outputs.http_connections import HttpConnections
from fishweir.delivery.retries import PER_HOST, CircuitBreaker
from fishweir.guard import Guard, GuardError
from tests.delivery.servers import Hooks, Posted
from tests.engine.helpers import wait_for

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


@contextmanager
def server(serve: Callable[[socket.socket, int], None]) -> Iterator[tuple[str, list[socket.socket]]]:
    """Passes each connection to a function, with its number."""
    accepted: list[socket.socket] = []

    def accept() -> None:
        with suppress(OSError):
            while True:
                accepted.append(listening.accept()[0])
                threading.Thread(target=serve, args=(accepted[-1], len(accepted)), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=accept, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}", accepted
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            for connection in accepted:
                connection.close()


def post(posts: HttpConnections, url: str) -> int:
    return posts.post(url, b"[]", {}, time.monotonic() + 600.0)[0]


@pytest.mark.parametrize(
    "answer",
    [OK, b"HTTP/1.1 204 No\r\n\r\n", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"],
)
def test_a_connection_is_used_again(answer: bytes) -> None:
    def serve(connection: socket.socket, _: int) -> None:
        while connection.recv(10_000):
            connection.sendall(answer)

    posts = HttpConnections(Guard(), 600.0)
    with server(serve) as (url, accepted):
        assert {post(posts, f"{url}/{i}") for i in range(5)} <= {200, 204}
        assert len(accepted) == 1


def test_a_connection_that_the_server_has_closed_is_not_used() -> None:
    def serve(connection: socket.socket, _: int) -> None:
        connection.recv(10_000)
        connection.sendall(OK)
        connection.shutdown(socket.SHUT_RDWR)

    posts = HttpConnections(Guard(), 600.0)
    with server(serve) as (url, accepted):
        for _ in range(3):
            assert post(posts, url) == 200
            kept = [one for some in posts._idle.values() for _, one in some]
            wait_for(lambda kept=kept: all(one.is_readable() for one in kept))
        assert len(accepted) == 3


@pytest.mark.parametrize("begun", [b"Content-Length: 9\r\n\r\nok", b"Transfer-Encoding: chunked\r\n\r\n9\r\nok"])
def test_acknowledged_even_if_the_response_does_not_end(begun: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_connections, "LINGER", 0.05)

    def serve(connection: socket.socket, _: int) -> None:
        connection.recv(10_000)
        connection.sendall(b"HTTP/1.1 200 OK\r\n" + begun)

    posts = HttpConnections(Guard(), 600.0)
    with server(serve) as (url, accepted):
        assert [post(posts, url), post(posts, url)] == [200, 200]
        assert len(accepted) == 2


def test_urls_are_sent_as_written() -> None:
    received: list[bytes] = []

    def serve(connection: socket.socket, _: int) -> None:
        received.append(connection.recv(10_000))
        connection.sendall(OK)

    with server(serve) as (url, _):
        post(HttpConnections(Guard(), 600.0), url.replace("://", "://me:a%20b@") + "/ä b?x=1&y=ü")
    assert received[0].startswith(b"POST /%C3%A4%20b?x=1&y=%C3%BC HTTP/1.1\r\n")
    assert b"\r\nAuthorization: Basic bWU6YSBi\r\n" in received[0]


def test_the_guard_is_asked_for_each_connection() -> None:
    with server(lambda *_: None) as (url, accepted), pytest.raises(GuardError, match=r"127\.0\.0\.1"):
        post(HttpConnections(Guard(on=True), 600.0), url)
    assert not accepted


def delivery(id: int, host: str = "h") -> Delivery:
    return Delivery(id, id, host, Channel(id, "http", (), None, "", Options()), 0, 1, 0, 1, None, 0.0)


def test_lanes_send_a_few_at_a_time_and_give_back_what_is_behind_a_failure() -> None:
    lanes = HostQueues()
    for id in range(PER_HOST + 3):
        lanes.put([delivery(id)])
    lanes.put([delivery(100, "other")])
    assert [lanes.take()[0].id for _ in range(PER_HOST + 1)] == [*range(PER_HOST), 100]  # type: ignore[index]
    assert lanes.done("h", good=True) == ([delivery(PER_HOST)], [], False), "two are left, and more may be"
    assert lanes.done("h", good=False) == (None, [[delivery(PER_HOST + 1)], [delivery(PER_HOST + 2)]], True)
    lanes.put([delivery(101)])
    assert lanes.take() == [delivery(101)], "there is room again"


def test_concurrent_failures_count_as_one_pause() -> None:
    breaker, now = CircuitBreaker(128), 1_000.0
    for _ in range(2 * PER_HOST):
        breaker.acquire("h")
    for _ in range(2 * PER_HOST):
        breaker.record("h", False, now)
    until = breaker.open_until("h", now)
    assert until is not None
    assert until <= now + 2, "as after five failures in a row"
    breaker.acquire("h")
    breaker.record("h", False, until)
    assert breaker.open_until("h", until + 1) is not None, "the pause grows with the next failure"


def test_a_host_that_fails_midway_gets_each_delivery_once(tmp_path: Path, hooks: Hooks) -> None:
    """After some responses, none arrives for a while: prefetched deliveries are released instead of tried in vain."""
    failing = threading.Event()

    def answer(_: Posted) -> int:
        if len(hooks.posted) == 20:
            failing.set()
        return 503 if failing.is_set() else 200

    hooks.answer = answer
    with testing.open(tmp_path / "home") as weir:
        weir.execute("create stream R (x int)")
        rows = [{"name": f"q{i}", "x": i} for i in range(100)]
        weir.register_many("create query $name as select x from R where x = $x", rows)
        weir.register_many(f"subscribe to $name output http '{hooks.url}/$x'", rows)
        weir.publish("R", [{"x": i} for i in range(100)])
        weir.start()
        wait_for(lambda: sum(one.status == 503 for one in hooks.posted) >= 5)
        failing.clear()
        hooks.answer = lambda _: 200
        wait_for(lambda: len(hooks.taken) == 100 and not weir.letters())
        weir.stop()
    assert sorted(one.path for one in hooks.taken) == sorted(f"/{i}" for i in range(100))
    assert sum(one.status == 503 for one in hooks.posted) <= 3 * PER_HOST

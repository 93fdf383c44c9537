"""The unsubscribe links of mails, from a real mailbox to a real POST: after it, no mail arrives."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest
from typer.testing import CliRunner

from fishweir.cli import app
from fishweir.delivery import unsubscribing
from fishweir.delivery.unsubscribing import MAX_BODY, Ticket, answering
from fishweir.errors import CannotWrite, QueryError
from fishweir.testing import Clock, Weir
from tests.delivery.servers import Mailbox

ONE_CLICK = b"List-Unsubscribe=One-Click"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
MULTIPART = b'--b\r\nContent-Disposition: form-data; name="List-Unsubscribe"\r\n\r\nOne-Click\r\n--b--\r\n'


@pytest.fixture
def service(weir: Weir, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with answering("0", weir._ticket, weir.unsubscribe) as server:
        place = f"http://127.0.0.1:{server.server_port}"
        monkeypatch.setenv("FISHWEIR_URL", f"{place}/mails")
        yield place


def ask(method: str, url: str, body: bytes | None = None, headers: dict[str, str] | None = None) -> tuple[int, str]:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=600)
    try:
        connection.request(method, parts.path, body, headers or {})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def link(mail: Any) -> str:
    return str(mail["List-Unsubscribe"].split(",")[0].strip(" <>"))


def publish(weir: Weir, *values: int) -> None:
    weir.publish("R", [{"x": value} for value in values])
    weir.step()


STATEMENTS = [
    "subscribe to big output mail 'me@example.org'",
    "create query own as select x from R where x > 5 do mail 'me@example.org'",
    "create query own as select x from R where x > 5 do MailTo me@example.org every 1 hour",
]


@pytest.mark.parametrize("statement", STATEMENTS)
def test_one_click_ends_the_mails(weir: Weir, clock: Clock, mailbox: Mailbox, service: str, statement: str) -> None:
    weir.execute(f"{statement}; subscribe to big output mail 'you@example.org'")

    def more(*values: int) -> list[str]:
        before = len(mailbox.mails)
        publish(weir, *values)
        clock.advance(3600)
        weir.step()
        return sorted(str(mail["To"]) for mail in mailbox.mails[before:])

    assert more(7) == ["me@example.org", "you@example.org"]
    (url,) = {link(mail) for mail in mailbox.mails if mail["To"] == "me@example.org"}
    status, page = ask("GET", url)
    assert (status, '<form method="post">' in page) == (200, True)
    assert ask("HEAD", url) == (200, "")
    assert more(8) == ["me@example.org", "you@example.org"], "a GET changes nothing"
    for _ in range(2):
        status, page = ask("POST", url, ONE_CLICK, FORM)
        assert (status, "You are unsubscribed" in page) == (200, True)
    assert more(9) == ["you@example.org"]
    assert "You are unsubscribed" in ask("GET", url)[1]


def test_waiting_and_paused_mails_are_not_sent_either(weir: Weir, clock: Clock, mailbox: Mailbox, service: str) -> None:
    weir.execute("subscribe to big output mail 'me@example.org' at most 1 per hour")
    publish(weir, 7)
    publish(weir, 8)
    assert (len(mailbox.mails), len(weir.letters())) == (1, 1)
    (subscription,) = weir.subscriptions()
    weir.pause(subscription.id)
    assert ask("POST", link(mailbox.mails[0]), ONE_CLICK, FORM)[0] == 200
    clock.advance(7200)
    publish(weir, 9)
    assert (len(mailbox.mails), weir.letters(), weir.subscriptions()) == (1, [], [])


def test_a_catalog_that_is_temporarily_not_writable(weir: Weir) -> None:
    def fail(token: str) -> None:
        raise CannotWrite(28, "the disk is full")

    with answering("0", lambda _: Ticket(["big"], True), fail) as server:
        url = f"http://127.0.0.1:{server.server_port}/unsubscribe/abcdefghijkl"
        assert ask("POST", url, ONE_CLICK, FORM)[0] == 503
        assert ask("GET", url)[0] == 200


def test_a_form_of_either_type(weir: Weir, mailbox: Mailbox, service: str) -> None:
    weir.execute("subscribe to big output mail 'me@example.org'")
    publish(weir, 7)
    headers = {"Content-Type": "multipart/form-data; boundary=b"}
    assert ask("POST", link(mailbox.mails[0]), MULTIPART, headers)[0] == 200
    publish(weir, 8)
    assert len(mailbox.mails) == 1


BAD: list[tuple[str, str, bytes | None, int]] = [
    ("POST", "", b"", 400),
    ("POST", "", b"List-Unsubscribe=Two-Clicks", 400),
    ("POST", "", b"\xff\x00&&==", 400),
    ("POST", "", ONE_CLICK + b"&x=" + b"x" * MAX_BODY, 413),
    ("POST", "wrong", ONE_CLICK, 404),
    ("GET", "wrong", None, 404),
    ("GET", "/" + "x" * 500, None, 404),
    ("GET", "%00", None, 404),
    ("PUT", "", ONE_CLICK, 501),
    ("DELETE", "", None, 501),
]


@pytest.mark.parametrize(("method", "more", "body", "status"), BAD)
def test_bad_requests_change_nothing(
    weir: Weir, mailbox: Mailbox, service: str, method: str, more: str, body: bytes | None, status: int
) -> None:
    weir.execute("subscribe to big output mail 'me@example.org'")
    publish(weir, 7)
    found, page = ask(method, link(mailbox.mails[0]) + more, body, FORM)
    assert found == status
    if status == 404:
        assert "This link is not valid" in page
    publish(weir, 8)
    assert len(mailbox.mails) == 2


@pytest.mark.parametrize("length", ["", "-1", "many", "99999999999999999999"])
def test_invalid_content_lengths(service: str, length: str) -> None:
    parts = urlsplit(service)
    with socket.create_connection((str(parts.hostname), parts.port or 0), timeout=600) as connection:
        head = f"POST /unsubscribe/abcdefghijkl HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n"
        connection.sendall(head.encode())
        assert connection.recv(12)[9:12] in (b"411", b"413")


def test_slow_clients_are_cut_off(service: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that sends a byte now and then, and one that sends nothing."""
    monkeypatch.setattr(unsubscribing, "LONGEST", 0.3)
    parts = urlsplit(service)
    for dribbles in (True, False):
        with socket.create_connection((str(parts.hostname), parts.port or 0), timeout=600) as connection:
            ended = threading.Event()

            def dribble(to: socket.socket, ended: threading.Event) -> None:
                while not ended.wait(0.02):
                    try:
                        to.sendall(b"G")
                    except OSError:
                        return

            thread = threading.Thread(target=dribble, args=(connection, ended))
            if dribbles:
                thread.start()
            try:
                while connection.recv(1000):
                    """It responds with an error or nothing, and closes."""
            except ConnectionError:
                pass
            ended.set()
            if dribbles:
                thread.join()
    assert ask("GET", f"{service}/unsubscribe/abcdefghijkl")[0] == 404


def test_the_number_of_connections_is_limited(service: str, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = urlsplit(service)
    place = str(parts.hostname), parts.port or 0
    held = [socket.create_connection(place, timeout=600) for _ in range(unsubscribing.MAX_CONNECTIONS)]
    with socket.create_connection(place, timeout=600) as connection:
        assert connection.recv(1) == b"", "it is closed at once"
    for one in held:
        one.close()

    def answers() -> bool:
        try:
            return ask("GET", f"{service}/unsubscribe/abcdefghijkl")[0] == 404
        except OSError:
            return False

    wait_for(answers)


def wait_for(holds: Callable[[], bool]) -> None:
    for _ in range(60_000):
        if holds():
            return
        threading.Event().wait(0.01)
    raise AssertionError("it never holds")


@contextmanager
def running(weir: Weir, at: str) -> Iterator[None]:
    weir.start(unsubscribe_at=at)
    try:
        yield
    finally:
        weir.stop()


def test_the_job_answers_while_it_runs(weir: Weir, mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    monkeypatch.setenv("FISHWEIR_URL", f"http://127.0.0.1:{port}")
    weir.execute("subscribe to big output mail 'me@example.org'")
    with running(weir, str(port)):
        weir.publish("R", [{"x": 7}])
        wait_for(lambda: len(mailbox.mails) == 1)
        assert ask("POST", link(mailbox.mails[0]), ONE_CLICK, FORM)[0] == 200
        weir.publish("R", [{"x": 8}])
        weir.wait_idle()
    assert len(list(weir.results("big"))) == 2
    assert len(mailbox.mails) == 1
    with pytest.raises(OSError):
        ask("GET", link(mailbox.mails[0]))


def test_invalid_addresses(weir: Weir, service: str) -> None:
    for at, reason in (("x", "not an address"), ("h:70000", "not an address"), (service[7:], "cannot listen on")):
        with pytest.raises(QueryError, match=reason):
            weir.run(until_idle=True, unsubscribe_at=at)
    said = CliRunner().invoke(app, ["run", "-", "--unsubscribe-at", "nowhere"])
    assert said.exit_code == 2
    assert "write PORT or HOST:PORT" in " ".join(said.output.replace("│", " ").split())

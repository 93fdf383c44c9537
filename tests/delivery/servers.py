"""Real servers that fail, hang and drop connections on request: one for HTTP, one for mail."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from aiosmtpd.controller import Controller


@dataclass
class Posted:
    path: str
    headers: dict[str, str]
    body: bytes
    status: int | str

    @property
    def key(self) -> str:
        return self.headers["idempotency-key"]

    @property
    def results(self) -> list[dict[str, Any]]:
        return json.loads(self.body)  # type: ignore[no-any-return]


@dataclass
class Hooks:
    """For each request, `answer` returns a status, "drop" to close the connection, or "hang" for no response."""

    url: str
    posted: list[Posted] = field(default_factory=list)
    answer: Callable[[Posted], int | str] = lambda _: 204
    headers: dict[str, str] = field(default_factory=dict)
    released: threading.Event = field(default_factory=threading.Event)

    @property
    def taken(self) -> list[Posted]:
        """The acknowledged requests."""
        return [one for one in self.posted if isinstance(one.status, int) and one.status < 300]


@contextmanager
def hook_server(port: int = 0) -> Iterator[Hooks]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            one = Posted(self.path, {k.lower(): v for k, v in self.headers.items()}, body, 0)
            one.status = hooks.answer(one)
            hooks.posted.append(one)
            if one.status == "hang":
                hooks.released.wait(600)
            if isinstance(one.status, str):
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            self.send_response(one.status)
            for name, value in hooks.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Suppresses log messages."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    hooks = Hooks(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield hooks
    finally:
        hooks.released.set()
        server.shutdown()
        server.server_close()
        thread.join()


class Mailbox:
    """`refuse` contains the responses to DATA for the next mails, one each; None accepts the mail. `refuse_recipient`
    is the response to every RCPT, unless it is None.
    """

    def __init__(self) -> None:
        self.mails: list[EmailMessage] = []
        self.recipients: list[str] = []
        self.refuse: list[str | None] = []
        self.refuse_recipient: str | None = None

    async def handle_RCPT(self, server, session, envelope, address, options) -> str:  # type: ignore[no-untyped-def]
        if self.refuse_recipient is not None:
            return self.refuse_recipient
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope) -> str:  # type: ignore[no-untyped-def]
        said = self.refuse.pop(0) if self.refuse else None
        if said is not None:
            return said
        mail = message_from_bytes(envelope.content, policy=policy.default)
        assert isinstance(mail, EmailMessage)
        self.mails.append(mail)
        self.recipients += envelope.rcpt_tos
        return "250 OK"


@contextmanager
def mail_server(**options: Any) -> Iterator[tuple[Mailbox, str]]:
    box = Mailbox()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    controller = Controller(box, hostname="127.0.0.1", port=port, **options)
    controller.start()
    try:
        yield box, f"127.0.0.1:{port}"
    finally:
        controller.stop()


@contextmanager
def dripping_server() -> Iterator[str]:
    """A web server that responds with one byte every 50 ms, forever."""
    ended = threading.Event()

    def drip(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.sendall(b"HTTP/1.1 200 OK\r\n")
            while not ended.wait(0.05):
                connection.sendall(b"X")

    def accept() -> None:
        with suppress(OSError):
            while not ended.is_set():
                threading.Thread(target=drip, args=(listening.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=accept, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            ended.set()
            listening.shutdown(socket.SHUT_RDWR)

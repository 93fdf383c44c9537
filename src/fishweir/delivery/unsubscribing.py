"""The service that answers the unsubscribe links of mails, `<FISHWEIR_URL>/unsubscribe/TOKEN`.

In: an address to listen on, and two functions: one looks up a token, the other ends its subscription. A POST with
`List-Unsubscribe=One-Click` unsubscribes (RFC 8058). A GET only shows a page with a button, because mail scanners
follow links. Both may be repeated. Tokens are random, with 144 bits, and stored in the catalog (`channels.token`), so
they need no signature and cannot be guessed. Encryption is left to a reverse proxy.

The size and the duration of a request and the number of connections are limited: strangers can reach the service.
"""

from __future__ import annotations

import html
import logging
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from email.message import Message
from email.parser import BytesParser
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from fishweir.errors import QueryError

logger = logging.getLogger("fishweir.delivery")

MAX_BODY = 4096
PATIENCE, LONGEST = 10.0, 30.0
"""Seconds for each read, and for a whole request."""
MAX_CONNECTIONS = 32
_PATH = re.compile(r"(?:/.*)?/unsubscribe/([A-Za-z0-9_-]{8,64})/?")
_PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width"></head><body><h1>{title}</h1><p>{text}</p>{form}</body></html>
"""
_FORM = """<form method="post"><button name="List-Unsubscribe" value="One-Click">Unsubscribe</button></form>"""
_HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; form-action 'self'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Robots-Tag": "noindex",
}


class Ticket(NamedTuple):
    """The subscription of a token: the subscribed names, and whether they are still delivered."""

    feeds: list[str]
    is_active: bool


class _Handler(BaseHTTPRequestHandler):
    server: UnsubscribeServer
    timeout = PATIENCE
    server_version, sys_version = "fishweir", ""

    def do_GET(self) -> None:
        if (ticket := self._ticket()) is None:
            return
        names = html.escape(", ".join(ticket.feeds))
        if ticket.is_active:
            self._answer(HTTPStatus.OK, "Unsubscribe?", f"You will get no more mails about {names}.", _FORM)
        else:
            self._confirm(names)

    do_HEAD = do_GET

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not length.isascii() or not length.isdigit():
            self._answer(HTTPStatus.LENGTH_REQUIRED, "Bad request", "The request has no valid length.")
        elif int(length) > MAX_BODY:
            self._answer(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "Bad request", "The request is too large.")
        elif not _is_one_click(self.headers, self.rfile.read(int(length))):
            self._answer(HTTPStatus.BAD_REQUEST, "Bad request", "Expected List-Unsubscribe=One-Click.")
        elif (ticket := self._ticket()) is not None:
            if ticket.is_active:
                self.server.end(self._token())
            self._confirm(html.escape(", ".join(ticket.feeds)))

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except Exception:  # the user gets a response in any case
            logger.warning("a request to unsubscribe failed", exc_info=True)
            self._answer(HTTPStatus.SERVICE_UNAVAILABLE, "Not now", "Please try again in a few minutes.")

    def _token(self) -> str:
        found = _PATH.fullmatch(urlsplit(self.path).path)
        return found[1] if found else ""

    def _ticket(self) -> Ticket | None:
        """The ticket of the link; if there is none, sends an error page and returns None."""
        token = self._token()
        ticket = self.server.look_up(token) if token else None
        if ticket is None:
            text = "It may be incomplete, or the subscription is on another server. Use the link in a recent mail."
            self._answer(HTTPStatus.NOT_FOUND, "This link is not valid", text)
        return ticket

    def _confirm(self, names: str) -> None:
        self._answer(HTTPStatus.OK, "You are unsubscribed", f"You will get no more mails about {names}.")

    def _answer(self, status: HTTPStatus, title: str, text: str, form: str = "") -> None:
        body = _PAGE.format(title=title, text=text, form=form).encode()
        self.send_response(status)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def setup(self) -> None:
        super().setup()
        self._late = threading.Timer(LONGEST, self._give_up)
        self._late.daemon = True
        self._late.start()

    def finish(self) -> None:
        self._late.cancel()
        with suppress(OSError):
            super().finish()

    def _give_up(self) -> None:
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, format: str, *values: Any) -> None:
        """Logs nothing: paths contain tokens."""


class UnsubscribeServer(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(
        self, at: tuple[str, int], look_up: Callable[[str], Ticket | None], end: Callable[[str], object]
    ) -> None:
        self.look_up, self.end = look_up, end
        self._room = threading.BoundedSemaphore(MAX_CONNECTIONS)
        self.address_family = socket.AF_INET6 if ":" in at[0] else socket.AF_INET
        super().__init__(at, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._room.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        logger.info("a request to unsubscribe failed", exc_info=True)


@contextmanager
def answering(
    at: str, look_up: Callable[[str], Ticket | None], end: Callable[[str], object]
) -> Iterator[UnsubscribeServer]:
    """Serves requests in a thread. `at` is `[HOST:]PORT`; by default, only this machine can connect."""
    try:
        server = UnsubscribeServer(parse_address(at), look_up, end)
    except OSError as error:
        raise QueryError(f"cannot listen on {at} for unsubscribing: {error.strerror or error}") from error
    thread = threading.Thread(target=server.serve_forever, name="fishweir_unsubscribing", daemon=True)
    thread.start()
    logger.info("serving unsubscribe links on %s, port %d", *server.server_address[:2])
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def parse_address(at: str) -> tuple[str, int]:
    host, _, port = at.rpartition(":")
    if not (port.isascii() and port.isdigit() and int(port) < 65536):
        raise QueryError(f"'{at}' is not an address to listen on: write PORT or HOST:PORT")
    return host.strip("[]") or "127.0.0.1", int(port)


def _is_one_click(headers: Message, body: bytes) -> bool:
    """Whether the body is `List-Unsubscribe=One-Click`, as a form of either type."""
    kind = str(headers.get("Content-Type", ""))
    if kind.lower().startswith("multipart/form-data"):
        parts = BytesParser().parsebytes(b"Content-Type: " + kind.encode("latin-1", "replace") + b"\r\n\r\n" + body)
        fields = {part.get_param("name", header="content-disposition"): part for part in parts.walk()}
        field = fields.get("List-Unsubscribe")
        payload = field.get_payload(decode=True) if field is not None else b""
        return isinstance(payload, bytes) and payload.strip() == b"One-Click"
    return parse_qs(body.decode("latin-1")).get("List-Unsubscribe") == ["One-Click"]

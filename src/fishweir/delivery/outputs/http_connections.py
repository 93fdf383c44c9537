"""POSTs over persistent connections, since setting up connections dominates the cost of small POSTs.

A request is one write, whose head is constructed once per URL; the standard library reads the response.

In: a URL, a body and headers. Out: the status and the headers of the response. A connection returns to the pool once a
short response has been read to its end; longer responses are not read. All steps of a request end by its deadline, even
if a server sends a byte now and then. With the guard on, connections go to checked addresses.
"""

from __future__ import annotations

import base64
import http.client
import io
import select
import socket
import threading
import time
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from email.message import Message
from functools import cache, lru_cache
from ssl import SSLContext
from typing import Any, NamedTuple
from urllib.parse import quote, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from fishweir.guard import Guard

IDLE, MAX_IDLE = 30.0, 100
"""Seconds for which an open connection is kept for its next use, and the maximum number of such connections."""
SHORT = 1 << 16
"""The maximum number of bytes of a response that are read to reuse the connection."""
LINGER = 1.0
"""Seconds for reading such a response after its head."""
_SAFE = "%/:=&?~#+!$,;'@()*[]"


class _Place(NamedTuple):
    """The destination of a URL: the parameters of a connection, and the beginning of each request."""

    secure: bool
    host: str
    port: int
    head: bytes


class HttpConnections:
    """Open connections, shared by all threads; each is used by one thread at a time."""

    def __init__(self, guard: Guard, patience: float) -> None:
        self.guard, self.patience = guard, patience
        self._idle: dict[tuple[bool, str, int], list[tuple[float, _Connection]]] = defaultdict(list)
        self._lock = threading.Lock()
        self._count = 0

    def post(self, url: str, body: bytes, headers: Mapping[str, str], end: float) -> tuple[int, Message]:
        """Status and headers of the response, which must arrive by `end` on the monotonic clock."""
        place = _place(url)
        connection = self._acquire(place) or _Connection(place, self.guard)
        connection.end, connection.patience = end, self.patience
        is_open = False
        try:
            connection.send(place.head + _head(headers, len(body)) + body)
            answer = connection.answer()
            is_open = connection.is_reusable_after(answer)
            return answer.status, answer.headers
        finally:
            if is_open:
                self._release(place, connection)
            else:
                connection.close()

    def _acquire(self, place: _Place) -> _Connection | None:
        """An open connection that the server has not closed in the meantime."""
        while True:
            with self._lock:
                idle = self._idle[place[:3]]
                if not idle:
                    del self._idle[place[:3]]
                    return None
                since, connection = idle.pop()
                self._count -= 1
            if time.monotonic() - since < IDLE and not connection.is_readable():
                return connection
            connection.close()

    def _release(self, place: _Place, connection: _Connection) -> None:
        with self._lock:
            if self._count < MAX_IDLE:
                self._idle[place[:3]].append((time.monotonic(), connection))
                self._count += 1
                return
            oldest = min(self._idle, key=lambda key: self._idle[key][0][0])
            old = self._idle[oldest].pop(0)[1]
            if not self._idle[oldest]:
                del self._idle[oldest]
            self._idle[place[:3]].append((time.monotonic(), connection))
        old.close()


class _Connection:
    def __init__(self, place: _Place, guard: Guard) -> None:
        self.place, self.guard = place, guard
        self.end = self.patience = 0.0
        self.plain: socket.socket | None = None

    def send(self, request: bytes) -> None:
        plain = self.plain or self._connect()
        plain.settimeout(self.left())
        plain.sendall(request)

    def _connect(self) -> socket.socket:
        place = self.place
        self.plain = self.guard.connect(place.host, place.port, self.left())
        self.plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if place.secure:
            self.plain.settimeout(self.left())
            self.plain = _context().wrap_socket(self.plain, server_hostname=place.host)
        return self.plain

    def answer(self) -> http.client.HTTPResponse:
        answer = http.client.HTTPResponse(self, method="POST")  # type: ignore[arg-type]  # it needs only `makefile`
        answer.begin()
        return answer

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(_Reader(self))

    def left(self) -> float:
        """Seconds left for the next step."""
        left = self.end - time.monotonic()
        if left <= 0:
            raise TimeoutError("the request takes too long")
        return min(left, self.patience)

    def close(self) -> None:
        if self.plain is not None:
            self.plain.close()

    def is_reusable_after(self, answer: http.client.HTTPResponse) -> bool:
        """Reads the rest of a short response and returns whether the connection can be reused. The status is already
        known, so later errors do not make the delivery fail.
        """
        if answer.will_close or (answer.length is not None and answer.length > SHORT):
            return False
        self.end = min(self.end, time.monotonic() + LINGER)
        with suppress(OSError, http.client.HTTPException):
            answer.read(SHORT + 1)
        return answer.isclosed()

    def is_readable(self) -> bool:
        """Whether data can be read without a request: most likely the end of the connection."""
        poll = select.poll()
        poll.register(self.plain, select.POLLIN)  # type: ignore[arg-type]  # it has been used
        return bool(poll.poll(0))


class _Reader(io.RawIOBase):
    """Reads a response, each step within the remaining time."""

    def __init__(self, of: _Connection) -> None:
        self.of = of

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        assert self.of.plain is not None
        self.of.plain.settimeout(self.of.left())
        return self.of.plain.recv_into(buffer)


@lru_cache(maxsize=10_000)
def _place(url: str) -> _Place:
    parts = urlsplit(url)
    secure = parts.scheme.lower() == "https"
    host = (parts.hostname or "").encode("idna").decode() if not (parts.hostname or "").isascii() else parts.hostname
    target = quote(parts.path or "/", _SAFE) + (f"?{quote(parts.query, _SAFE)}" if parts.query else "")
    port, usual = parts.port, 443 if secure else 80
    named = f"[{host}]" if ":" in (host or "") else host
    headers = {"Host": named if port in (None, usual) else f"{named}:{port}", "User-Agent": "Fishweir", "Accept": "*/*"}
    if parts.username is not None:
        credentials = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers["Authorization"] = f"Basic {base64.b64encode(credentials.encode()).decode()}"
    lines = [f"POST {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), ""]
    return _Place(secure, host or "", port or usual, "\r\n".join(lines).encode("ascii"))


def _head(headers: Mapping[str, str], size: int) -> bytes:
    lines = [f"{name}: {value}\r\n" for name, value in headers.items()]
    return f"{''.join(lines)}Content-Length: {size}\r\n\r\n".encode("ascii")


@cache
def _context() -> SSLContext:
    import httpx

    return httpx.create_ssl_context()  # the certificate authorities that all requests of this program trust


def has_proxy(url: str) -> bool:
    """Whether the environment names a proxy for a URL."""
    place = _place(url)
    return _has_proxy("https" if place.secure else "http", place.host)


@lru_cache(maxsize=1_000)
def _has_proxy(scheme: str, host: str) -> bool:
    proxies = getproxies()
    proxy = proxies.get(scheme) or proxies.get("all")
    return bool(proxy) and not proxy_bypass(host)

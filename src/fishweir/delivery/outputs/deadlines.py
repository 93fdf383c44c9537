"""A time limit for whole requests: httpx limits only each step, so a server that sends a byte now and then could take
forever.

In: a client, and the seconds for the requests of a thread (`within`). Every step of a connection gets the remaining
time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpcore
import httpx

_limit = threading.local()


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """A context in which the requests of this thread end after `seconds`."""
    _limit.end = time.monotonic() + seconds
    try:
        yield
    finally:
        del _limit.end


def limited(client: httpx.Client) -> httpx.Client:
    """The client, with connections that respect the time limits of the threads that use them."""
    for transport in (client._transport, *client._mounts.values()):
        pool: Any = getattr(transport, "_pool", None)
        if pool is not None:
            pool._network_backend = _Backend(pool._network_backend)
    return client


def _left(timeout: float | None, late: type[Exception]) -> float | None:
    end = getattr(_limit, "end", None)
    if end is None:
        return timeout
    left = end - time.monotonic()
    if left <= 0:
        raise late("the request takes too long")
    return float(left if timeout is None else min(timeout, left))


class _Backend(httpcore.NetworkBackend):
    def __init__(self, plain: httpcore.NetworkBackend) -> None:
        self.plain = plain

    def connect_tcp(self, host: str, port: int, timeout: float | None = None, *rest: Any, **more: Any) -> Any:
        patience = _left(timeout, httpcore.ConnectTimeout)
        return _Stream(self.plain.connect_tcp(host, port, patience, *rest, **more))

    def sleep(self, seconds: float) -> None:
        self.plain.sleep(seconds)


class _Stream(httpcore.NetworkStream):
    def __init__(self, plain: httpcore.NetworkStream) -> None:
        self.plain = plain

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self.plain.read(max_bytes, _left(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self.plain.write(buffer, _left(timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        self.plain.close()

    def start_tls(self, context: Any, server_hostname: str | None = None, timeout: float | None = None) -> Any:
        return _Stream(self.plain.start_tls(context, server_hostname, _left(timeout, httpcore.ConnectTimeout)))

    def get_extra_info(self, info: str) -> Any:
        return self.plain.get_extra_info(info)

"""Fetching: one event loop in a thread of its own gets all URLs, so that a slow server holds up nobody.

In: a URL and what is known of its last version. Out: a future of a Response; an error is a FetchError
that says what is wrong in words. Time, redirects and size are limited. A user and a password in the URL are sent to
its server only; a Response and an error do not have them.
"""

from __future__ import annotations

import asyncio
import os
import stat
import threading
import time
from collections.abc import Coroutine
from concurrent.futures import Future
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import TypeVar

import httpx

from fishweir.intake.sources.addresses import credentials, file_of, is_url, without_credentials

TIMEOUT, REDIRECTS, LARGEST, AT_ONCE = 30.0, 5, 16 * 1024 * 1024, 32
HEADERS = {
    "user-agent": "fishweir (feed reader)",
    "accept": "application/rss+xml, application/atom+xml, application/rdf+xml, application/xml;q=0.9, */*;q=0.8",
}

KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFDIR: "a folder",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
T = TypeVar("T")


class FetchError(Exception):
    """A URL that could not be read; `wait` are the seconds that its server asks for."""

    def __init__(self, reason: str, wait: float = 0.0) -> None:
        super().__init__(reason)
        self.wait = wait


@dataclass(frozen=True, slots=True)
class Response:
    """`body` None means: as before. `version` is what tells the next fetch so."""

    body: bytes | None
    version: dict[str, str] = field(default_factory=dict)
    url: str = ""
    content_type: str = ""


def begin(work: Coroutine[object, object, T]) -> Future[T]:
    """Runs a coroutine in the thread that fetches."""
    return asyncio.run_coroutine_threadsafe(work, _loop())


async def fetch(place: str, version: dict[str, str], timeout: float = TIMEOUT) -> Response:
    """Gets a URL or a file; `version` is that of the Response before, or empty."""
    if is_url(place):
        return await _get(place, version, timeout)
    try:
        return _read(file_of(place), version)
    except OSError as error:
        raise FetchError(error.strerror or str(error)) from None


def _read(path: str, version: dict[str, str]) -> Response:
    _check_kind(os.stat(path))
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
        found = os.fstat(file.fileno())
        _check_kind(found)  # again: it may be another file by now
        now = {"file": f"{found.st_mtime_ns} {found.st_size}"}
        if now == version:
            return Response(None, version)
        body = file.read(LARGEST + 1)
    if len(body) > LARGEST:
        raise FetchError(f"it has more than {LARGEST:,} bytes")
    return Response(body, now, path)


def _check_kind(found: os.stat_result) -> None:
    """Opening or reading anything but a regular file may wait forever."""
    if not stat.S_ISREG(found.st_mode):
        raise FetchError(f"it is {KINDS.get(stat.S_IFMT(found.st_mode), 'something else')}, not a regular file")


async def _get(url: str, version: dict[str, str], timeout: float) -> Response:
    known = {"if-none-match": version.get("etag"), "if-modified-since": version.get("modified")}
    headers = {**HEADERS, **{name: value for name, value in known.items() if value}}
    try:
        # The client logs the URL of each request.
        getting = _client().stream(
            "GET", without_credentials(url), headers=headers, timeout=timeout, auth=credentials(url)
        )
        async with _limit(), asyncio.timeout(timeout), getting as response:
            return await _response(response, version)
    except TimeoutError:
        raise FetchError(f"no answer within {timeout:g} s") from None
    except httpx.TooManyRedirects:
        raise FetchError(f"more than {REDIRECTS} redirects") from None
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        raise FetchError(f"{type(error).__name__}: {error}".rstrip(": ")) from None


async def _response(response: httpx.Response, version: dict[str, str]) -> Response:
    if response.status_code == 304:
        return Response(None, version)
    if not response.is_success:
        reason = f"the server answers {response.status_code} {response.reason_phrase}".rstrip()
        raise FetchError(reason, _wait(response.headers))
    body = bytearray()
    async for part in response.aiter_bytes():
        body += part
        if len(body) > LARGEST:
            raise FetchError(f"it has more than {LARGEST:,} bytes")
    named = {"etag": response.headers.get("etag"), "modified": response.headers.get("last-modified")}
    kept = {name: value for name, value in named.items() if value}
    url = without_credentials(str(response.url))
    return Response(bytes(body), kept, url, response.headers.get("content-type", ""))


def _wait(headers: httpx.Headers) -> float:
    """The seconds that Retry-After asks for, as a number or as a date by the server's clock."""
    given = headers.get("retry-after", "").strip()
    if given.isdecimal():
        return float(given)
    then, now = _moment(given), _moment(headers.get("date", ""))
    return 0.0 if then is None else max(then - (time.time() if now is None else now), 0.0)


def _moment(date: str) -> float | None:
    try:
        return parsedate_to_datetime(date).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None


@lru_cache(maxsize=1)
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="fishweir fetch", daemon=True).start()
    return loop


@lru_cache(maxsize=1)
def _client() -> httpx.AsyncClient:
    """One for all: each has certificates to load."""
    return httpx.AsyncClient(follow_redirects=True, max_redirects=REDIRECTS)


@lru_cache(maxsize=1)
def _limit() -> asyncio.Semaphore:
    """Called within the loop."""
    return asyncio.Semaphore(AT_ONCE)

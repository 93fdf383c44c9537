"""Fetching: one event loop in a separate thread fetches all URLs, so a slow server delays no other source.

In: a URL and the validators of its last version. Out: a future of a Response; errors are raised as FetchError with a
readable message. Time, redirects, size (before and after decompression) and the request rate per host are limited. User
and password in the URL are sent only to its server; a Response or an error does not contain them.
"""

from __future__ import annotations

import asyncio
import os
import stat
import threading
import time
from collections.abc import Coroutine
from concurrent.futures import Future
from dataclasses import field, replace
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import TypeVar
from urllib.parse import urljoin

import httpx

from fishweir.guard import Guard, refusal
from fishweir.intake.sources.addresses import credentials, file_of, is_url, server_of, without_credentials
from fishweir.intake.sources.decode import CODINGS, decoded
from fishweir.intake.sources.hosts import HOSTS
from fishweir.records import dataclass

TIMEOUT, REDIRECTS, LARGEST, AT_ONCE = 30.0, 5, 16 * 1024 * 1024, 32
HEADERS = {
    "user-agent": "fishweir (feed reader)",
    "accept": "application/rss+xml, application/atom+xml, application/feed+json, application/rdf+xml, "
    "application/xml;q=0.9, */*;q=0.8",
    "accept-encoding": CODINGS,
}
REDIRECTED, PERMANENT = (301, 302, 303, 307, 308), (301, 308)
GONE, BUSY = 410, (429, 503)

KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFDIR: "a folder",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
UNGUARDED = Guard()
T = TypeVar("T")


class FetchError(Exception):
    """A URL that could not be read; `wait` is the delay in seconds that the server requests, `status` the status
    code."""

    def __init__(self, reason: str, wait: float = 0.0, status: int = 0) -> None:
        super().__init__(reason)
        self.wait, self.status = wait, status


@dataclass(frozen=True, slots=True)
class Response:
    """`body` None means unchanged. `version` is the validator for the next request; `moved` is the target of a
    permanent redirect."""

    body: bytes | None
    version: dict[str, str] = field(default_factory=dict)
    url: str = ""
    content_type: str = ""
    moved: str | None = None


def submit(work: Coroutine[object, object, T]) -> Future[T]:
    """Runs a coroutine in the thread that fetches."""
    return asyncio.run_coroutine_threadsafe(work, _loop())


async def fetch(place: str, version: dict[str, str], timeout: float = TIMEOUT, guard: Guard = UNGUARDED) -> Response:
    """Gets a URL or a file; `version` is that of the previous Response, or empty."""
    if is_url(place):
        return await _get(place, version, timeout, guard)
    try:
        return _read(file_of(place), version)
    except OSError as error:
        raise FetchError(error.strerror or str(error)) from None


def _read(path: str, version: dict[str, str]) -> Response:
    _check_kind(os.stat(path))
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
        found = os.fstat(file.fileno())
        _check_kind(found)  # again: the path may refer to another file by now
        now = {"file": f"{found.st_mtime_ns} {found.st_size}"}
        if now == version:
            return Response(None, version)
        body = file.read(LARGEST + 1)
    if len(body) > LARGEST:
        raise FetchError(f"it is larger than {LARGEST:,} bytes")
    try:
        return Response(decoded(body, "", LARGEST), now, path)
    except ValueError as error:
        raise FetchError(str(error)) from None


def _check_kind(found: os.stat_result) -> None:
    """Rejects everything but regular files: opening or reading anything else may block forever."""
    if not stat.S_ISREG(found.st_mode):
        raise FetchError(f"it is {KINDS.get(stat.S_IFMT(found.st_mode), 'something else')}, not a regular file")


async def _get(url: str, version: dict[str, str], timeout: float, guard: Guard) -> Response:
    """Follows redirects explicitly: permanent ones must be recognized, and each hop has its own host."""
    here, moved = without_credentials(url), None
    permanent = True
    for _ in range(REDIRECTS + 1):
        auth = credentials(url) if server_of(here) == server_of(url) else None
        answer = await _ask(here, version, auth, timeout, guard)
        if isinstance(answer, Response):
            return replace(answer, moved=moved)
        here, status = without_credentials(urljoin(here, answer[0])), answer[1]
        permanent = permanent and status in PERMANENT
        moved = here if permanent else moved
    raise FetchError(f"more than {REDIRECTS} redirects")


async def _ask(
    url: str, version: dict[str, str], auth: tuple[str, str] | None, timeout: float, guard: Guard
) -> Response | tuple[str, int]:
    """The response of one server, or the target and status of a redirect."""
    if not is_url(url):
        raise FetchError(f"it is redirected to {url}, which is neither http nor https")
    name, loop = server_of(url), asyncio.get_running_loop()
    validators = {"if-none-match": version.get("etag"), "if-modified-since": version.get("modified")}
    headers = {**HEADERS, **{header: value for header, value in validators.items() if value}}
    await asyncio.sleep(HOSTS.turn(name, loop.time()))
    try:
        getting = _client(guard).stream("GET", url, headers=headers, timeout=timeout, auth=auth)
        async with HOSTS.of(name).open, _limit(), asyncio.timeout(timeout), getting as response:
            return await _response(response, version)
    except TimeoutError:
        raise FetchError(f"no response within {timeout:g} s") from None
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        refused = refusal(error)
        raise FetchError(str(refused or f"{type(error).__name__}: {error}".rstrip(": "))) from None


async def _response(response: httpx.Response, version: dict[str, str]) -> Response | tuple[str, int]:
    status, url = response.status_code, without_credentials(str(response.url))
    if status in REDIRECTED and "location" in response.headers:
        return response.headers["location"], status
    if status == 304:
        return Response(None, version, url)
    if not response.is_success:
        reason = f"the server answered {status} {response.reason_phrase}".rstrip()
        raise FetchError(reason, _wait(response.headers), status)
    body = bytearray()
    async for part in response.aiter_raw():
        body += part
        if len(body) > LARGEST:
            raise FetchError(f"it is larger than {LARGEST:,} bytes")
    try:
        content = decoded(bytes(body), response.headers.get("content-encoding", ""), LARGEST)
    except ValueError as error:
        raise FetchError(str(error)) from None
    named = {"etag": response.headers.get("etag"), "modified": response.headers.get("last-modified")}
    present = {name: value for name, value in named.items() if value}
    return Response(content, present, url, response.headers.get("content-type", ""))


def _wait(headers: httpx.Headers) -> float:
    """The delay in seconds from Retry-After, given as a number or as a date according to the server's clock."""
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


@lru_cache(maxsize=2)
def _client(guard: Guard) -> httpx.AsyncClient:
    """The shared client: each client would load the certificates again."""
    return guard.async_client()


@lru_cache(maxsize=1)
def _limit() -> asyncio.Semaphore:
    """The limit on concurrent requests. Called within the loop."""
    return asyncio.Semaphore(AT_ONCE)

"""Fetching: one event loop in a thread of its own gets all URLs, so that a slow server holds up nobody.

In: a URL and what is known of its last version. Out: a future of a Response; an error is a FetchError
that says what is wrong in words. Time, redirects and size are limited.
"""

from __future__ import annotations

import asyncio
import os
import threading
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import lru_cache

import httpx

from fishweir.intake.sources.addresses import file_of, is_url

TIMEOUT, REDIRECTS, LARGEST, AT_ONCE = 30.0, 5, 16 * 1024 * 1024, 32
HEADERS = {
    "user-agent": "fishweir (feed reader)",
    "accept": "application/rss+xml, application/atom+xml, application/rdf+xml, application/xml;q=0.9, */*;q=0.8",
}


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


def fetch(place: str, version: dict[str, str], timeout: float = TIMEOUT) -> Future[Response]:
    """Begins to get a URL or a file; `version` is that of the Response before, or empty."""
    if is_url(place):
        return asyncio.run_coroutine_threadsafe(_get(place, version, timeout), _loop())
    done: Future[Response] = Future()
    try:
        done.set_result(_read(file_of(place), version))
    except (OSError, FetchError) as error:
        reason = error.strerror or str(error) if isinstance(error, OSError) else str(error)
        done.set_exception(FetchError(reason))
    return done


def _read(path: str, version: dict[str, str]) -> Response:
    with open(path, "rb") as file:
        found = os.fstat(file.fileno())
        now = {"file": f"{found.st_mtime_ns} {found.st_size}"}
        if now == version:
            return Response(None, version)
        body = file.read(LARGEST + 1)
    if len(body) > LARGEST:
        raise FetchError(f"it has more than {LARGEST:,} bytes")
    return Response(body, now, path)


async def _get(url: str, version: dict[str, str], timeout: float) -> Response:
    known = {"if-none-match": version.get("etag"), "if-modified-since": version.get("modified")}
    headers = {**HEADERS, **{name: value for name, value in known.items() if value}}
    try:
        getting = _client().stream("GET", url, headers=headers, timeout=timeout)
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
        wait = response.headers.get("retry-after", "")
        raise FetchError(
            f"the server answers {response.status_code} {response.reason_phrase}".rstrip(),
            float(wait) if wait.isdecimal() else 0.0,
        )
    body = bytearray()
    async for part in response.aiter_bytes():
        body += part
        if len(body) > LARGEST:
            raise FetchError(f"it has more than {LARGEST:,} bytes")
    named = {"etag": response.headers.get("etag"), "modified": response.headers.get("last-modified")}
    kept = {name: value for name, value in named.items() if value}
    return Response(bytes(body), kept, str(response.url), response.headers.get("content-type", ""))


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

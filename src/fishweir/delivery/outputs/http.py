"""`http 'URL'`: POSTs a JSON array of results; a 2xx response acknowledges it.

The header `Idempotency-Key` is the same in every attempt of a delivery. With `secret NAME`, the request is signed
according to Standard Webhooks: HMAC-SHA256 of id, timestamp and body. Redirects are not followed, and responses longer
than a few words are not read. If the environment names a proxy, httpx uses it.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import time
from collections.abc import Sequence
from email.utils import parsedate_to_datetime
from functools import cache, lru_cache
from http.client import HTTPException
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from fishweir.delivery.options import BadArgument, secret, without_secrets
from fishweir.delivery.outputs.http_connections import HttpConnections, has_proxy
from fishweir.delivery.payload import NotDelivered, NotRewindable, Payload
from fishweir.guard import Guard, GuardError

if TYPE_CHECKING:
    import httpx

PATIENCE, LONGEST = 10.0, 30.0
"""Seconds for connecting and for each step of sending and responding; and for a whole request."""
_SPACE = re.compile(r"\s")
_ORIGIN = re.compile(r"https?://[^/?#\s]*", re.IGNORECASE)


class Http(NotRewindable):
    at_once = 1_000
    secret: str | None = None
    guard = Guard()

    def __init__(self, url: str) -> None:
        self.url = url

    @staticmethod
    def check(arguments: Sequence[str]) -> None:
        check_url(arguments[0])

    @staticmethod
    def place(arguments: Sequence[str]) -> tuple[str, str]:
        return f"http:{arguments[0]}", host_of(arguments[0])

    def deliver(self, results: Payload) -> None:
        body = f"[{','.join(results.texts)}]".encode()
        headers = {"Content-Type": "application/json", "Idempotency-Key": results.key, **self._signed(results, body)}
        by_proxy = not self.guard.on and has_proxy(self.url)
        status, after = (self._by_proxy if by_proxy else self._post)(body, headers)
        if not 200 <= status < 300:
            raise NotDelivered(f"the server answered {status}", after=_seconds(after))

    def _post(self, body: bytes, headers: dict[str, str]) -> tuple[int, str | None]:
        try:
            status, reply = _posting(self.guard).post(self.url, body, headers, time.monotonic() + LONGEST)
        except TimeoutError as error:
            raise NotDelivered(f"ReadTimeout: {error}") from error
        except (HTTPException, GuardError, OSError, ValueError) as error:
            raise NotDelivered(f"{type(error).__name__}: {error}") from error
        return status, reply.get("Retry-After")

    def _by_proxy(self, body: bytes, headers: dict[str, str]) -> tuple[int, str | None]:
        import httpx

        from fishweir.delivery.outputs.deadlines import within

        try:
            with (
                within(LONGEST),
                client(self.guard).stream("POST", self.url, content=body, headers=headers) as answer,
            ):
                return answer.status_code, answer.headers.get("Retry-After")
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise NotDelivered(f"{type(error).__name__}: {error}") from error

    def _signed(self, results: Payload, body: bytes) -> dict[str, str]:
        if self.secret is None:
            return {}
        stamp = str(int(time.time()))
        signed = b".".join([results.key.encode(), stamp.encode(), body])
        digest = hmac.new(_signing_key(secret(self.secret)), signed, hashlib.sha256).digest()
        return {
            "Webhook-Id": results.key,
            "Webhook-Timestamp": stamp,
            "Webhook-Signature": f"v1,{base64.b64encode(digest).decode()}",
        }


def _signing_key(given: str) -> bytes:
    """The key for a secret. Secrets with the prefix `whsec_` are base64 (Standard Webhooks), others are used as is."""
    try:
        return (
            base64.b64decode(given.removeprefix("whsec_"), validate=True)
            if given.startswith("whsec_")
            else given.encode()
        )
    except ValueError:
        return given.encode()


@cache
def _posting(guard: Guard) -> HttpConnections:
    return HttpConnections(guard, PATIENCE)


@cache
def client(guard: Guard) -> httpx.Client:
    import httpx

    from fishweir.delivery.outputs.deadlines import limited

    limits = httpx.Limits(max_connections=200, max_keepalive_connections=100, keepalive_expiry=30.0)
    agent = {"User-Agent": "Fishweir"}
    return limited(guard.client(timeout=PATIENCE, limits=limits, follow_redirects=False, headers=agent))


def check_url(url: str) -> None:
    """Raises BadArgument if a URL can never accept a POST."""
    shown = without_secrets(url)
    host, has_password = _host(_origin(shown))
    if not host or _SPACE.search(shown):
        raise BadArgument(url, f"'{url}' is not an HTTP URL")
    if has_password and "{secret" not in url:
        raise BadArgument(url, "the URL contains a password; use {secret NAME} instead")


def host_of(url: str) -> str:
    return _host(_origin(without_secrets(url)))[0]


def _origin(url: str) -> str:
    """The URL up to its path: most users of a service have URLs that differ only in the path."""
    found = _ORIGIN.match(url)
    return found[0] if found else url


@lru_cache(maxsize=1_000)
def _host(url: str) -> tuple[str, bool]:
    """The host and port of an HTTP URL, or an empty text if it has none; and whether it contains a password."""
    try:
        parts = urlsplit(url)
        port = {"http": 80, "https": 443}.get(parts.scheme) if parts.port is None else parts.port
    except ValueError:
        return "", False
    is_good = parts.scheme in ("http", "https") and parts.hostname and port
    return f"{parts.hostname}:{port}" if is_good else "", parts.password is not None


def _seconds(after: str | None) -> float | None:
    """The value of `Retry-After`, a number of seconds or a date, in seconds."""
    if not after:
        return None
    if after.strip().isdecimal():
        return float(after)
    try:
        return max(0.0, parsedate_to_datetime(after).timestamp() - time.time())
    except ValueError:
        return None

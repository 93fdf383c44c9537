"""The guard: keeps statements of untrusted users away from private networks and from the files of the machine.

In: places that statements name (feeds, XML by URL, webhooks, stylesheets). Out: GuardError if a place is refused. The
guard is off by default. A place is checked twice: as written, when it is registered (`check`), and by the addresses of
its host, whenever a connection is made. The connection goes to an address that was checked, so neither a redirect nor a
name that resolves differently the second time gets past the guard.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Sequence
from functools import cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from fishweir.errors import FishweirError
from fishweir.records import dataclass

if TYPE_CHECKING:
    import ssl

    import httpx

SETTING = "FISHWEIR_GUARD"
LOCAL_NAMES = (".localhost", ".local", ".internal", ".localdomain", ".home.arpa")
NAT64 = IPv6Network("64:ff9b::/96")

Address = IPv4Address | IPv6Address


class GuardError(FishweirError):
    """The guard refuses a place. The message says which place and why."""


@dataclass(frozen=True, slots=True)
class Guard:
    """Whether places are checked. The guard is off for a home that only its owner uses."""

    on: bool = False

    @staticmethod
    def from_setting(on: bool | None) -> Guard:
        """A guard that is on or off as requested; None reads the environment variable FISHWEIR_GUARD (1 = on)."""
        setting = os.environ.get(SETTING, "").strip().lower()
        return Guard(setting not in ("", "0", "no", "off", "false") if on is None else on)

    def check(self, place: str, base: Path | None = None) -> None:
        """Raises GuardError if a URL or path is refused as written. Names are resolved later, when the place is read.

        Files are allowed only below `base`, the working folder of the program.
        """
        if not self.on:
            return
        scheme = urlsplit(place).scheme.lower() if "://" in place or place.lower().startswith("file:") else ""
        if scheme in ("http", "https"):
            self._check_literal_host(place)
        elif scheme:
            raise GuardError(f"the guard is on: {scheme}: is not allowed, only http and https are")
        elif base is None or not Path(os.path.realpath(base / place)).is_relative_to(os.path.realpath(base)):
            raise GuardError(f"the guard is on: {place} is not a file below the current folder")

    def _check_literal_host(self, url: str) -> None:
        host = (urlsplit(url).hostname or "").rstrip(".").lower()
        if host == "localhost" or host.endswith(LOCAL_NAMES):
            raise GuardError(f"the guard is on: {host} is a host name of a private network")
        found = _literal_address(host)
        if found is not None:
            _check_addresses(host, [found])

    def check_host(self, host: str) -> None:
        """Raises GuardError if an address of the host is refused. Queries the name server, so it may take a while."""
        if self.on:
            _resolved(host, 0)

    def client(self, **options: Any) -> httpx.Client:
        """An HTTP client that checks its connections; `options` are those of httpx.Client."""
        import httpx

        if not self.on:
            return httpx.Client(**options, verify=_tls_context(*certificates()))
        import httpcore

        transport = httpx.HTTPTransport(verify=_tls_context(*certificates()))
        transport._pool._network_backend = _backend(httpcore.SyncBackend())  # type: ignore[attr-defined]
        return httpx.Client(**options, transport=transport, trust_env=False)  # a proxy would resolve names itself

    def connect(self, host: str, port: int, timeout: float) -> socket.socket:
        """A connection to a host. Its addresses are checked if the guard is on."""
        if not self.on:
            return socket.create_connection((host, port), timeout)
        *others, last = _resolved(host, port)
        for address in others:
            try:
                return socket.create_connection((address, port), timeout)
            except OSError:
                continue
        return socket.create_connection((last, port), timeout)

    def async_client(self, **options: Any) -> httpx.AsyncClient:
        """The same as `client`, for coroutines."""
        import httpx

        if not self.on:
            return httpx.AsyncClient(**options, verify=_tls_context(*certificates()))
        transport = httpx.AsyncHTTPTransport(verify=_tls_context(*certificates()))
        pool: Any = transport._pool
        pool._network_backend = _async_backend(pool._network_backend)
        return httpx.AsyncClient(**options, transport=transport, trust_env=False)


def certificates() -> tuple[tuple[str, int], ...]:
    """The files and folders of trusted certificates, with their modification times."""
    import ssl

    places = ssl.get_default_verify_paths()
    return tuple((place, os.stat(place).st_mtime_ns) for place in (places.cafile, places.capath) if place)


@cache
def _tls_context(*_: tuple[str, int]) -> ssl.SSLContext:
    """The TLS context of all clients. It is shared because loading the certificates takes longer than a request."""
    import httpx

    return httpx.create_ssl_context()


def _literal_address(host: str) -> Address | None:
    """The address if a host is written as one, including forms that only C libraries accept (127.1, 0x7f000001)."""
    try:
        return ip_address(host.partition("%")[0])
    except ValueError:
        pass
    try:
        return IPv4Address(socket.inet_aton(host)) if host[:1].isdigit() else None
    except OSError:
        return None


def is_public(address: Address) -> bool:
    """Whether an address is a public Internet address: not private, loopback, link-local, reserved or multicast.

    The metadata services of clouds are link-local or private. An IPv6 address that contains an IPv4 address is public
    if the IPv4 address is.
    """
    if isinstance(address, IPv6Address):
        held = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
        if address in NAT64:
            held = IPv4Address(int(address) & 0xFFFF_FFFF)
        if held is not None:
            return is_public(held)
    return address.is_global and not address.is_multicast


def _check_addresses(host: str, addresses: Iterable[Address]) -> None:
    for address in addresses:
        if not is_public(address):
            shown = host if host == str(address) else f"{host} ({address})"
            raise GuardError(f"the guard is on: {shown} is not an address of the public Internet")


def _resolved(host: str, port: int) -> list[str]:
    """The addresses of a host, all of them public. Raises OSError if the name cannot be resolved."""
    return _checked(host, socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))


def _checked(host: str, found: Sequence[Any]) -> list[str]:
    addresses = [str(entry[4][0]) for entry in found]
    _check_addresses(host, (ip_address(address.partition("%")[0]) for address in addresses))
    return addresses


def refusal(error: BaseException) -> GuardError | None:
    """The GuardError that caused a client error, or None."""
    while error is not None:
        if isinstance(error, GuardError):
            return error
        error = error.__cause__ or error.__context__  # type: ignore[assignment]
    return None


def _backend(plain: Any) -> Any:
    """A network backend of httpcore that connects only to checked addresses."""
    import httpcore

    class Checked(httpcore.NetworkBackend):
        def connect_tcp(self, host: str, port: int, *rest: Any, **more: Any) -> Any:
            try:
                addresses = _resolved(host, port)
            except (GuardError, OSError) as error:
                raise httpcore.ConnectError(str(error)) from error
            for address in addresses[:-1]:
                try:
                    return plain.connect_tcp(address, port, *rest, **more)
                except (httpcore.ConnectError, httpcore.ConnectTimeout):
                    continue
            return plain.connect_tcp(addresses[-1], port, *rest, **more)

        def sleep(self, seconds: float) -> None:
            plain.sleep(seconds)

    return Checked()


def _async_backend(plain: Any) -> Any:
    import asyncio

    import httpcore

    class Checked(httpcore.AsyncNetworkBackend):
        async def connect_tcp(self, host: str, port: int, *rest: Any, **more: Any) -> Any:
            try:
                loop = asyncio.get_running_loop()
                addresses = _checked(host, await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM))
            except (GuardError, OSError) as error:
                raise httpcore.ConnectError(str(error)) from error
            for address in addresses[:-1]:
                try:
                    return await plain.connect_tcp(address, port, *rest, **more)
                except (httpcore.ConnectError, httpcore.ConnectTimeout):
                    continue
            return await plain.connect_tcp(addresses[-1], port, *rest, **more)

        async def sleep(self, seconds: float) -> None:
            await plain.sleep(seconds)

    return Checked()

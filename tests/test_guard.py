"""The guard refuses private addresses as written, as the address of a name, and as the target of redirects."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import httpx
import pytest

from fishweir import guard, testing
from fishweir.errors import FishweirError
from fishweir.guard import Guard, GuardError, is_public, refusal
from tests.intake.feed_server import FeedServer, serving

ON, OFF = Guard(True), Guard()


@pytest.fixture
def server() -> Iterator[FeedServer]:
    with serving() as running:
        yield running


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("127.0.0.1", False), ("10.1.2.3", False), ("172.16.0.1", False), ("192.168.1.1", False),
        ("169.254.169.254", False), ("100.64.0.1", False), ("0.0.0.0", False), ("224.0.0.1", False),
        ("255.255.255.255", False), ("::1", False), ("fe80::1", False), ("fd00:ec2::254", False), ("::", False),
        ("::ffff:127.0.0.1", False), ("64:ff9b::a9fe:a9fe", False), ("2002:7f00:1::", False), ("ff02::1", False),
        ("93.184.216.34", True), ("2606:2800:220:1::1", True), ("64:ff9b::5db8:d822", True),
    ],
)  # fmt: skip
def test_addresses(address: str, public: bool) -> None:
    assert is_public(ip_address(address)) == public


@pytest.mark.parametrize(
    "place",
    [
        "http://127.0.0.1/x", "http://127.1:80/x", "http://2130706433/", "http://0x7f000001/", "http://[::1]:8080/",
        "http://localhost/", "http://a.localhost./", "https://metadata.google.internal/computeMetadata/v1/",
        "http://169.254.169.254/latest/meta-data/", "https://user:pw@10.0.0.1/feed", "http://[::ffff:10.0.0.1]/",
        "file:///etc/passwd", "FILE:/etc/passwd", "ftp://example.org/x", "gopher://example.org/",
        "/etc/passwd", "../outside.xml", "link/passwd",
    ],
)  # fmt: skip
def test_addresses_refused_as_written(tmp_path: Path, place: str) -> None:
    (tmp_path / "link").symlink_to("/etc")
    with pytest.raises(GuardError, match="the guard is on"):
        ON.check(place, tmp_path)
    OFF.check(place, tmp_path)


@pytest.mark.parametrize(
    "place", ["https://example.org/feed", "http://93.184.216.34/", "data.xml", "a/b.xml", "1.2.example.org"]
)
def test_addresses_that_are_allowed(tmp_path: Path, place: str) -> None:
    ON.check(place, tmp_path)


def test_a_name_that_resolves_to_a_private_address(server: FeedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    real = socket.getaddrinfo

    def resolve(host: Any, *rest: Any, **more: Any) -> Any:
        return real("127.0.0.1" if host == "feeds.example.org" else host, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    url = server.url().replace("127.0.0.1", "feeds.example.org")
    server.pages["/feed"] = b"here"
    ON.check(url)
    with pytest.raises(GuardError, match=r"feeds\.example\.org \(127\.0\.0\.1\) is not an address of the public"):
        ON.check_host("feeds.example.org")
    with ON.client() as client, pytest.raises(httpx.ConnectError) as refused:
        client.get(url)
    assert isinstance(refusal(refused.value), GuardError)

    async def get() -> None:
        async with ON.async_client() as client:
            await client.get(url)

    with pytest.raises(httpx.ConnectError) as refused:
        asyncio.run(get())
    assert isinstance(refusal(refused.value), GuardError)
    assert server.requests == [], "no request was sent"
    with OFF.client() as client:
        assert client.get(url).text == "here"


def test_a_redirect_to_a_private_address(server: FeedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test declares the address of one server as public."""
    monkeypatch.setattr(guard, "is_public", lambda address: str(address) == "127.0.0.1")
    server.pages["/feed"] = (302, {"Location": server.url("/x").replace("127.0.0.1", "127.0.0.2")}, b"")
    server.pages["/plain"] = b"here"
    with ON.client(follow_redirects=True) as client:
        assert client.get(server.url("/plain")).text == "here"
        with pytest.raises(httpx.ConnectError) as refused:
            client.get(server.url())
    assert "127.0.0.2" in str(refusal(refused.value))

    async def get(path: str) -> str:
        async with ON.async_client(follow_redirects=True) as client:
            return (await client.get(server.url(path))).text

    assert asyncio.run(get("/plain")) == "here"
    with pytest.raises(httpx.ConnectError):
        asyncio.run(get("/feed"))


def test_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    for text, on in (("1", True), ("on", True), ("0", False), ("", False)):
        monkeypatch.setenv("FISHWEIR_GUARD", text)
        assert Guard.from_setting(None).on is on
    assert Guard.from_setting(True).on


def test_a_guarded_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here.xml").write_text("<a>1</a>")
    with testing.open(tmp_path / "home", guard=True) as weir:
        for statement in (
            "register feed http://127.0.0.1:8000/feed as F;",
            "register feed file:///etc/passwd as F;",
            "create stream F from '/etc/passwd';",
            "create stream F from 'http://169.254.169.254/x.xml' format feed;",
            "create feed G from 'http://localhost/feed';",
            "create stream S; create query q as S//a do http 'http://127.0.0.1:8000/hook';",
            "create stream S; create feed G from S; subscribe to G output http 'http://10.0.0.1/hook';",
            "create stream S; create feed G from S; subscribe to G apply '/etc/x.xsl' output file 'x.xml';",
        ):
            with pytest.raises(FishweirError, match="the guard is on"):
                weir.execute(statement)
        assert weir.catalog.streams() == {}, "refused statements have no effect"
        weir.execute("create stream H from 'here.xml'; create query q as H//a;")
        weir.step()
        assert len(list(weir.results("q"))) == 1

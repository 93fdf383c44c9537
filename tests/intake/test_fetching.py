"""Real-world servers: redirects, feeds that are gone, compression, pages that link to a feed, endless bodies."""

from __future__ import annotations

import gzip
import itertools
import json
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import brotli
import pytest

from fishweir.guard import Guard
from fishweir.intake import StreamLog, open_source
from fishweir.intake.sources import fetch
from fishweir.intake.sources.decode import TooLarge, decoded
from fishweir.intake.sources.hosts import BURST, RATE, Hosts
from fishweir.intake.sources.items import parse_feed
from tests.intake.feed_server import FeedServer, rss, serving
from tests.intake.support import entries, fetched, fields, opened, stream, titles


@pytest.fixture
def server() -> Iterator[FeedServer]:
    with serving() as running:
        yield running


def paths(server: FeedServer) -> list[str]:
    requested = [path for path, _ in server.requests]
    server.requests.clear()
    return requested


def definition(server: FeedServer, path: str = "/feed") -> Any:
    return stream(path=server.url(path), format="feed", every=1.0)


@pytest.mark.parametrize(("status", "remembered"), [(301, True), (308, True), (302, False), (303, False), (307, False)])
def test_permanent_redirects_are_remembered(tmp_path: Path, server: FeedServer, status: int, remembered: bool) -> None:
    server.pages["/feed"], server.pages["/new"] = (status, {"Location": "/new"}, b""), rss("a")
    _, source = opened(tmp_path, definition(server))
    assert (fetched(source, 0), paths(server)) == (1, ["/feed", "/new"])
    server.pages["/new"] = rss("a", "b")
    assert fetched(source, 1) == 1
    assert paths(server) == (["/new"] if remembered else ["/feed", "/new"])
    log, source = opened(tmp_path, definition(server))
    assert (fetched(source, 2), titles(log)) == (0, ["a", "b"])
    assert paths(server) == (["/new"] if remembered else ["/feed", "/new"]), "also after a restart"


def test_a_chain_is_permanent_up_to_its_first_temporary_step(tmp_path: Path, server: FeedServer) -> None:
    server.pages["/feed"], server.pages["/b"] = (301, {"Location": "/b"}, b""), (302, {"Location": "/c"}, b"")
    server.pages["/c"] = rss("a")
    _, source = opened(tmp_path, definition(server))
    fetched(source, 0)
    fetched(source, 1)
    assert paths(server) == ["/feed", "/b", "/c", "/b", "/c"]


def test_a_failing_redirect_target_falls_back_to_the_old_url(tmp_path: Path, server: FeedServer) -> None:
    server.pages["/feed"], server.pages["/new"] = (301, {"Location": "/new"}, b""), rss("a")
    log, source = opened(tmp_path, definition(server))
    assert fetched(source, 0) == 1
    server.pages["/feed"], server.pages["/new"] = rss("a", "b"), (404, {}, b"")
    assert (fetched(source, 1), titles(log), source.trouble) == (1, ["a", "b"], None)
    paths(server)
    fetched(source, 2)
    assert paths(server) == ["/feed"], "that redirect is forgotten"


def test_credentials_stay_with_their_server(tmp_path: Path, server: FeedServer) -> None:
    with serving() as other:
        other.pages["/new"] = rss("a")
        server.pages["/feed"], server.pages["/near"] = (301, {"Location": "/near"}, b""), rss("b")
        url = server.url().replace("://", "://ann:secret@")
        log, source = opened(tmp_path, stream(path=url, format="feed", every=1.0))
        assert fetched(source, 0) == 1
        assert fetched(source, 1) == 0
        assert all("authorization" in headers for _, headers in server.requests), "also where it has moved to"
        server.pages["/near"] = (301, {"Location": other.url("/new")}, b"")
        assert fetched(source, 2) == 1
        assert all("authorization" not in headers for _, headers in other.requests)
        assert "secret" not in json.dumps(log.newest("fetched"))


def test_a_feed_that_is_gone(tmp_path: Path, server: FeedServer, caplog: pytest.LogCaptureFixture) -> None:
    server.pages["/feed"] = rss("a")
    _, source = opened(tmp_path, definition(server))
    assert fetched(source, 0) == 1
    server.pages["/feed"] = (410, {}, b"")
    assert fetched(source, 1) == 0
    said = f"feed S: {server.url()}: the server answered 410 Gone: it will not be fetched again"
    assert source.trouble == said
    assert said in caplog.text
    server.pages["/feed"] = rss("a", "b")
    requested = len(server.requests)
    assert fetched(source, 1e9) == 0
    _, source = opened(tmp_path, definition(server))
    assert (fetched(source, 1e9), source.trouble, source.working) == (0, said, False)
    assert len(server.requests) == requested, "not even after a restart"


def test_too_many_requests(tmp_path: Path, server: FeedServer) -> None:
    server.pages["/feed"] = (429, {"Retry-After": "3600"}, b"")
    _, source = opened(tmp_path, definition(server))
    assert fetched(source, 0) == 0
    assert "429 Too Many Requests" in str(source.trouble)
    server.pages["/feed"] = rss("a")
    assert (fetched(source, 3599), len(server.requests)) == (0, 1)
    assert (fetched(source, 3600), source.trouble) == (1, None)


BODY = rss("a", "b")
RAW = zlib.compressobj(wbits=-15)
CODED = {
    "gzip": ("gzip", gzip.compress(BODY)),
    "brotli": ("br", brotli.compress(BODY)),
    "deflate": ("deflate", zlib.compress(BODY)),
    "raw deflate": ("deflate", RAW.compress(BODY) + RAW.flush()),
    "two codings": ("gzip, br", brotli.compress(gzip.compress(BODY))),
    "a compressed file": ("", gzip.compress(BODY)),
    "a compressed file, compressed again": ("gzip", gzip.compress(gzip.compress(BODY))),
    "plain, called gzip": ("gzip", BODY),
    "plain, called brotli": ("br", BODY),
    "two members": ("gzip", gzip.compress(BODY[:100]) + gzip.compress(BODY[100:])),
    "rubbish behind it": ("gzip", gzip.compress(BODY) + b"\0\0rubbish"),
}


@pytest.mark.parametrize("name", CODED)
def test_compression(tmp_path: Path, server: FeedServer, name: str) -> None:
    coding, body = CODED[name]
    server.pages["/feed"] = (200, {"Content-Encoding": coding} if coding else {}, body)
    _, source = opened(tmp_path, definition(server))
    assert (fetched(source, 0), source.trouble) == (2, None)
    assert server.requests[0][1]["accept-encoding"] == "gzip, deflate, br"


def test_compressed_files_and_broken_ones(tmp_path: Path, server: FeedServer) -> None:
    (tmp_path / "feed.xml.gz").write_bytes(gzip.compress(BODY))
    _, source = opened(tmp_path, stream(path="feed.xml.gz", format="feed"))
    assert fetched(source, 0) == 2
    for body, words in ((gzip.compress(BODY)[:-20], "truncated"), (b"\x1f\x8b" + b"x" * 50, "invalid")):
        server.pages["/feed"] = (200, {"Content-Encoding": "gzip"}, body)
        _, source = opened(tmp_path / words[:3], definition(server))
        assert fetched(source, 0) == 0
        assert words in str(source.trouble)


@pytest.mark.parametrize("pack", [gzip.compress, brotli.compress, zlib.compress])
def test_a_compression_bomb_is_not_unpacked(pack: Any) -> None:
    coding = {gzip.compress: "gzip", brotli.compress: "br", zlib.compress: "deflate"}[pack]
    with pytest.raises(TooLarge, match="larger than 100,000 bytes"):
        decoded(pack(b"0" * 10_000_000), coding, 100_000)


def test_endless_and_slow(server: FeedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "LARGEST", 1_000_000)
    server.pages["/endless"] = lambda: itertools.repeat(b"<item/>" * 1000)
    with pytest.raises(fetch.FetchError, match="larger than 1,000,000 bytes"):
        fetch.submit(fetch.fetch(server.url("/endless"), {})).result()
    waiting = threading.Event()

    def drip() -> Iterator[bytes]:
        while not waiting.wait(0.02):
            yield b"x"

    server.pages["/slow"] = drip
    with pytest.raises(fetch.FetchError, match=r"no response within 0\.3 s"):
        fetch.submit(fetch.fetch(server.url("/slow"), {}, 0.3)).result()
    waiting.set()


def test_wrong_content_types_and_charsets(tmp_path: Path, server: FeedServer) -> None:
    latin = rss("a", a="Gr\xfcn").decode().replace('"1.0"', '"1.0" encoding="iso-8859-1"').encode("latin-1")
    utf = rss("a", a="Grün").decode().encode()
    for n, (kind, body) in enumerate(
        [
            ("text/plain", utf),
            ("text/html; charset=utf-8", utf),
            ("application/octet-stream", latin),
            ("application/xml; charset=utf-8", latin),
            ("image/png; charset=nonsense", utf),
            ("application/rss+xml; charset=us-ascii", utf),
        ]
    ):
        server.pages["/feed"] = (200, {"Content-Type": kind}, body)
        log, source = opened(tmp_path / str(n), definition(server))
        assert (fetched(source, 0), source.trouble) == (1, None), kind
        assert "Gr" in fields(entries(log)[0].body)["description"][0]


PAGE = """<html><head><base href="/blog/"><link rel="stylesheet" href="x.css"><link rel='alternate stylesheet' href=y>
  <LINK REL="Alternate" TYPE="application/rss+xml; charset=utf-8" HREF="feed.xml"><p>Hello"""


def test_a_page_with_a_link_to_its_feed(tmp_path: Path, server: FeedServer) -> None:
    server.pages["/"], server.pages["/blog/feed.xml"] = (200, {"Content-Type": "text/html"}, PAGE.encode()), rss("a")
    log, source = opened(tmp_path, definition(server, "/"))
    assert (fetched(source, 0), source.trouble, paths(server)) == (1, None, ["/", "/blog/feed.xml"])
    assert fields(entries(log)[0].body)["channel_url"] == [server.url("/blog/feed.xml")]
    server.pages["/blog/feed.xml"] = rss("a", "b")
    _, source = opened(tmp_path, definition(server, "/"))
    assert (fetched(source, 1), paths(server)) == (1, ["/blog/feed.xml"]), "it is remembered"
    server.pages["/blog/feed.xml"] = (404, {}, b"")
    server.pages["/"] = PAGE.replace("feed.xml", "new.xml").encode()
    server.pages["/blog/new.xml"] = rss("b", "c")
    assert (fetched(source, 2), titles(log)) == (1, ["a", "b", "c"])
    server.pages["/"] = server.pages["/blog/new.xml"] = PAGE.replace("feed.xml", "new.xml").encode()
    assert fetched(source, 3) == 0
    assert "it is not a feed" in str(source.trouble), "a page that names a page"


def test_json_feed(tmp_path: Path, server: FeedServer) -> None:
    item = {
        "id": 7, "url": "http://h.org/7", "title": "Seven", "content_html": "<p>Hi <a href='http://x.org/'>there</a>",
        "date_published": "2025-01-02T03:04:05+01:00", "tags": ["a", "b"], "authors": [{"name": "Ann"}],
        "attachments": [{"url": "http://h.org/s.mp3", "mime_type": "audio/mpeg", "size_in_bytes": 5}],
    }  # fmt: skip
    feed = {"version": "https://jsonfeed.org/version/1.1", "title": "J", "description": "All of it", "items": [item]}
    server.pages["/feed"] = (200, {"Content-Type": "application/feed+json"}, json.dumps(feed).encode())
    log, source = opened(tmp_path, definition(server))
    assert fetched(source, 0) == 1
    (entry,) = entries(log)
    assert entry.timestamp == 1735783445.0
    assert fields(entry.body) == {
        "title": ["Seven"], "link": ["http://h.org/7"], "description": ["Hi there (http://x.org/)"],
        "pubdate": ["2025-01-02T02:04:05Z"], "guid": ["7"], "author": ["Ann"], "category": ["a", "b"],
        "channel": ["J"], "channel_url": [server.url()], "enclosure": ["http://h.org/s.mp3"],
    }  # fmt: skip
    assert source.state.about == {"title": "J", "description": "All of it"}  # type: ignore[attr-defined]
    odd = {**feed, "items": ["no", {"id": "1", "tags": 5, "title": [], "authors": [None], "content_text": "x < y"}, 3]}
    (found,) = parse_feed(json.dumps(odd).encode()).items
    assert fields(found.body)["description"] == ["x < y"]
    for text in (b'{"version": 1}', b'{"version": "https://jsonfeed.org/version/1"', b'{"a":' * 10_000):
        assert "not a feed" in str(parse_feed(text).problem)


def test_changed_items_are_updates(tmp_path: Path, server: FeedServer) -> None:
    server.pages["/feed"] = rss("a", "b")
    log, source = opened(tmp_path, definition(server))
    assert fetched(source, 0) == 2
    server.pages["/feed"] = rss("a", "b", "c", a="corrected")
    assert fetched(source, 1) == 2
    _, source = opened(tmp_path, definition(server))
    server.pages["/feed"] = rss("a", "b", "c", a="corrected again")
    assert fetched(source, 2) == 1, "also after a restart"
    found = entries(log)
    assert [entry.change for entry in found] == ["inserted", "inserted", "updated", "inserted", "updated"]
    assert [b'<item change="updated">' in (entry.body or b"") for entry in found] == [False, False, True, False, True]


def test_an_image_inside_an_item_does_not_describe_it() -> None:
    image = "<image><title>it</title><description>of the image</description></image>"
    for own, expected in (("", None), ("<description>&lt;b&gt;own&lt;/b&gt;</description>", ["own"])):
        for inside in (image + own, own + image):
            item = f"<item><title>T</title>{inside}</item>"
            feed = parse_feed(f"<rss version='2.0'><channel><title>C</title>{image}{item}</channel></rss>".encode())
            assert fields(feed.items[0].body).get("description") == expected
            assert (feed.about.title, feed.about.description) == ("C", "")


def test_requests_to_a_host_are_rate_limited() -> None:
    hosts = Hosts()
    waits = [hosts.turn("a", 0.0) for _ in range(BURST + 40)]
    assert waits[: BURST + 1] == [0.0] * (BURST + 1)
    assert waits[-1] == pytest.approx(39 / RATE)
    assert hosts.turn("b", 0.0) == 0.0, "each host by itself"
    assert hosts.turn("a", 3600.0) == 0.0


def test_the_guard_applies_to_feeds(tmp_path: Path, server: FeedServer) -> None:
    server.pages["/feed"] = rss("a")
    log = StreamLog(tmp_path / "log", definition(server))
    source = open_source(log.stream, log, tmp_path, Guard(True))
    assert fetched(source, 0) == 0
    assert "the guard is on: 127.0.0.1 is not an address of the public Internet" in str(source and source.trouble)
    assert server.requests == []

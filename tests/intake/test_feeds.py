"""Feeds from a real HTTP server and from files: each entry once, whatever happens in between."""

from __future__ import annotations

import os
import tarfile
import time
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from fishweir.intake.sources import fetch
from fishweir.intake.sources import fetched as feed
from fishweir.intake.sources.items import html_to_text, parse_feed
from tests.conftest import DATA
from tests.intake.feed_server import FeedServer, rss, serving
from tests.intake.support import entries, fetched, fields, opened, stream, titles


@pytest.fixture
def server() -> Iterator[FeedServer]:
    with serving() as running:
        yield running


def test_rss_item() -> None:
    text = b"""<rss version="2.0" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:slash="http://purl.org/rss/1.0/modules/slash/">
      <channel><title>Chan &amp; more</title><link>http://h.org/</link>
      <item><title>A &amp;amp; B</title><link>/a</link><dc:creator>Ann</dc:creator><category>x</category>
      <category>y z</category><guid isPermaLink="false">g-1</guid><slash:comments>7</slash:comments>
      <description>&lt;p&gt;Read &lt;a href="/more"&gt;this&lt;/a&gt;&lt;/p&gt;
      &lt;script&gt;no()&lt;/script&gt;now</description>
      <enclosure url="http://h.org/s.mp3" type="audio/mpeg" length="5"/>
      <pubDate>Sat, 01 Nov 2025 10:00:00 +0100</pubDate></item></channel></rss>"""
    (item,) = parse_feed(text, "http://h.org/feed").items
    assert item.timestamp == 1761987600.0
    assert fields(item.body) == {
        "title": ["A & B"],
        "link": ["http://h.org/a"],
        "author": ["Ann"],
        "category": ["x", "y z"],
        "guid": ["g-1"],
        "description": ["Read this (http://h.org/more) now"],
        "pubdate": ["2025-11-01T09:00:00Z"],
        "slash_comments": ["7"],
        "enclosure": ["http://h.org/s.mp3"],
        "channel": ["Chan & more"],
        "channel_url": ["http://h.org/feed"],
    }


def test_atom_and_rdf() -> None:
    atom = """<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="de"><title>Grün</title><id>f</id>
      <entry><id>urn:1</id><title type="html">&lt;b&gt;Ö&lt;/b&gt;</title><link href="http://h.org/1"/>
      <updated>2025-01-02T03:04:05+01:00</updated><author><name>A</name></author><author><name>B</name></author>
      <content type="html">&lt;i&gt;all&lt;/i&gt; of it</content></entry></feed>""".encode("latin-1")
    (item,) = parse_feed(atom, content_type="application/atom+xml; charset=iso-8859-1").items
    found = fields(item.body)
    assert (found["title"], found["author"], found["description"]) == (["Ö"], ["A", "B"], ["all of it"])
    assert found["pubdate"] == ["2025-01-02T02:04:05Z"]
    rdf = b"""<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/">
      <channel rdf:about="http://h.org/"><title>R</title></channel>
      <item rdf:about="http://h.org/1"><title>one</title><link>http://h.org/1</link></item></rdf:RDF>"""
    (item,) = parse_feed(rdf).items
    assert item.timestamp is None
    assert fields(item.body)["guid"] == ["http://h.org/1"]


def test_broken_feeds() -> None:
    cut = rss("a", "b", "c")[:-60]
    assert len(parse_feed(cut).items) == 3, "not well-formed, and yet three items"
    assert "not a feed" in str(parse_feed(b"<html><body>Hello</body></html>").problem)
    assert parse_feed(b"").problem is not None
    assert parse_feed(rss()).problem is None, "an empty feed is a feed"
    odd = rss("a").replace(b"About a", b"x&#1;y \xff z")
    assert parse_feed(odd).items
    without = b"<rss version='2.0'><channel><item><title>t</title></item><item><title>t</title></item></channel></rss>"
    assert len(parse_feed(without).items) == 1, "no id and no link: the content is the id"


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("plain  text", "plain text"),
        ("a<br>b<p>c</p>d", "a b c d"),
        ("<b>x</b>y &lt;z&gt; &amp;", "xy <z> &"),
        ("<a href='http://a.b/c'>http://a.b/c</a>", "http://a.b/c"),
        ("<a href='javascript:x()'>q</a>", "q"),
        ("<style>p{}</style><noscript>n</noscript>ok", "ok"),
        ("<" * 50, "<" * 50),
        ("", ""),
        ("<div>" * 300 + "deep" + "</div>" * 300, "deep"),
    ],
)
def test_html(html: str, text: str) -> None:
    assert html_to_text(html).replace("<", "").strip() == text.replace("<", "")


def test_a_feed_that_grows(tmp_path: Path, server: FeedServer) -> None:
    definition = stream(path=server.url(), format="feed", every=60.0)
    server.pages["/feed"] = rss("a", "b")
    log, source = opened(tmp_path, definition)
    assert source.working
    assert fetched(source, 0) == 2
    assert not source.working
    assert titles(log) == ["a", "b"], "the oldest first"
    assert [entry.timestamp for entry in entries(log)] == [1735812000.0, 1735898400.0]
    server.pages["/feed"] = rss("a", "b", "c")
    assert (next(source.poll(59), 0), len(server.requests)) == (0, 1), "not yet"
    assert (fetched(source, 60), titles(log, 2)) == (1, ["c"])
    server.pages["/feed"] = rss("d")
    assert fetched(source, 120) == 1
    server.pages["/feed"] = rss("a", "d")
    assert fetched(source, 180) == 0, "an entry that comes back is remembered"
    log, source = opened(tmp_path, definition)
    server.pages["/feed"] = rss("a", "d", "e")
    assert (fetched(source, 200), titles(log)) == (1, ["a", "b", "c", "d", "e"])


def test_history_is_bounded(tmp_path: Path, server: FeedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "HISTORY", 3)
    log, source = opened(tmp_path, stream(path=server.url(), format="feed", every=1.0))
    for n in range(10):
        server.pages["/feed"] = rss(*(f"t{i}" for i in range(n, n + 5)))
        fetched(source, float(n * 10))
    assert len(log.newest("fetched")["seen"]) == 8
    assert titles(log) == [f"t{i}" for i in range(14)]


def test_not_modified(tmp_path: Path, server: FeedServer) -> None:
    definition = stream(path=server.url(), format="feed")
    server.pages["/feed"] = (200, {"ETag": '"v1"', "Last-Modified": "Thu, 02 Jan 2025 00:00:00 GMT"}, rss("a"))
    log, source = opened(tmp_path, definition)
    assert fetched(source, 0) == 1
    log, source = opened(tmp_path, definition)
    assert (fetched(source, 1), source.trouble) == (0, None)
    assert server.requests[1][1]["if-none-match"] == '"v1"'
    assert server.requests[1][1]["if-modified-since"] == "Thu, 02 Jan 2025 00:00:00 GMT"
    assert log.head() == 1


def test_a_new_version_without_new_entries_is_kept(tmp_path: Path, server: FeedServer) -> None:
    definition = stream(path=server.url(), format="feed", every=1.0)
    log, source = opened(tmp_path, definition)
    for n in range(5):
        server.pages["/feed"] = (200, {"ETag": f'"v{n}"'}, rss("a"))
        assert fetched(source, float(2 * n)) == (1 if n == 0 else 0)
        assert fetched(source, float(2 * n + 1)) == 0
    log, source = opened(tmp_path, definition)
    assert (fetched(source, 0), server.requests[-1][1]["if-none-match"]) == (0, '"v4"')
    assert len(list(log.folder.glob("*.cursor"))) == 1, "a feed that is polled for a year does not fill the disk"
    server.pages["/feed"] = (200, {"ETag": '"v5"'}, rss("a", "b"))
    assert fetched(source, 1) == 1
    log, source = opened(tmp_path, definition)
    assert (fetched(source, 0), server.requests[-1][1]["if-none-match"]) == (0, '"v5"')
    assert titles(log) == ["a", "b"]


def test_retry_after_may_be_a_date(tmp_path: Path, server: FeedServer) -> None:
    _, source = opened(tmp_path, stream(path=server.url(), format="feed", every=5.0))
    server.pages["/feed"] = (503, {"Retry-After": formatdate(time.time() + 7200, usegmt=True)}, b"")
    assert fetched(source, 0) == 0
    server.pages["/feed"] = rss("a")
    assert fetched(source, 3600) == 0
    assert len(server.requests) == 1, "it waits as long as the server asks for"
    assert fetched(source, 7300) == 1
    for date in (formatdate(0, usegmt=True), "next week"):
        server.pages["/feed"] = (503, {"Retry-After": date}, b"")
        _, source = opened(tmp_path, stream(path=server.url(), format="feed"))
        assert fetched(source, 0) == 0
        assert source._due == 30, "a date that has passed, or is none, is no wish"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ((404, {}, b""), "the server answered 404 Not Found"),
        ((500, {}, b""), "the server answered 500"),
        (b"<html><p>hello", "it is not a feed"),
        ((302, {"Location": "/feed"}, b""), "more than 5 redirects"),
        ((302, {"Location": "file:///etc/passwd"}, b""), "which is neither http nor https"),
    ],
)
def test_problems_are_named_and_cleared(tmp_path: Path, server: FeedServer, page: Any, words: str) -> None:
    log, source = opened(tmp_path, stream(path=server.url(), format="feed"))
    server.pages["/feed"] = page
    assert fetched(source, 0) == 0
    assert not source.working, "it is over, badly"
    assert source.trouble is not None
    assert source.trouble.startswith(f"feed S: {server.url()}: ")
    assert words in source.trouble
    requests = len(server.requests)
    assert (next(source.poll(29), 0), len(server.requests)) == (0, requests)
    fetched(source, 30)
    server.pages["/feed"] = rss("a")
    assert next(source.poll(89), 0) == 0, "the second wait is longer"
    assert (fetched(source, 90), source.trouble, log.head()) == (1, None, 1)


def test_redirect_busy_slow_and_large(tmp_path: Path, server: FeedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    server.pages["/old"] = (302, {"Location": "/feed"}, b"")
    server.pages["/feed"] = rss("a")
    log, source = opened(tmp_path, stream(path=server.url("/old"), format="feed", every=5.0))
    assert fetched(source, 0) == 1
    assert fields(entries(log)[0].body)["channel_url"] == [server.url()]
    server.pages["/old"] = (503, {"Retry-After": "100"}, b"")
    assert fetched(source, 5) == 0
    assert next(source.poll(104), 0) == 0
    assert source._fetching is None, "it waits as long as the server asks for"
    server.pages["/old"] = rss("b")
    monkeypatch.setattr(fetch, "LARGEST", 50)
    assert fetched(source, 105) == 0
    assert "larger than 50 bytes" in str(source.trouble)
    monkeypatch.undo()
    server.delay = 0.5
    assert next(source.poll(1000), 0) == 0
    assert source._fetching is not None, "a poll does not wait"
    assert fetched(source, 1000) == 1
    with pytest.raises(fetch.FetchError, match=r"no response within 0\.1 s"):
        fetch.submit(fetch.fetch(server.url(), {}, 0.1)).result()
    with pytest.raises(fetch.FetchError, match="ConnectError"):
        fetch.submit(fetch.fetch("http://127.0.0.1:1/x", {})).result()


def test_a_crash_before_the_commit_loses_nothing(
    tmp_path: Path, server: FeedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    definition = stream(path=server.url(), format="feed")
    server.pages["/feed"] = (200, {"ETag": "1"}, rss("a", "b"))
    _, source = opened(tmp_path, definition)
    monkeypatch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        fetched(source, 0)
    monkeypatch.undo()
    log, source = opened(tmp_path, definition)
    assert (fetched(source, 0), log.head()) == (2, 2)
    _, source = opened(tmp_path, definition)
    assert fetched(source, 0) == 0, "entries, ids and version were one commit"


def test_files(tmp_path: Path) -> None:
    file = tmp_path / "my feed.rss"
    file.write_bytes(rss("a"))
    log, source = opened(tmp_path, stream(path=file.as_uri(), format="feed", every=1.0))
    assert fetched(source, 0) == 1
    file.write_bytes(rss("a", "b"))
    assert (fetched(source, 1), titles(log)) == (1, ["a", "b"])
    file.unlink()
    assert fetched(source, 2) == 0
    assert "No such file" in str(source.trouble)


def test_real_feeds_have_items_or_a_problem() -> None:
    archive = DATA / "feed_docs" / "feed_docs.tar.xz"
    if not archive.exists():
        pytest.skip(f"no feeds at {archive}")
    counted = {"items": 0, "empty": 0, "problem": 0}
    with tarfile.open(archive) as files:
        for member in [m for m in files if m.isfile() and "expect" not in m.name][::8]:
            found = parse_feed(files.extractfile(member).read(), f"http://h.org/{member.name}")  # type: ignore[union-attr]
            counted["problem" if found.problem else "items" if found.items else "empty"] += 1
            assert all(etree.fromstring(item.body).tag == "item" for item in found.items)
    assert counted["items"] > 50
    assert counted["problem"] < counted["items"] / 10

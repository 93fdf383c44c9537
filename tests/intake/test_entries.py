"""Entries of feeds: their identity and their content."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from lxml import etree

from fishweir.intake.sources.items import Feed, parse_feed
from tests.intake.feed_server import FeedServer, rss, serving
from tests.intake.support import entries, fetched, fields, opened, stream, titles

URL = "http://h.org/feed"
MEDIA = 'xmlns:media="http://search.yahoo.com/mrss/"'


@pytest.fixture
def server() -> Iterator[FeedServer]:
    with serving() as running:
        yield running


def parsed(*items: str, url: str = URL) -> Feed:
    text = f'<rss version="2.0" {MEDIA}><channel><title>C</title>{"".join(items)}</channel></rss>'
    return parse_feed(text.encode(), url)


def of_first(feed: Feed, name: str) -> list[str]:
    return fields(feed.items[0].body).get(name, [])


def test_entries_without_guid_that_share_a_link() -> None:
    episodes = [
        f"<item><title>Episode {n}</title><link>http://h.org/show</link>"
        f"<pubDate>{n:02d} Jan 2025 10:00:00 GMT</pubDate></item>"
        for n in range(1, 16)
    ]
    assert len(parsed(*episodes).items) == 15
    assert len(parsed(*episodes, episodes[0]).items) == 15, "the same entry twice is one"
    dates = [episodes[0].replace("01 Jan", day) for day in ("01 Jan", "02 Jan")]
    assert len(parsed(*dates).items) == 2, "title and link alone are not enough"


@pytest.mark.parametrize(
    "nested",
    [
        "<image><title>Logo</title><url>http://h.org/l.png</url><link>http://h.org/</link></image>",
        "<media:content url='http://h.org/m.jpg'><media:title>Photo</media:title></media:content>",
        "<media:group><media:title>Video</media:title></media:group>",
        "<source url='http://h.org/'><title>Elsewhere</title></source>",
        "<other><title>Other</title></other>",
    ],
)
def test_a_nested_title_is_not_the_title_of_the_entry(nested: str) -> None:
    own = "<title>Own &amp;amp; right</title>"
    for item in (own + nested, nested + own):
        assert of_first(parsed(f"<item>{item}<guid>g</guid></item>"), "title") == ["Own & right"]
    assert of_first(parsed(f"<item>{nested}<guid>g</guid></item>"), "title") == [], "it has none"


def test_titles_in_atom_and_with_markup() -> None:
    atom = b"""<feed xmlns="http://www.w3.org/2005/Atom"><entry><id>1</id>
      <title type="html">&lt;b&gt;Own&lt;/b&gt;</title>
      <source><title>Whence</title><id>2</id></source><image><title>Logo</title></image></entry></feed>"""
    feed = parse_feed(atom, URL)
    assert (of_first(feed, "title"), of_first(feed, "guid")) == (["Own"], ["1"])
    assert of_first(parsed(f"<item><media:title {MEDIA}>Only</media:title></item>"), "title") == ["Only"]


@pytest.mark.parametrize("guid", ["tag-7", "7", "a b/c", "/posts/7", "urn:x:7", "http://h.org/7"])
def test_guids_are_kept_unchanged(guid: str) -> None:
    rss_item = f"<item><title>T</title><guid>{guid}</guid><link>/seven</link></item>"
    feeds = [parsed(rss_item, url=url) for url in (URL, "https://new.org/x/feed")]
    assert [of_first(feed, "guid") for feed in feeds] == [[guid], [guid]]
    assert feeds[0].items[0].key == feeds[1].items[0].key, "the same entry, wherever the feed is"
    atom = f'<feed xmlns="http://www.w3.org/2005/Atom"><entry><id>{guid}</id><title>T</title></entry></feed>'
    assert of_first(parse_feed(atom.encode(), URL), "guid") == [guid]


def test_only_a_guid_that_is_a_url_is_a_link() -> None:
    assert of_first(parsed("<item><guid>seven</guid></item>"), "link") == []
    assert of_first(parsed("<item><guid>http://h.org/7</guid></item>"), "link") == ["http://h.org/7"]
    assert of_first(parsed("<item><guid>/7</guid><link>/7</link></item>"), "link") == ["http://h.org/7"]


def test_relative_links_are_resolved_and_create_no_new_entries(tmp_path: Path, server: FeedServer) -> None:
    text = rss("a", a="See &lt;a href='/more'&gt;this&lt;/a&gt;").replace(b"http://h.org/a", b"/a")
    server.pages["/feed"] = text
    log, source = opened(tmp_path, stream(path=server.url(), format="feed", every=1.0))
    assert fetched(source, 0) == 1
    server.pages["/feed"] = (302, {"Location": server.url("/new/feed").replace("127.0.0.1", "localhost")}, b"")
    server.pages["/new/feed"] = text
    assert fetched(source, 1) == 0
    assert fields(entries(log)[0].body)["description"] == [f"See this ({server.url('/more')})"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"<title>a</title>", b"<title>A</title>"),
        (b"About a", b"About A"),
        (b"http://h.org/a", b"http://h.org/A"),
        (b"02 Jan", b"03 Jan"),
    ],
)
def test_a_changed_entry_is_a_new_item(tmp_path: Path, server: FeedServer, before: bytes, after: bytes) -> None:
    definition = stream(path=server.url(), format="feed", every=1.0)
    server.pages["/feed"] = rss("a", "t5")
    log, source = opened(tmp_path, definition)
    assert fetched(source, 0) == 2
    server.pages["/feed"] = rss("a", "t5").replace(before, after)
    assert (fetched(source, 1), log.head()) == (1, 3)
    assert fields(entries(log)[2].body)["guid"] == ["a"]
    assert fetched(source, 2) == 0
    log, source = opened(tmp_path, definition)
    assert fetched(source, 0) == 0, "both forms are known after a restart"
    server.pages["/feed"] = rss("a", "t5")
    assert fetched(source, 1) == 0, "a feed that alternates gives each form once"


def test_one_guid_for_different_entries(tmp_path: Path, server: FeedServer) -> None:
    server.pages["/feed"] = rss("a", "b").replace(b"<guid>b</guid>", b"<guid>a</guid>")
    log, source = opened(tmp_path, stream(path=server.url(), format="feed", every=1.0))
    assert (fetched(source, 0), fetched(source, 1)) == (2, 0)
    assert titles(log) == ["a", "b"]


def test_differences_that_do_not_change_an_entry() -> None:
    one = "<item><title>T</title><guid>1</guid><description>d</description>{}</item>"
    keys = {parsed(one.format(more)).items[0].key for more in ("", "<category>c</category>", "<comments>/c</comments>")}
    assert len(keys) == 1


def test_items_contain_no_password(tmp_path: Path, server: FeedServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    url = server.url().replace("http://", "http://ann:s%40cret@")
    text = rss("a", a="See &lt;a href='/more'&gt;this&lt;/a&gt;").replace(b"http://h.org/a", b"/a")
    server.pages["/feed"] = (301, {"Location": "/moved"}, b"")
    server.pages["/moved"] = text
    log, source = opened(tmp_path, stream(path=url, format="feed", every=1.0))
    assert fetched(source, 0) == 1
    assert [headers["authorization"] for _, headers in server.requests] == ["Basic YW5uOnNAY3JldA=="] * 2
    (entry,) = entries(log)
    assert entry.body is not None
    assert b"cret" not in entry.body
    assert etree.fromstring(entry.body).findtext("channel_url") == server.url("/moved")
    assert etree.fromstring(entry.body).findtext("link") == server.url("/a")
    server.pages["/moved"] = (500, {}, b"")
    assert fetched(source, 1) == 0
    assert "answered 500" in str(source.trouble)
    assert "cret" not in str(source.trouble)
    assert "cret" not in caplog.text

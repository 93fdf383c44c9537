"""Files that feed readers and programs read, and stylesheets."""

from __future__ import annotations

import json
from datetime import datetime
from email.utils import parsedate_to_datetime
from pathlib import Path

import feedparser
import pyarrow.parquet as pq
import pytest
from lxml import etree

from fishweir.delivery import stylesheet_pool
from fishweir.delivery.options import BadArgument
from fishweir.delivery.outputs.http import check_url, host_of
from fishweir.testing import Clock, Weir
from tests.delivery.servers import Hooks

ITEM = "<item><title>{0} &amp; more</title><link>https://e.org/{0}</link><description>About {0}</description></item>"


def items(weir: Weir, *titles: str) -> None:
    weir.publish("S", [ITEM.format(title) for title in titles], timestamps=[float(i) for i, _ in enumerate(titles)])
    weir.step()


@pytest.fixture
def feed(weir: Weir) -> Weir:
    weir.execute("create stream S; create feed F from S where [title contains 'more']")
    return weir


FILES = [("rss 'f'", "rss20"), ("atom 'f'", "atom10"), ("file 'f.rss'", "rss20"), ("file 'f.atom'", "atom10")]


@pytest.mark.parametrize(("output", "version"), FILES)
def test_feeds_that_readers_accept(feed: Weir, output: str, version: str) -> None:
    feed.execute(f"subscribe to F output {output}")
    items(feed, "a", "b")
    items(feed, "c")
    path = output.split("'")[1]
    read = feedparser.parse(Path(path).read_bytes())
    assert (read.bozo, read.version, read.feed.title) == (False, version, "F")
    assert [(e.title, e.link, e.summary) for e in read.entries] == [
        (f"{name} & more", f"https://e.org/{name}", f"About {name}") for name in "cba"
    ]
    assert len({entry.id for entry in read.entries}) == 3
    assert all(entry.get("published_parsed") or entry.get("updated_parsed") for entry in read.entries)


def test_json_feed_output(feed: Weir) -> None:
    feed.execute("subscribe to F output jsonfeed 'f.json'")
    items(feed, "a")
    items(feed, "b")
    read = json.loads(Path("f.json").read_text())
    assert read["version"] == "https://jsonfeed.org/version/1.1"
    assert [(item["title"], item["url"]) for item in read["items"]] == [
        ("b & more", "https://e.org/b"),
        ("a & more", "https://e.org/a"),
    ]


def test_feeds_conform_to_their_specifications(weir: Weir) -> None:
    """Also for results without a title and a link, in a second delivery that reads the file of the first."""
    weir.execute("; ".join(f"subscribe to big output {name} 'f.{name}'" for name in ("rss", "atom", "jsonfeed")))
    for value in (7, 8):
        weir.publish("R", [{"x": value}])
        weir.step()
    channel = etree.parse("f.rss").getroot().find("channel")
    assert [channel.findtext(name) for name in ("title", "description")] == ["big", "Results of big"]
    assert channel.findtext("link")
    assert [item.findtext("description") for item in channel.iter("item")] == ["x: 8", "x: 7"]
    assert all(parsedate_to_datetime(item.findtext("pubDate")) for item in channel.iter("item"))
    atom = etree.parse("f.atom").getroot()
    for element in (atom, *atom.iter("{*}entry")):
        assert all(element.findtext(f"{{*}}{name}") for name in ("id", "title", "updated"))
        assert datetime.fromisoformat(element.findtext("{*}updated")).tzinfo is not None
    assert atom.findtext("{*}author/{*}name")
    assert [entry.findtext("{*}content") for entry in atom.iter("{*}entry")] == ["x: 8", "x: 7"], "without a link"
    for item in json.loads(Path("f.jsonfeed").read_text())["items"]:
        assert item["id"]
        assert item["content_text"]
        assert datetime.fromisoformat(item["date_published"]).tzinfo is not None


@pytest.mark.parametrize("output", ["rss", "atom", "jsonfeed"])
def test_feeds_are_bounded_and_have_each_result_once(feed: Weir, output: str) -> None:
    feed.execute(f"subscribe to F output {output} 'f'")
    items(feed, *(f"t{i}" for i in range(150)))
    text = Path("f").read_text()
    assert (text.count("t149 "), text.count("t50 "), text.count("t49 ")) == (1, 1, 0)
    assert not list(Path().glob(".f*")), "replaced in one step"


def test_parquet_files(weir: Weir) -> None:
    weir.execute("subscribe to big output parquet 'table'")
    for value in (6, 7):
        weir.publish("R", [{"x": value}])
        weir.step()
    table = pq.read_table("table")
    assert table.schema.names == ["query", "documents", "timestamp", "bindings", "output"]
    assert sorted(table.column("output").to_pylist()) == ['{"x": 6}', '{"x": 7}']


SHEET = """<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
<xsl:output method="{method}" omit-xml-declaration="yes"/>
<xsl:template match="/">{body}</xsl:template></xsl:stylesheet>"""


@pytest.mark.parametrize(
    ("method", "body", "made"),
    [
        ("text", "<xsl:value-of select='item/title'/>", "a & more"),
        ("html", "<p><xsl:value-of select='item/title'/><br/></p>", "<p>a &amp; more<br></p>"),
        ("xml", "<t><xsl:value-of select='item/title'/></t>", "<t>a &amp; more</t>"),
    ],
)
def test_stylesheets_produce_text_html_and_xml(feed: Weir, hooks: Hooks, method: str, body: str, made: str) -> None:
    Path("x.xsl").write_text(SHEET.format(method=method, body=body))
    feed.execute(
        f"subscribe to F apply 'x.xsl' output http '{hooks.url}'; subscribe to F apply 'x.xsl' output file 'f'"
    )
    items(feed, "a")
    assert [result["output"].strip() for result in hooks.taken[0].results] == [made]
    assert Path("f").read_text() == f"{made}\n"


def test_a_stylesheet_cannot_read_files(feed: Weir, hooks: Hooks) -> None:
    Path("secret.xml").write_text("<secret>42</secret>")
    Path("x.xsl").write_text(SHEET.format(method="text", body="<xsl:value-of select=\"document('secret.xml')\"/>"))
    feed.execute(f"subscribe to F apply 'x.xsl' output http '{hooks.url}'")
    items(feed, "a")
    assert "42" not in "".join(one.body.decode() for one in hooks.posted)


SLOW = """<xsl:call-template name="f"><xsl:with-param name="n" select="60"/></xsl:call-template></xsl:template>
<xsl:template name="f"><xsl:param name="n"/><xsl:if test="$n > 0">
<xsl:call-template name="f"><xsl:with-param name="n" select="$n - 1"/></xsl:call-template>
<xsl:call-template name="f"><xsl:with-param name="n" select="$n - 1"/></xsl:call-template></xsl:if>"""


def test_a_stylesheet_that_takes_too_long_is_ended(feed: Weir, hooks: Hooks, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would run for thousands of years. Its items can be inspected, and other deliveries continue."""
    monkeypatch.setattr(stylesheet_pool, "ITEM_TIMEOUT", 0.5)
    Path("slow.xsl").write_text(SHEET.format(method="text", body=SLOW))
    feed.execute(f"""
        subscribe to F apply 'slow.xsl' output file 'slow';
        subscribe to F output http '{hooks.url}';
        register feed F apply 'slow.xsl' as Slow;
        create query read as Slow//*;
    """)
    items(feed, "a")
    assert not Path("slow").exists()
    (letter,) = feed.letters()
    assert "slow.xsl exceeded the limit of 0.5 s" in str(letter.error)
    assert len(hooks.taken) == 1
    feed.run(until_idle=True)
    assert ["slow.xsl exceeded the limit" in one.reason for one in feed.set_aside()] == [True]


def test_tuples_go_through_stylesheets_too(weir: Weir) -> None:
    Path("x.xsl").write_text(SHEET.format(method="text", body="x is <xsl:value-of select='result/x'/>"))
    weir.execute("subscribe to big apply 'x.xsl' output file 'f'")
    weir.publish("R", [{"x": 7}])
    weir.step()
    assert Path("f").read_text() == "x is 7\n"


def test_apprise_reaches_a_service_by_its_url(weir: Weir, clock: Clock, hooks: Hooks) -> None:
    weir.execute(f"subscribe to big output notify '{hooks.url.replace('http', 'json')}/note'")
    hooks.answer = lambda _: 500 if len(hooks.posted) == 0 else 200
    weir.publish("R", [{"x": 7}])
    weir.step()
    clock.advance(1)
    weir.step()
    (one,) = hooks.taken
    assert (one.results["title"], one.results["message"]) == ("big", "x: 7")  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://h.org", "h.org:80"),
        ("HTTPS://H.org/a?b#c", "h.org:443"),
        ("https://h.org:8443/{secret key}", "h.org:8443"),
        ("http://user@[::1]/x", "::1:80"),
        ("http://u:{secret key}@h.org?x", "h.org:80"),
        ("http://h.org:0/", None),
        ("http://h.org:x/", None),
        ("http:///h.org", None),
        ("http://h.org/a b", None),
        ("http:h.org", None),
        ("http://u:p@h.org/", None),
        ("http://[h.org/", None),
    ],
)
def test_the_hosts_of_urls(url: str, host: str | None) -> None:
    if host is None:
        with pytest.raises(BadArgument):
            check_url(url)
    else:
        check_url(url)
        assert host_of(url) == host

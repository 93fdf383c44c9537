"""XML by URL: rows of a document that changes, whole documents, and parts of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fishweir import testing
from fishweir.errors import FishweirError
from fishweir.testing import Clock
from tests.intake.feed_server import FeedServer, serving
from tests.intake.support import bodies, entries, fetched, opened, stream


@pytest.fixture
def server() -> Iterator[FeedServer]:
    with serving() as running:
        yield running


def quotes(**prices: int) -> bytes:
    rows = "".join(f"<Quote><Symbol>{name}</Symbol><Price>{price}</Price></Quote>" for name, price in prices.items())
    return f"<Quotes>{rows}</Quotes>".encode()


def test_rows_of_a_document_that_changes(tmp_path: Path, server: FeedServer) -> None:
    definition = stream(path=server.url("/q.xml"), format="xml", rows="/Quotes/Quote", key="Symbol", every=10.0)
    server.pages["/q.xml"] = (200, {"ETag": "1"}, quotes(A=1, B=2))
    log, source = opened(tmp_path, definition)
    assert (fetched(source, 0), source.working) == (2, False)
    assert fetched(source, 10) == 0, "304"
    server.pages["/q.xml"] = (200, {"ETag": "2"}, quotes(A=1, B=3, C=4))
    assert (fetched(source, 19), fetched(source, 20)) == (0, 2)
    log, source = opened(tmp_path, definition)
    server.pages["/q.xml"] = quotes(B=3, C=5)
    assert fetched(source, 30) == 2, "compared with what came before the restart"
    assert [entry.change for entry in entries(log)] == [
        "inserted", "inserted", "updated", "inserted", "updated", "deleted",
    ]  # fmt: skip
    server.pages["/q.xml"] = (500, {}, b"")
    assert fetched(source, 40) == 0
    assert source.trouble == f"stream S: {server.url('/q.xml')}: the server answered 500 Internal Server Error"
    server.pages["/q.xml"] = b"<Quotes><Quote>"
    assert fetched(source, 60) == 1
    assert str(entries(log)[-1].problem).startswith(f"{server.url('/q.xml')}: ")


def test_whole_documents_and_parts(tmp_path: Path, server: FeedServer) -> None:
    server.pages["/a.xml"] = quotes(A=1, B=2)
    plain = stream(path=server.url("/a.xml"), format="xml", every=1.0)
    split = stream(path=server.url("/a.xml"), format="xml", every=1.0, split="//Quote")
    logs, sources = zip(*(opened(tmp_path / n, d) for n, d in (("p", plain), ("s", split))), strict=True)
    assert [fetched(source, 0) for source in sources] == [1, 2]
    assert [fetched(source, 1) for source in sources] == [0, 0]
    server.pages["/a.xml"] = quotes(A=1, B=7)
    assert [fetched(source, 2) for source in sources] == [1, 1]
    assert len(bodies(entries(logs[0]))) == 2
    assert "<Price>7</Price>" in bodies(entries(logs[1]))[2]


def test_statements(tmp_path: Path, server: FeedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    clock = Clock(1000.0)
    server.pages["/q.xml"], server.pages["/doc.xml"] = quotes(A=1, B=20), b"<doc><t>hello</t></doc>"
    with testing.open(tmp_path / "home", clock=clock) as weir:
        weir.execute(f"""
            create stream q from '{server.url("/q.xml")}' rows /Quotes/Quote key Symbol every 10 seconds;
            create query high as select Symbol, Price from q where Price > 10;
            create Greeting where <doc><t>$t</></> in "{server.url("/doc.xml")}" construct <r>$t</>;
        """)
        weir.run(until_idle=True)
        assert [r.output for r in weir.results("high")] == [{"Symbol": "B", "Price": "20"}]
        assert [r.output for r in weir.results("Greeting")] == ["<r>hello</r>"]
        for statement, words in (
            ("create stream x (a int) from 'https://h.org/x.csv';", "only XML and feeds are read from the web"),
            ("create stream x from 'ftp://h.org/x.xml';", "expected http, https or file"),
            ("create stream x from 'https:///x.xml' every 1 minute;", "does not name a host"),
            ("create stream x from 'x.xml' every 1 minute;", "'every' needs"),
        ):
            with pytest.raises(FishweirError, match=words):
                weir.execute(statement)

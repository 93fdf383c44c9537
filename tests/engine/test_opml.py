"""Lists of feeds: exported from one home and imported into another; the metadata of feeds."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from fishweir import testing
from fishweir.cli import app
from fishweir.engine.status import EngineStatus
from fishweir.errors import SourceError
from tests.intake.feed_server import rss, serving

LIST = b"""<?xml version="1.0"?><opml version="1.0"><head><title>Mine</title></head><body>
  <outline text="News"><outline text="The Daily &amp; more" type="rss" xmlUrl="https://example.org/daily"/>
  <outline title="The Daily - more" xmlUrl="https://example.org/other?a='b'" type="atom"/></outline>
  <outline text="again" xmlUrl="https://example.org/daily"/><outline text="7 days" XMLURL="https://example.org/7"/>
  <outline text="no feed" htmlUrl="https://example.org/"/><outline text="bad" xmlUrl="file:///etc/passwd"/>
</body></opml>"""


def test_import(weir) -> None:  # type: ignore[no-untyped-def]
    assert weir.import_opml(LIST) == ["The_Daily_more", "The_Daily_more_2", "feed_7_days"]
    places = {name: stream.path for name, (_, stream) in weir.catalog.streams().items()}
    assert places["The_Daily_more_2"] == "https://example.org/other?a=%27b%27"
    assert weir.import_opml(LIST.replace(b"7", b"8")) == ["feed_8_days"], "existing feeds are skipped"
    for text, words in ((b"<html/>", "the document element is html"), (b"<opml", "not an OPML document")):
        with pytest.raises(SourceError, match=words):
            weir.import_opml(text)


def test_metadata_of_feeds_is_shown_and_exported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with serving() as server, testing.open(tmp_path / "home") as weir:
        about = b"<title>Chan</title><link>http://h.org/</link><description>All &amp;lt;b&amp;gt; of it</description>"
        server.pages["/feed"] = rss("a").replace(b"<title>Chan</title>", about)
        (tmp_path / "x.rss").write_bytes(rss("b"))
        weir.execute(f"register feed {server.url().replace('//', '//ann:secret@')} as Web; register feed x.rss as Own;")
        weir.step()
        status = weir.status()
        assert isinstance(status, EngineStatus)
        assert status.streams["Web"].about == {
            "title": "Chan", "link": "http://h.org/", "description": "All <b> of it",
        }  # fmt: skip
        assert "    Chan (http://h.org/): All <b> of it" in str(status)
        exported = weir.export_opml()
        assert "secret" not in exported
        assert "secret" not in str(status)
    with testing.open(tmp_path / "other") as weir:
        assert weir.import_opml(exported.encode()) == ["Web"], "files are those of the other home's machine"
        assert weir.catalog.streams()["Web"][1].path == server.url()


def test_commands(tmp_path: Path) -> None:
    (tmp_path / "mine.opml").write_bytes(LIST)
    home = ["--home", str(tmp_path / "home")]
    done = CliRunner().invoke(app, ["opml", "import", str(tmp_path / "mine.opml"), *home])
    assert done.stdout.split() == ["The_Daily_more", "The_Daily_more_2", "feed_7_days"]
    done = CliRunner().invoke(app, ["opml", "export", str(tmp_path / "out.opml"), *home])
    assert done.exit_code == 0
    assert (tmp_path / "out.opml").read_text().count("<outline ") == 3
    assert CliRunner().invoke(app, ["opml", "import", "nowhere.opml", *home]).exit_code == 1

"""Relative paths count from the folder in which a statement is registered, wherever the job runs later."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from fishweir import testing
from fishweir.cli import app

SHEET = """<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
<xsl:template match="/"><a/></xsl:template></xsl:stylesheet>"""
SCRIPT = """
create stream R (x int) from 'in/*.csv';
create query q as select x from R where x > 5 do append 'out/hits.jsonl';
create named where <page><n>$n</n></page> in "page.xml" construct $n do append '../beside.jsonl';
create stream S; create feed F from S;
subscribe to F apply 'sheet.xsl' output file 'out/F.xml';
subscribe to F output rss 'F.rss';
subscribe to F output http 'https://example.org/hook';
"""


@pytest.fixture
def registered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder to register in, with the files that the script names; the script lies elsewhere."""
    folder = tmp_path / "registered"
    (folder / "in").mkdir(parents=True)
    (folder / "in" / "a.csv").write_text("x\n4\n7\n")
    (folder / "page.xml").write_text("<page><n>1</n></page>")
    (folder / "sheet.xsl").write_text(SHEET)
    for name in ("scripts", "running"):
        (tmp_path / name).mkdir()
    (tmp_path / "scripts" / "script.fw").write_text(SCRIPT)
    monkeypatch.chdir(folder)
    return folder


def by_python(root: Path) -> None:
    with testing.open(root / "home") as weir:
        weir.execute(SCRIPT)


def by_command(root: Path) -> None:
    done = CliRunner().invoke(app, ["execute", "-f", "../scripts/script.fw", "--home", "../home"])
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize("register", [by_python, by_command])
def test_from_the_folder_of_registration(registered, register, monkeypatch, tmp_path):
    register(tmp_path)
    monkeypatch.chdir(tmp_path / "running")
    with testing.open(tmp_path / "home") as weir:
        weir.run(until_idle=True)
        assert [result.output for result in weir.results("q")] == [{"x": 7}]
        sheets_and_targets = [(s.stylesheet, s.target) for s in weir.status("F").subscribers]
    assert len((registered / "out" / "hits.jsonl").read_text().splitlines()) == 1
    assert len((tmp_path / "beside.jsonl").read_text().splitlines()) == 1
    assert sheets_and_targets == [
        (str(registered / "sheet.xsl"), str(registered / "out" / "F.xml")),
        (None, str(registered / "F.rss")),
        (None, "https://example.org/hook"),
    ]
    assert not list((tmp_path / "running").iterdir())


def test_unsubscribe_names_the_same_file(registered, tmp_path):
    with testing.open(tmp_path / "home") as weir:
        weir.execute(SCRIPT)
        weir.execute("unsubscribe from F output file 'out/F.xml'")
        weir.execute(f"unsubscribe from F output rss '{registered / 'F.rss'}'")
        assert [s.output for s in weir.status("F").subscribers] == ["http"]

"""`check` and `repair`: damage is found, what can be rebuilt is rebuilt, and nothing is deleted."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner

import fishweir
from fishweir import HomeError, testing
from fishweir.cli import app
from fishweir.intake import appending
from fishweir.intake.packs import framed
from fishweir.pipeline.home import Home
from fishweir.sealed import seal_of_bytes, write_json

SCRIPT = """
create stream R (k int, x int);
create query big as select x from R where x > 2;
create query pairs as select A.x as x, B.x as y from R [range 100] as A, R [range 100] as B
    where A.k = B.k and A.x < B.x;
"""


def published(home: Path, first: int) -> Counter[tuple[str, ...]]:
    with testing.open(home) as weir:
        weir.execute(SCRIPT)
        weir.publish("R", [{"k": n % 3, "x": n} for n in range(first, first + 9)], [float(n) for n in range(9)])
        weir.run(until_idle=True)
        return Counter((r.query, *r.documents) for r in weir.results())


@pytest.fixture
def home(tmp_path: Path) -> Path:
    published(tmp_path / "home", 0)
    published(tmp_path / "home", 9)
    return tmp_path / "home"


def test_an_undamaged_home(home: Path) -> None:
    seen: list[tuple[int, int]] = []
    report = fishweir.check(home, lambda done, total: seen.append((done, total)))
    assert report.findings == ()
    assert report.files > 10
    assert seen[-1][0] == seen[-1][1] == report.bytes


REBUILT = ("home.json", "streams/1/stream.json", "streams/1/log/segments.list", "statistics.json")


@pytest.mark.parametrize("name", REBUILT)
def test_files_that_are_rebuilt(home: Path, name: str) -> None:
    content = bytearray((home / name).read_bytes())
    content[len(content) // 2] ^= 4
    (home / name).write_bytes(content)
    assert Path(name).name in [finding.path.name for finding in fishweir.check(home).findings]
    assert fishweir.repair(home).left.is_whole
    assert any((home / "damaged").iterdir())
    assert published(home, 18)


def test_files_that_are_lost(home: Path) -> None:
    path = max(home.glob("results/*/match-*.arrow"))
    path.unlink()
    left = fishweir.repair(home).left
    assert [finding.path for finding in left.findings if str(path) in str(finding)]
    with testing.open(home) as weir, pytest.raises(HomeError, match=path.name):
        list(weir.results())


def test_the_newest_micro_batch_is_discarded_on_request(home: Path, tmp_path: Path) -> None:
    wanted = published(tmp_path / "other", 0) and published(tmp_path / "other", 9)
    path = max(home.glob("results/commits/0*.json"))
    path.write_bytes(b"")
    assert not fishweir.repair(home).left.is_whole
    assert fishweir.repair(home, discard=True).left.is_whole
    with testing.open(home) as weir:
        weir.run(until_idle=True)
        assert Counter((r.query, *r.documents) for r in weir.results()) == wanted


def test_another_format_and_another_catalog_are_refused(home: Path, tmp_path: Path) -> None:
    published(tmp_path / "other", 0)
    (home / "catalog.db").write_bytes((tmp_path / "other" / "catalog.db").read_bytes())
    with pytest.raises(HomeError, match="another home"):
        testing.open(home)
    (home / "catalog.db").unlink()
    with pytest.raises(HomeError, match="is missing or empty"):
        testing.open(home)
    assert not (home / "catalog.db").exists(), "no empty one is created"
    assert "catalog.db" in str(fishweir.repair(home).left)
    assert not (home / "catalog.db").exists()
    write_json(tmp_path / "other" / "home.json", {"format": 99, "id": "x"})
    with pytest.raises(HomeError, match="format 99"):
        testing.open(tmp_path / "other")


def test_an_older_catalog_is_accepted_only_on_request(home: Path, tmp_path: Path) -> None:
    catalog, older = home / "catalog.db", tmp_path / "older.db"
    older.write_bytes(catalog.read_bytes())
    with testing.open(home) as weir:
        weir.execute("create query lost as select x from R where x = 1")
    catalog.write_bytes(older.read_bytes())
    with pytest.raises(HomeError, match=r"catalog\.db is older than its home \(change 3 of 4.*accept-older-catalog"):
        testing.open(home)
    assert "older than its home" in str(fishweir.repair(home).left)
    repaired = fishweir.repair(home, accept_older_catalog=True)
    assert "the changes 4 to 4 are lost" in str(repaired)
    assert repaired.left.is_whole
    assert published(home, 18)


def test_a_catalog_without_queries_that_results_name_is_not_accepted(home: Path, tmp_path: Path) -> None:
    older = (home / "catalog.db").read_bytes()
    with testing.open(home) as weir:
        weir.execute("create query more as select x from R where x = 1")
        weir.publish("R", [{"k": 1, "x": 1}])
        weir.run(until_idle=True)
    (home / "catalog.db").write_bytes(older)
    with pytest.raises(HomeError, match="results refer to change 4"):
        fishweir.repair(home, accept_older_catalog=True)


def test_a_last_segment_that_was_not_committed_is_set_aside(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A power cut: the link is there, the content and the line of the list are not."""
    (home / "streams/1/log/000000000000019.arrow").write_bytes(b"ARROW1")
    wanted = published(home, 18)
    assert "was not written completely when the machine stopped: it is set aside" in caplog.text
    assert fishweir.check(home).is_whole
    assert len(list((home / "streams/1/log").glob("*.incomplete"))) == 1
    assert wanted["big", "R-27"] == 1


def test_a_segment_that_was_cut_off_is_no_damage(home: Path) -> None:
    """It was not acknowledged; whoever opens the log sets it aside."""
    pack = home / "streams/1/log/000000000000001.pack"
    pack.write_bytes(pack.read_bytes() + framed(memoryview(b"content"), 3, seal_of_bytes(b"content"))[0] + bytes(64))
    assert fishweir.check(home).is_whole
    assert fishweir.repair(home).left.is_whole
    assert len(list(pack.parent.glob("*.incomplete"))) == 1
    assert published(home, 18)["big", "R-27"] == 1


@pytest.mark.parametrize("lost", [1, 2, "all", "file"])
def test_lost_lines_of_a_list_are_rebuilt(home: Path, lost: int | str) -> None:
    path = home / "streams/1/log/segments.list"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"" if lost == "all" else b"".join(lines[:-1] if lost == 1 else lines[1:]))
    if lost == "file":
        path.unlink()
    repaired = fishweir.repair(home)
    assert repaired.left.is_whole
    assert "segments.list was " in str(repaired)
    assert fishweir.repair(home).done == ()
    assert path.read_bytes() == b"".join(lines)
    assert published(home, 18)["big", "R-27"] == 1


def test_a_file_that_is_missing_together_with_its_line(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(appending, "LARGEST_SEGMENT", 0)
        published(home, 18)
        published(home, 27)
    log = home / "streams/1/log"
    (log / "000000000000019.arrow").unlink()
    lines = (log / "segments.list").read_bytes().splitlines(keepends=True)
    (log / "segments.list").write_bytes(b"".join(lines[:2] + lines[3:]))
    assert [finding.wrong for finding in fishweir.check(home).findings] == [
        f"{log} has no segment that begins with entry 19: restore it from a backup"
    ]


def test_a_missing_definition_of_a_stream(home: Path) -> None:
    (home / "streams/1/stream.json").unlink()
    with pytest.raises(HomeError, match=r"streams/1/stream\.json is missing"):
        Home(home).stream_ids()


def run(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, arguments)
    return done.exit_code, done.output


def test_the_commands(home: Path) -> None:
    code, said = run("check", "--home", str(home))
    assert code == 0, said
    assert "nothing is missing or damaged" in said
    assert "verifying" in said, "a progress bar"
    path = max(home.glob("results/*/match-*.arrow"))
    (home / "statistics.json").write_bytes(b"")
    kept = path.read_bytes()
    path.unlink()
    files = {one for one in home.rglob("*") if one.is_file()}
    code, said = run("check", "--home", str(home))
    assert code == 1
    assert f"{path} is missing" in said
    assert "statistics.json is empty" in said
    code, said = run("repair", "--home", str(home))
    assert code == 1
    assert "rebuilt:" in said
    assert "statistics.json was moved to damaged/" in said
    assert f"cannot be recovered without a backup:\n  {path} is missing" in said
    gone = files - {one for one in home.rglob("*") if one.is_file()}
    assert gone == {home / "statistics.json"}, "it is in the folder `damaged` now"
    path.write_bytes(kept)
    assert run("check", "--home", str(home))[0] == 0
    code, said = run("check", "--home", str(home / "nothing"))
    assert (code, "there is no home at" in said) == (1, True)


def test_checking_while_the_job_runs(home: Path) -> None:
    """Meanwhile documents arrive, micro-batches are committed and states removed; none of this counts as damage."""
    with testing.open(home, documents_per_batch=5) as weir:
        weir.start()
        for first in range(100, 600, 50):
            weir.publish("R", [{"k": n % 3, "x": n} for n in range(first, first + 50)], [float(n) for n in range(50)])
            assert run("check", "--home", str(home))[0] == 0
            with pytest.raises(HomeError, match="another process is running the job"):
                fishweir.repair(home)
        weir.wait_idle()
        weir.stop()
    assert fishweir.check(home).is_whole

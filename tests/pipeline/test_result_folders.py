"""Folders of result files: micro-batches share them, and those of earlier versions are still read."""

from __future__ import annotations

from pathlib import Path

import pytest

from fishweir import testing
from fishweir.engine.check import check
from fishweir.pipeline import commits
from fishweir.pipeline.home import write_json
from fishweir.sealed import overwrite_json, read_sealed

QUERIES = """
    create stream R (k int);
    create query q as select k from R where k > 1;
    create query j as select a.k from R [range 100 seconds] a, R [range 100 seconds] b where a.k = b.k;
"""


def publish(home: Path, values: range) -> None:
    with testing.open(home) as weir:
        weir.execute(QUERIES)
        for value in values:
            weir.publish("R", [{"k": value}, {"k": value % 3}], timestamps=[float(value), float(value)])
            weir.run(until_idle=True)


def results(home: Path) -> list[tuple[str, list[str]]]:
    with testing.open(home) as weir:
        return sorted((result.query, result.documents) for result in weir.results())


def folders(home: Path) -> dict[str, int]:
    """The number of files of each folder with result rows."""
    found = (path.parent.name for path in (home / "results").glob("[0-9]*/*.arrow"))
    return {name: count for name in found for count in [len(list((home / "results" / name).iterdir()))]}


def test_micro_batches_share_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(tmp_path / "one", range(5))
    assert folders(tmp_path / "one").keys() == {"000000"}
    monkeypatch.setattr(commits, "SHARED", 2)
    publish(tmp_path / "two", range(5))
    assert folders(tmp_path / "two").keys() == {"000000", "000001", "000002"}
    assert results(tmp_path / "one") == results(tmp_path / "two")


def as_before(home: Path) -> None:
    """Moves result files to a folder for each micro-batch, and rewrites the commits as earlier versions did."""
    folder, before = home / "results", ""
    for path in sorted((folder / "commits").glob("0*.json")):
        content, _ = read_sealed(path)
        shared, own = folder / content.pop("folder"), folder / path.stem
        own.mkdir()
        for name, seal in list(content["files"].items()):
            stage, _, part = name.split("-")
            (shared / name).rename(own / f"{stage}-{part}")
            content["files"][f"{stage}-{part}"] = content["files"].pop(name)
            assert content["files"][f"{stage}-{part}"] == seal
        before = write_json(path, content | {"before": before})
        overwrite_json(folder / "commits" / "last", {"batch": content["batch"], "xxh3": before})
    shared.rmdir()


def test_results_of_earlier_versions_are_read_and_continued(tmp_path: Path) -> None:
    publish(tmp_path / "new", range(6))
    publish(tmp_path / "old", range(4))
    as_before(tmp_path / "old")
    assert folders(tmp_path / "old").keys() == {f"{batch:09d}" for batch in range(4)}
    assert check(tmp_path / "old").is_whole
    publish(tmp_path / "old", range(4, 6))
    assert "000000" in folders(tmp_path / "old")
    assert results(tmp_path / "old") == results(tmp_path / "new")
    assert check(tmp_path / "old").is_whole

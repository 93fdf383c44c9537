"""The archive of Spark's classes: which JVM uses it, and what happens if it is missing or does not fit."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from fishweir.java import ensure_java
from fishweir.pipeline.spark.class_archive import archive_of, options_of


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FISHWEIR_CACHE", str(tmp_path))
    return tmp_path


def test_each_installation_has_its_own_archive(cache: Path) -> None:
    places = {archive_of(java, spark) for java in ("/java17", "/java21") for spark in ("/a/pyspark", "/b/pyspark")}
    assert len(places) == 4
    assert {place.parent for place in places} == {cache}


def test_without_an_archive_there_are_no_options(cache: Path) -> None:
    archive = archive_of("/java", "/spark")
    assert options_of(archive) == ""
    archive.write_bytes(b"")
    assert options_of(archive).endswith(f"-XX:SharedArchiveFile={archive}")


@pytest.mark.parametrize("content", [b"", b"no archive" * 1000])
def test_an_archive_that_does_not_fit_is_ignored_silently(cache: Path, content: bytes) -> None:
    java = ensure_java()
    archive = archive_of(java, "/spark")
    archive.write_bytes(content)
    done = subprocess.run(
        [Path(java, "bin", "java"), *shlex.split(options_of(archive)), "-version"], capture_output=True, text=True
    )
    assert done.returncode == 0
    assert done.stdout == ""
    assert "archive" not in done.stderr

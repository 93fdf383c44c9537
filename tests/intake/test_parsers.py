"""Feeds are fetched and parsed outside the caller's thread, and no process is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fishweir.intake import Source
from fishweir.intake.sources import parsers
from fishweir.intake.sources.fetch import submit
from tests.intake.feed_server import rss
from tests.intake.support import fetched, opened, stream, titles


@pytest.fixture(autouse=True)
def _no_processes_before_or_after() -> Iterator[None]:
    submit(parsers.end_all()).result()
    yield
    submit(parsers.end_all()).result()


def signal_parsers(number: signal.Signals) -> list[int]:
    pids = [parser.process.pid for parser in parsers._running]
    for pid in pids:
        os.kill(pid, number)
    return pids


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def feed_of(base: Path, name: str) -> tuple[Path, Source]:
    file = base / f"{name}.rss"
    file.write_bytes(rss("a"))
    log, source = opened(base, stream(path=str(file), format="feed", every=1.0))
    assert (fetched(source, 0), titles(log)) == (1, ["a"])
    return file, source


def test_parsing_a_feed_blocks_no_others(tmp_path: Path) -> None:
    file, source = feed_of(tmp_path, "slow")
    signal_parsers(signal.SIGSTOP)
    file.write_bytes(rss("a", "b"))
    assert list(source.poll(1)) == []
    other = tmp_path / "other"
    other.mkdir()
    feed_of(other, "quick")
    assert list(source.poll(1)) == [], "still being parsed"
    signal_parsers(signal.SIGCONT)
    assert fetched(source, 1) == 1


def test_a_parser_that_takes_too_long_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, source = feed_of(tmp_path, "endless")
    (pid,) = signal_parsers(signal.SIGSTOP)
    file.write_bytes(rss("a", "b"))
    monkeypatch.setattr(parsers, "LONGEST", 0.1)
    assert fetched(source, 1) == 0
    assert source.trouble == f"feed S: {file}: parsing took longer than 0.1 s"
    assert not is_there(pid)
    monkeypatch.undo()
    assert fetched(source, 100) == 1


def test_a_parser_that_dies_is_replaced(tmp_path: Path) -> None:
    file, source = feed_of(tmp_path, "feed")
    signal_parsers(signal.SIGSTOP)
    file.write_bytes(rss("a", "b"))
    assert list(source.poll(1)) == []
    signal_parsers(signal.SIGKILL)
    assert fetched(source, 1) in (0, 1), "whether the request had reached it"
    assert fetched(source, 100) + fetched(source, 200) <= 1
    assert source.trouble is None


def test_a_closed_source_leaves_no_running_parser(tmp_path: Path) -> None:
    file, source = feed_of(tmp_path, "feed")
    (pid,) = signal_parsers(signal.SIGSTOP)
    file.write_bytes(rss("a", "b"))
    assert list(source.poll(1)) == []
    source.close()  # type: ignore[attr-defined]
    _, again = opened(tmp_path, stream(path=str(file), format="feed"))
    assert fetched(again, 1) in (0, 1)
    submit(parsers.end_all()).result()
    assert not is_there(pid)


def test_an_idle_parser_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsers, "IDLE", 0.0)
    feed_of(tmp_path, "feed")

    async def ended() -> None:
        while parsers._running or parsers._ending:
            await parsers.asyncio.sleep(0.01)

    submit(ended()).result(60)
    assert not parsers._free


@pytest.mark.parametrize("kind", ["FIFO", "folder"])
def test_files_that_are_not_regular_are_named(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "place"
    if kind == "FIFO":
        os.mkfifo(place)
    else:
        place.mkdir()
    log, source = opened(tmp_path, stream(path=str(place), format="feed"))
    assert (fetched(source, 0), log.head(), source.working) == (0, 0, False)
    assert source.trouble == f"feed S: {place}: it is a {kind}, not a regular file"


SCRIPT = """
import os, signal, sys
from fishweir import testing
from fishweir.intake.sources import parsers

weir = testing.open("home")
weir.execute("register feed feed.rss as F; create feed All from F;")
weir.run(until_idle=True)
print(len(list(weir.results("All"))), *[parser.process.pid for parser in parsers._running], flush=True)
if sys.argv[1] == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("end", ["ended", "killed"])
def test_no_process_outlives_the_program(tmp_path: Path, end: str) -> None:
    """The parser shares the program's standard error, so reading it ends when both have ended."""
    (tmp_path / "feed.rss").write_bytes(rss("a"))
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, end], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert done.returncode == (0 if end == "ended" else -signal.SIGKILL)
    count, pid = map(int, done.stdout.split())
    assert count == 1
    assert end == "killed" or not is_there(pid), "a killed process cannot clean up its children"

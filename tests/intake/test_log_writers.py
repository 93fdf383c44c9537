"""Writers of a log: several processes and threads append at once, fork or are killed; nothing is lost or locked."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import random
import shutil
import signal
import threading
import time
from pathlib import Path

import pytest

from fishweir.intake import StreamLog, appending, healing
from fishweir.intake.segment_list import LIST, locked
from tests.intake.logs import XML, append, bodies, two_segments


@pytest.fixture
def log(tmp_path: Path) -> StreamLog:
    return two_segments(tmp_path)


@pytest.mark.parametrize("own_files", [False, True])
def test_opened_while_another_process_appends(tmp_path: Path, own_files: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments without a line are not known yet, and listed before anything is appended."""
    monkeypatch.setattr(appending, "LARGEST_PACK", 3_000)
    monkeypatch.setattr(healing, "PATIENCE", 0.0)
    log = StreamLog(tmp_path / "log", XML)
    for number in range(12):
        with monkeypatch.context() as patch:
            if own_files and number % 5 == 0:
                patch.setattr(appending, "LARGEST_SEGMENT", 0)
            append(log, str(number))
    for left in range(12):
        folder = tmp_path / str(left)
        shutil.copytree(tmp_path / "log", folder)
        lines = (folder / LIST).read_bytes().splitlines(keepends=True)
        (folder / LIST).write_bytes(b"".join(lines[:left]))
        with locked(str(folder)):
            again = StreamLog(folder, XML)
        assert again.head() == left
        assert append(again, "12") == range(13, 14)
        assert bodies(again) == bodies(StreamLog(folder, XML)) == [str(number) for number in range(13)]
        assert len((folder / LIST).read_bytes().splitlines()) == 13


def test_opened_while_another_process_heals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log is not opened with a part of what was acknowledged, however long it takes to list it."""
    log = StreamLog(tmp_path, XML)
    for number in range(9):
        append(log, str(number))
    lines = (tmp_path / LIST).read_bytes().splitlines(keepends=True)
    os.truncate(tmp_path / LIST, 0)
    clock = itertools.count()
    with locked(str(tmp_path)) as list_file:
        monkeypatch.setattr(healing.time, "monotonic", lambda: next(clock))
        monkeypatch.setattr(healing.time, "sleep", lambda _: os.write(list_file, lines.pop(0)))
        assert StreamLog(tmp_path, XML).head() == 9


def test_a_thread_looks_while_another_appends(log: StreamLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """It reads the line before the writer takes note of it."""
    real = os.write

    def write(handle: int, line: bytes) -> int:
        written = real(handle, line)
        thread = threading.Thread(target=log.head)
        thread.start()
        thread.join()
        return written

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", write)
        append(log, "d")
    append(log, "e")
    assert log.segments.firsts == [1, 3, 4, 5]
    assert bodies(log) == ["a", "b", "c", "d", "e"]


def test_a_list_that_is_replaced_while_a_writer_waits(log: StreamLog, tmp_path: Path) -> None:
    """The writer then waits for the lock of the new list."""
    with locked(str(tmp_path)):
        writer = threading.Thread(target=append, args=(StreamLog(tmp_path, XML), "d"))
        writer.start()
        shutil.copy(tmp_path / LIST, tmp_path / "new")
        (tmp_path / "new").replace(tmp_path / LIST)
        inner = locked(str(tmp_path))
        inner.__enter__()
    writer.join(0.2)
    assert writer.is_alive()
    assert bodies(log) == ["a", "b", "c"]
    inner.__exit__(None, None, None)
    writer.join()
    assert bodies(log) == ["a", "b", "c", "d"]


def test_a_process_forked_in_the_meantime_does_not_keep_the_lock(log: StreamLog, tmp_path: Path) -> None:
    with locked(str(tmp_path)):
        inherited = os.dup(next(handle for handle in map(int, os.listdir("/proc/self/fd")) if is_list(handle)))
    assert append(log, "d") == range(4, 5)
    os.close(inherited)


def test_a_process_forked_by_one_that_is_killed_does_not_keep_the_lock(log: StreamLog, tmp_path: Path) -> None:
    (ready, is_ready), (ended, end) = os.pipe(), os.pipe()
    holder = os.fork()
    if not holder:
        os.close(end)
        inside = threading.Event()
        threading.Thread(target=hold, args=(tmp_path, inside), daemon=True).start()
        inside.wait()
        if os.fork():
            threading.Event().wait()
        os.write(is_ready, b".")
        os.read(ended, 1)
        os._exit(0)
    os.read(ready, 1)
    os.kill(holder, signal.SIGKILL)
    os.waitpid(holder, 0)
    with locked(str(tmp_path), wait=False):
        for handle in (ready, is_ready, ended, end):
            os.close(handle)


def hold(folder: Path, inside: threading.Event) -> None:
    with locked(str(folder)):
        inside.set()
        threading.Event().wait()


def is_list(handle: int) -> bool:
    try:
        return os.readlink(f"/proc/self/fd/{handle}").endswith(LIST)
    except OSError:
        return False


def write_until_killed(folder: Path, name: str, done: str) -> None:
    """Appends texts, some of them large, and notes each one when the log has accepted it."""
    log, rng = StreamLog(folder, XML), random.Random(name)
    appending.LARGEST_SEGMENT, appending.LARGEST_PACK = 20_000, 60_000
    with open(done, "a", buffering=1) as noted:
        for number in range(1_000_000):
            text = f"{name} {number} {'x' * rng.choice((1, 500, 5_000, 30_000))}"
            append(log, text)
            noted.write(f"{name} {number}\n")


def test_writers_that_are_killed(tmp_path: Path) -> None:
    """Two writers at a time are killed at any moment. What the log has accepted is in it once, in order; each writer
    has at most one more text in it."""
    context, rng = multiprocessing.get_context("spawn"), random.Random(5)
    folder, done = tmp_path / "log", tmp_path / "done"
    for round in range(3):
        writers = [
            context.Process(target=write_until_killed, args=(folder, f"{round}{side}", str(done))) for side in "ab"
        ]
        for writer in writers:
            writer.start()
        known, ends = done.stat().st_size if done.exists() else 0, time.monotonic() + 600
        while (not done.exists() or done.stat().st_size < known + 500) and time.monotonic() < ends:
            time.sleep(0.01)
        for writer in writers:
            time.sleep(rng.random() / 100)
            assert writer.pid is not None
            os.kill(writer.pid, signal.SIGKILL)
            writer.join()
    found = [" ".join(text.split(" ")[:2]) for text in bodies(StreamLog(folder, XML))]
    accepted = done.read_text().splitlines()
    assert len(accepted) > 100
    for name in [f"{round}{side}" for round in range(3) for side in "ab"]:
        own = [text for text in found if text.startswith(f"{name} ")]
        noted = [text for text in accepted if text.startswith(f"{name} ")]
        assert own == [f"{name} {number}" for number in range(len(own))]
        assert own[: len(noted)] == noted
        assert len(own) <= len(noted) + 1

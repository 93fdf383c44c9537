"""Packs: small segments share files; whatever a process or a machine leaves behind when it stops, the log continues."""

from __future__ import annotations

import errno
import itertools
import multiprocessing
import os
import random
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fishweir.errors import CannotWrite, HomeError
from fishweir.intake import StreamLog, appending, documents_batch, healing
from fishweir.intake.packs import ALIGNED, packed_from
from fishweir.intake.segment_list import LIST, locked, rebuilt_list
from tests.intake.support import stream

XML = stream()


def append(log: StreamLog, *texts: str, cursor: dict[str, int] | None = None) -> range:
    return log.append(documents_batch(log.stream, list(texts), None, None, 5.0), cursor)


def bodies(log: StreamLog) -> list[str]:
    """All entries, read at once and one by one."""
    found = [body for _, batch in log.read(0, log.head()) for body in batch.column("body").to_pylist()]
    assert found == [log.entry(number).body for number in range(1, log.head() + 1)]
    return [body.decode() for body in found]


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != LIST)


@pytest.fixture
def log(tmp_path: Path) -> StreamLog:
    """Two segments in a pack."""
    found = StreamLog(tmp_path, XML)
    append(found, "a", "b")
    append(found, "c", cursor={"n": 1})
    return found


def test_small_segments_share_a_file(log: StreamLog, tmp_path: Path) -> None:
    assert files(tmp_path) == ["000000000000001.pack"]
    assert bodies(log) == bodies(StreamLog(tmp_path, XML)) == ["a", "b", "c"]
    assert list(StreamLog(tmp_path, XML).cursors()) == [{"n": 1}]


def test_large_segments_have_files_of_their_own(log: StreamLog, tmp_path: Path) -> None:
    append(log, "x" * (appending.LARGEST_SEGMENT + 1))
    append(log, "d")
    append(log, "e")
    assert files(tmp_path) == ["000000000000001.pack", "000000000000004.arrow", "000000000000005.pack"]
    assert [text[0] for text in bodies(StreamLog(tmp_path, XML))] == ["a", "b", "c", "x", "d", "e"]


def test_segments_of_medium_size_are_mapped(log: StreamLog, tmp_path: Path) -> None:
    append(log, "x" * 300_000)
    append(log, "d")
    assert files(tmp_path) == ["000000000000001.pack"]
    assert [text[0] for text in bodies(StreamLog(tmp_path, XML))] == ["a", "b", "c", "x", "d"]


def test_a_full_pack_is_followed_by_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(appending, "LARGEST_PACK", 5_000)
    log = StreamLog(tmp_path, XML)
    for number in range(50):
        append(log, str(number))
    assert len(files(tmp_path)) > 3
    assert max(path.stat().st_size for path in tmp_path.glob("*.pack")) <= 5_000
    assert bodies(log) == bodies(StreamLog(tmp_path, XML)) == [str(number) for number in range(50)]


def without_last_line(folder: Path) -> None:
    lines = (folder / LIST).read_bytes().splitlines(keepends=True)
    (folder / LIST).write_bytes(b"".join(lines[:-1]))


@pytest.mark.parametrize("own_file", [False, True])
@pytest.mark.parametrize("opened_first", [False, True])
def test_a_segment_without_a_line_is_listed(
    log: StreamLog, tmp_path: Path, own_file: bool, opened_first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process died between the segment and its line, or the machine stopped and lost the line."""
    with monkeypatch.context() as patch:
        if own_file:
            patch.setattr(appending, "LARGEST_SEGMENT", 0)
        append(log, "d", "e")
    other = StreamLog(tmp_path, XML)
    whole = (tmp_path / LIST).read_bytes()
    without_last_line(tmp_path)
    if opened_first:
        assert bodies(StreamLog(tmp_path, XML)) == ["a", "b", "c", "d", "e"]
        assert (tmp_path / LIST).read_bytes() == whole
    assert append(StreamLog(tmp_path, XML), "f") == range(6, 7)
    assert bodies(StreamLog(tmp_path, XML)) == bodies(other) == ["a", "b", "c", "d", "e", "f"]


def test_a_pack_is_synchronized_once_for_all_its_lines(
    log: StreamLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a power failure, the lines of half a minute may be missing."""
    for number in range(20):
        append(log, str(number))
    (tmp_path / LIST).unlink()
    calls: list[int] = []
    monkeypatch.setattr(os, "fsync", calls.append)
    assert StreamLog(tmp_path, XML).head() == 23
    assert len(calls) == 2, "the pack and the folder"


@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
@pytest.mark.parametrize("whole_size", [False, True])
def test_a_segment_that_was_cut_off_is_set_aside(
    log: StreamLog, tmp_path: Path, share: float, whole_size: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """The file has grown, but not all of its content was written."""
    pack = tmp_path / "000000000000001.pack"
    before = pack.stat().st_size
    append(log, "d", "e")
    without_last_line(tmp_path)
    after = pack.stat().st_size
    os.truncate(pack, int(before + share * (after - before - ALIGNED)))
    if whole_size:
        os.truncate(pack, after)
    again = StreamLog(tmp_path, XML)
    assert again.head() == 3
    assert "was not written completely when the machine stopped: it is set aside as" in caplog.text
    assert pack.stat().st_size == before
    assert len(list(tmp_path.glob("*.incomplete"))) == 1
    assert append(again, "f") == range(4, 5)
    assert bodies(StreamLog(tmp_path, XML)) == ["a", "b", "c", "f"]


def test_a_line_that_was_cut_off_is_completed(log: StreamLog, tmp_path: Path) -> None:
    whole = (tmp_path / LIST).read_bytes()
    for cut in range(len(whole.splitlines(keepends=True)[-1])):
        (tmp_path / LIST).write_bytes(whole[: len(whole) - cut])
        assert bodies(StreamLog(tmp_path, XML)) == ["a", "b", "c"]
        assert (tmp_path / LIST).read_bytes() == whole


@pytest.mark.parametrize("content", [None, b"", b"damaged\n", b"damaged"])
def test_without_its_list_a_log_is_the_same(log: StreamLog, tmp_path: Path, content: bytes | None) -> None:
    append(log, "x" * (appending.LARGEST_SEGMENT + 1))
    append(log, "d")
    (tmp_path / LIST).unlink()
    if content is not None:
        (tmp_path / LIST).write_bytes(content)
    again = StreamLog(tmp_path, XML)
    assert [text[0] for text in bodies(again)] == ["a", "b", "c", "x", "d"]
    append(again, "e")
    assert [text[0] for text in bodies(log)] == ["a", "b", "c", "x", "d", "e"]


def test_a_line_in_the_middle_that_is_damaged(log: StreamLog, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    append(log, "d")
    lines = (tmp_path / LIST).read_bytes().splitlines(keepends=True)
    (tmp_path / LIST).write_bytes(lines[0] + b"9" + lines[1] + lines[2])
    again = StreamLog(tmp_path, XML)
    assert "segments.list has a damaged line" in caplog.text
    assert bodies(again) == ["a", "b", "c", "d"]
    append(again, "e")
    assert bodies(StreamLog(tmp_path, XML)) == ["a", "b", "c", "d", "e"]


def test_a_damaged_pack_is_not_continued(log: StreamLog, tmp_path: Path) -> None:
    """Its other segments can be read, and new ones are in another pack."""
    pack = tmp_path / "000000000000001.pack"
    os.truncate(pack, next(packed_from(pack)).end + 10)
    again = StreamLog(tmp_path, XML)
    assert append(again, "d") == range(4, 5)
    assert files(tmp_path) == ["000000000000001.pack", "000000000000004.pack"]
    assert [again.entry(number).body for number in (1, 2, 4)] == [b"a", b"b", b"d"]
    with pytest.raises(HomeError, match=r"000000000000001\.pack has"):
        again.entry(3)


def test_a_missing_pack(log: StreamLog, tmp_path: Path) -> None:
    (tmp_path / "000000000000001.pack").unlink()
    again = StreamLog(tmp_path, XML)
    assert append(again, "d") == range(4, 5)
    assert again.entry(4).body == b"d"
    with pytest.raises(HomeError, match=r"000000000000001\.pack is missing"):
        again.entry(1)


@pytest.mark.parametrize("suffix", ["pack", "arrow"])
def test_a_damaged_file_before_others(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the list, the numbers of its entries are unknown: nothing is appended, and nothing set aside."""
    with monkeypatch.context() as patch:
        patch.setattr(appending, "LARGEST_SEGMENT" if suffix == "arrow" else "LARGEST_PACK", 0)
        log = StreamLog(tmp_path, XML)
        for text in "abc":
            append(log, text)
    (tmp_path / LIST).unlink()
    os.truncate(tmp_path / f"000000000000002.{suffix}", 100)
    with pytest.raises(HomeError, match=rf"000000000000002\.{suffix} is damaged, and lines of its list are missing"):
        append(StreamLog(tmp_path, XML), "d")
    assert files(tmp_path) == [f"00000000000000{number}.{suffix}" for number in (1, 2, 3)]


@pytest.mark.parametrize("lines", [0, 1])
@pytest.mark.parametrize("suffix", ["pack", "arrow"])
def test_a_missing_file_before_others(tmp_path: Path, suffix: str, lines: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its line, its numbers are not used again, since results may refer to them and other files follow."""
    with monkeypatch.context() as patch:
        patch.setattr(appending, "LARGEST_SEGMENT" if suffix == "arrow" else "LARGEST_PACK", 0)
        log = StreamLog(tmp_path, XML)
        for text in "abc":
            append(log, text)
    whole = (tmp_path / LIST).read_bytes().splitlines(keepends=True)
    (tmp_path / LIST).write_bytes(b"".join(whole[:lines]))
    (tmp_path / f"000000000000002.{suffix}").unlink()
    for _ in range(2):
        with pytest.raises(HomeError, match="has no segment that begins with entry 2, and lines of its list"):
            append(StreamLog(tmp_path, XML), "d")
    (tmp_path / LIST).write_bytes(rebuilt_list(tmp_path) or b"")
    again = StreamLog(tmp_path, XML)
    assert append(again, "d") == range(4, 5)
    assert [again.entry(number).body for number in (1, 3, 4)] == [b"a", b"c", b"d"]


def test_the_first_file_and_its_line_are_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is in front of the gap, but what is behind it is not taken for what is missing."""
    monkeypatch.setattr(appending, "LARGEST_PACK", 0)
    log = StreamLog(tmp_path, XML)
    for text in "abc":
        append(log, text)
    (tmp_path / LIST).write_bytes(b"".join((tmp_path / LIST).read_bytes().splitlines(keepends=True)[1:]))
    (tmp_path / "000000000000001.pack").unlink()
    again = StreamLog(tmp_path, XML)
    for after, upto in ((0, 1), (0, 3)):
        with pytest.raises(HomeError, match="has no segment that begins with entry 1"):
            list(again.read(after, upto))
    with pytest.raises(HomeError, match="has no segment that begins with entry 1"):
        again.entry(1)
    assert [number for number, _ in again.read(1, 3)] == [2, 3]


@pytest.mark.parametrize("suffix", ["pack", "arrow"])
def test_a_missing_line_and_a_damaged_file(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the readers of its entries get an error."""
    with monkeypatch.context() as patch:
        patch.setattr(appending, "LARGEST_SEGMENT" if suffix == "arrow" else "LARGEST_PACK", 0)
        log = StreamLog(tmp_path, XML)
        for text in "abc":
            append(log, text)
    lines = (tmp_path / LIST).read_bytes().splitlines(keepends=True)
    (tmp_path / LIST).write_bytes(lines[0] + lines[2])
    os.truncate(tmp_path / f"000000000000002.{suffix}", 100)
    again = StreamLog(tmp_path, XML)
    assert append(again, "d") == range(4, 5)
    assert [again.entry(number).body for number in (1, 3, 4)] == [b"a", b"c", b"d"]
    with pytest.raises(HomeError, match="has no segment that begins with entry 2"):
        again.entry(2)


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


@pytest.mark.parametrize("limit", ["LARGEST_SEGMENT", "LARGEST_PACK"])
@pytest.mark.parametrize("call", ["open", "fsync", "fdatasync", "link", "pwritev", "write"])
def test_an_append_that_fails_leaves_nothing_behind(
    log: StreamLog, tmp_path: Path, limit: str, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, failed = getattr(os, call), 0
    for place in range(4):
        count = iter(range(100))

        def failing(*arguments: Any, count: Iterator[int] = count, place: int = place) -> Any:
            if next(count) == place:
                raise OSError(errno.ENOSPC, "No space left on device")
            return real(*arguments)

        with monkeypatch.context() as patch:
            patch.setattr(appending, limit, 0)
            patch.setattr(os, call, failing)
            try:
                append(log, f"d{place}")
                break
            except CannotWrite:
                failed += 1
        assert bodies(StreamLog(tmp_path, XML)) == ["a", "b", "c"]
    assert failed or (limit, call) in (("LARGEST_SEGMENT", "fdatasync"), ("LARGEST_SEGMENT", "pwritev"))
    assert bodies(log) == bodies(StreamLog(tmp_path, XML)) == ["a", "b", "c", f"d{place}"]
    assert not list(tmp_path.glob(".*.tmp"))


def test_what_cannot_be_read_for_a_moment_is_not_set_aside(
    log: StreamLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_last_line(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "pread", lambda *_: (_ for _ in ()).throw(OSError(errno.EIO, "Input/output error")))
        again = StreamLog(tmp_path, XML)
        with pytest.raises(HomeError, match="Input/output error"):
            append(again, "d")
    append(again, "d")
    assert bodies(again) == ["a", "b", "c", "d"]


def test_damaged_segments_of_a_pack_before_others(log: StreamLog, tmp_path: Path) -> None:
    """Their lines are lost, too. A segment that was cut off would be the last one, so these are not set aside."""
    append(log, "d")
    pack = tmp_path / "000000000000001.pack"
    middle = list(packed_from(pack))[1]
    content = bytearray(pack.read_bytes())
    content[middle.offset + ALIGNED + 40] ^= 1
    pack.write_bytes(content)
    for _ in range(2):
        without_last_line(tmp_path)
    with pytest.raises(HomeError, match=r"000000000000001\.pack is damaged, and lines of its list are missing"):
        append(StreamLog(tmp_path, XML), "e")
    assert pack.read_bytes() == bytes(content)


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

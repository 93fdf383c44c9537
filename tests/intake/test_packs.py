"""Packs: small segments share files; whatever a process or a machine leaves behind when it stops, the log continues."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fishweir.errors import CannotWrite, HomeError
from fishweir.intake import StreamLog, appending
from fishweir.intake.packs import ALIGNED, packed_from
from fishweir.intake.segment_list import LIST, rebuilt_list
from tests.intake.logs import XML, append, bodies, files, three_files, two_segments


@pytest.fixture
def log(tmp_path: Path) -> StreamLog:
    return two_segments(tmp_path)


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
def test_a_damaged_file_before_others(tmp_path: Path, suffix: str) -> None:
    """Without the list, the numbers of its entries are unknown: nothing is appended, and nothing set aside."""
    three_files(tmp_path, suffix)
    (tmp_path / LIST).unlink()
    os.truncate(tmp_path / f"000000000000002.{suffix}", 100)
    with pytest.raises(HomeError, match=rf"000000000000002\.{suffix} is damaged, and lines of its list are missing"):
        append(StreamLog(tmp_path, XML), "d")
    assert files(tmp_path) == [f"00000000000000{number}.{suffix}" for number in (1, 2, 3)]


@pytest.mark.parametrize("listed", [(), (1,)])
@pytest.mark.parametrize("suffix", ["pack", "arrow"])
def test_a_missing_file_before_others(tmp_path: Path, suffix: str, listed: tuple[int, ...]) -> None:
    """Without its line, its numbers are not used again, since results may refer to them and other files follow."""
    three_files(tmp_path, suffix, listed)
    (tmp_path / f"000000000000002.{suffix}").unlink()
    for _ in range(2):
        with pytest.raises(HomeError, match="has no segment that begins with entry 2, and lines of its list"):
            append(StreamLog(tmp_path, XML), "d")
    (tmp_path / LIST).write_bytes(rebuilt_list(tmp_path) or b"")
    again = StreamLog(tmp_path, XML)
    assert append(again, "d") == range(4, 5)
    assert [again.entry(number).body for number in (1, 3, 4)] == [b"a", b"c", b"d"]


def test_the_first_file_and_its_line_are_missing(tmp_path: Path) -> None:
    """Nothing is in front of the gap, but what is behind it is not taken for what is missing."""
    three_files(tmp_path, "pack", (2, 3))
    (tmp_path / "000000000000001.pack").unlink()
    again = StreamLog(tmp_path, XML)
    for after, upto in ((0, 1), (0, 3)):
        with pytest.raises(HomeError, match="has no segment that begins with entry 1"):
            list(again.read(after, upto))
    with pytest.raises(HomeError, match="has no segment that begins with entry 1"):
        again.entry(1)
    assert [number for number, _ in again.read(1, 3)] == [2, 3]


@pytest.mark.parametrize("suffix", ["pack", "arrow"])
def test_a_missing_line_and_a_damaged_file(tmp_path: Path, suffix: str) -> None:
    """Only the readers of its entries get an error."""
    three_files(tmp_path, suffix, (1, 3))
    os.truncate(tmp_path / f"000000000000002.{suffix}", 100)
    again = StreamLog(tmp_path, XML)
    assert append(again, "d") == range(4, 5)
    assert [again.entry(number).body for number in (1, 3, 4)] == [b"a", b"c", b"d"]
    with pytest.raises(HomeError, match="has no segment that begins with entry 2"):
        again.entry(2)


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

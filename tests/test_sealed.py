"""Sealed files: writing without copying, reading and verifying at once."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from fishweir.errors import HomeError
from fishweir.sealed import PIECES, read_verified, seal_of, seal_of_bytes, write_pieces


@pytest.mark.parametrize("most", [1 << 20, 5, 1])
def test_pieces_are_written_completely_even_if_a_call_writes_less(
    most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pieces: list[bytes | memoryview] = [b"abc", b"", memoryview(b"defgh"), *[b"x"] * PIECES]

    def written(file: int, some: Sequence[bytes | memoryview]) -> int:
        return os.write(file, b"".join(some)[:most])

    monkeypatch.setattr("fishweir.sealed.os.writev", written)
    with open(tmp_path / "file", "wb", buffering=0) as file:
        write_pieces(file, pieces)
    assert (tmp_path / "file").read_bytes() == b"".join(pieces)


def test_content_is_verified_as_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"content")
    seal = seal_of(path)
    assert seal == seal_of_bytes(b"content")
    assert read_verified(path, seal) == b"content"
    for damaged, reason in ((b"contend", "checksum mismatch"), (b"conten", "has 6 bytes instead of 7")):
        path.write_bytes(damaged)
        with pytest.raises(HomeError, match=reason):
            read_verified(path, seal)
    path.unlink()
    with pytest.raises(HomeError, match="is missing"):
        read_verified(path, seal)

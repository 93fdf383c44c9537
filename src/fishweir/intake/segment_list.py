"""The list of a log's segments: a line for each committed segment, with its first number, its rows and its seal."""

from __future__ import annotations

from pathlib import Path

from fishweir.errors import HomeError
from fishweir.sealed import digest, reading, writing

LIST = "segments.list"


def listed_segments(folder: Path) -> tuple[dict[int, tuple[int, str]], int]:
    """The content of the list of a log (rows and seal by first number), and the number of damaged lines."""
    path = folder / LIST
    if not path.exists():
        return {}, 0
    with reading(path):
        lines = [parse_listed(line) for line in path.read_bytes().decode(errors="replace").splitlines()]
    return {line[0]: line[1:] for line in lines if line is not None}, lines.count(None)


def write_list(folder: Path, listed: dict[int, tuple[int, str]]) -> None:
    """Rebuilds the list of a log."""
    temporary = folder / f".{LIST}.tmp"
    with writing(folder / LIST, temporary):
        temporary.write_bytes(b"".join(listed_line(first, *listed[first]) for first in sorted(listed)))
        temporary.replace(folder / LIST)


def segment_rows(path: Path) -> int:
    """The number of entries of a segment; 0 if it cannot be read."""
    import pyarrow as pa

    try:
        with reading(path):
            return int(pa.ipc.open_file(pa.memory_map(str(path))).schema.metadata[b"rows"])
    except HomeError:
        return 0


def listed_line(first: int, rows: int, seal: str) -> bytes:
    line = f"{first} {rows} {seal}"
    return f"{line} {digest(line.encode())[:8]}\n".encode()


def parse_listed(line: str) -> tuple[int, int, str] | None:
    """A line of the list: first number, rows, seal; None if it is damaged."""
    content, _, sum = line.rpartition(" ")
    if digest(content.encode())[:8] != sum:
        return None
    first, rows, seal = content.split(" ")
    return int(first), int(rows), seal

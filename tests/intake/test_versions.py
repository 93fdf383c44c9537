"""Files that change without being declared as changing: the new rows of each version, once, whatever happens."""

from __future__ import annotations

import json
import os
import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fishweir.algebra.nodes import StreamDefinition
from fishweir.intake import Source, StreamLog
from fishweir.intake.sources import files, sections
from tests.intake.support import entries, opened, stream

COLUMNS = (("i", "int"), ("s", "string"))
Row = tuple[int, str]


def csv_text(rows: list[Row]) -> bytes:
    return b"i,s\n" + b"".join(f'{i},"{s}\n"\n'.encode() for i, s in rows)


def plain_text(rows: list[Row]) -> bytes:
    return b"".join(f"{i},{s}\n".encode() for i, s in rows)


def json_text(rows: list[Row]) -> bytes:
    return b"".join(json.dumps({"i": i, "s": s}).encode() + b"\n" for i, s in rows)


def xml_text(rows: list[Row]) -> bytes:
    elements = [f'<q i="{i}">{s}</q>' for i, s in rows]
    return f"<r>{''.join(elements)}</r>".encode()


def parquet_bytes(rows: list[Row]) -> bytes:
    out = pa.BufferOutputStream()
    pq.write_table(pa.table({"i": [i for i, _ in rows], "s": [s for _, s in rows]}), out)
    return out.getvalue().to_pybytes()


KINDS: dict[str, tuple[StreamDefinition, Callable[[list[Row]], bytes], Callable[[Any], Any]]] = {
    "csv": (stream(path="f.csv", columns=COLUMNS), csv_text, lambda row: (row[0], f"{row[1]}\n")),
    "plain": (stream(path="f.csv", columns=COLUMNS), plain_text, lambda row: row),
    "json": (stream(path="f.jsonl", columns=COLUMNS), json_text, lambda row: row),
    "parquet": (stream(path="f.parquet", columns=COLUMNS), parquet_bytes, lambda row: row),
    "split": (stream(path="f.xml", split="q"), xml_text, lambda row: f'<q i="{row[0]}">{row[1]}</q>'),
    "objects": (stream(path="f.jsonl", format="json"), json_text, lambda row: f"<S><i>{row[0]}</i><s>{row[1]}</s></S>"),
    "objects in .json": (
        stream(path="f.json", format="json"), json_text, lambda row: f"<S><i>{row[0]}</i><s>{row[1]}</s></S>",
    ),
}  # fmt: skip


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class Changing:
    """A file that changes, and its rows that have arrived."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.folder, (self.stream, self.text, self.shown) = folder, KINDS[kind]
        self.path = folder / str(self.stream.path)
        self.log: StreamLog
        self.source: Source
        self.restart()
        self.moment = 1000.0

    def restart(self) -> None:
        self.log, self.source = opened(self.folder, self.stream)

    def write(self, content: bytes, is_old: bool = True) -> None:
        self.path.write_bytes(content)
        if is_old:
            self.moment += 1
            os.utime(self.path, (self.moment, self.moment))

    def poll(self) -> list[Any]:
        """The new rows."""
        before = self.log.head()
        list(self.source.poll(1.0))
        assert self.source.trouble is None
        found = entries(self.log, before)
        assert [entry.problem for entry in found if entry.problem] == []
        return [tuple(entry.values.values()) if entry.values else (entry.body or b"").decode() for entry in found]

    def expected(self, *rows: Row) -> list[Any]:
        return [self.shown(row) for row in rows]


A, B, C, D, E = [(n, text) for n, text in enumerate("abcde")]


@pytest.mark.parametrize("restarts", [True, False])
def test_each_version_adds_its_new_rows(tmp_path: Path, kind: str, restarts: bool) -> None:
    versions: list[tuple[list[Row], list[Row]]] = [
        ([A, B], [A, B]),
        ([A, B], []),  # only touched
        ([A, B, C], [C]),  # grown
        ([A, B, C, C, A], [C, A]),  # a row that comes again is one more
        ([A, C], []),  # truncated
        ([A, C, B], [B]),  # it was not in the version before
        ([D, B, A], [D]),  # rewritten
        ([E], [E]),
        ([E, E, E, D], [E, E, D]),
    ]
    file = Changing(tmp_path, kind)
    for rows, new in versions:
        file.write(file.text(rows))
        if restarts:
            file.restart()
        assert file.poll() == file.expected(*new)
        assert file.poll() == []


def test_random_histories(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small segments, and restarts anywhere: in the end, the log has all rows that the versions added."""
    monkeypatch.setattr(files, "SEGMENT_ROWS", 3)
    monkeypatch.setattr(files, "BATCH_DOCUMENTS", 3)
    rng = random.Random(f"{kind} 7")
    file = Changing(tmp_path, kind)
    rows: list[Row] = []
    added: Counter[Row] = Counter()
    for _ in range(25):
        before = Counter(rows)
        if rng.random() < 0.6:
            rows = rows + [rng.choice([A, B, C, D, E]) for _ in range(rng.randint(1, 9))]
        else:
            rows = rng.sample(rows, rng.randint(0, len(rows))) + rng.sample([A, B, C, D, E], rng.randint(1, 3))
        added += Counter(rows) - before
        file.write(file.text(rows))
        while True:
            polling = file.source.poll(1.0)
            if rng.random() < 0.5:
                list(polling)
                break
            next(polling, None)
            del polling
            if rng.random() < 0.7:
                file.restart()
    file.restart()
    assert file.poll() == []
    values = (tuple(e.values.values()) if e.values else (e.body or b"").decode() for e in entries(file.log))
    assert Counter(values) == Counter({file.shown(row): count for row, count in added.items()})


def test_only_the_new_part_of_a_file_that_grows_is_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = Changing(tmp_path, "csv")
    file.write(file.text([A, B]))
    file.poll()
    parsed: list[bytes] = []
    blocks = sections.Section.blocks

    def watched(section: sections.Section, *options: Any, **more: Any) -> Any:
        for line, block in blocks(section, *options, **more):
            parsed.append(block)
            yield line, block

    monkeypatch.setattr(sections.Section, "blocks", watched)
    file.restart()
    file.write(file.text([A, B, C]))
    assert file.poll() == file.expected(C)
    assert parsed == [b'2,"c\n"\n']
    file.write(file.text([A, B, C]) + b"x,y\n")
    list(file.source.poll(1.0))
    assert [e.problem for e in entries(file.log)][3:] == [f"{file.path}, line 8: column i: 'x' is not an int"]


@pytest.mark.parametrize("kind", ["csv", "plain", "json", "objects"])
@pytest.mark.parametrize("restarts", [True, False])
def test_partial_rows_are_not_read(tmp_path: Path, kind: str, restarts: bool) -> None:
    """Neither while a process writes it nor while it is new."""
    file = Changing(tmp_path, kind)
    whole = file.text([A, B, C])
    found: list[Any] = []
    with file.path.open("wb", buffering=0) as writer:
        for byte in whole:
            writer.write(bytes([byte]))
            os.utime(file.path, (1000, 1000))
            if restarts:
                file.restart()
            found += file.poll()
            assert not file.source.working, "it may take long until there is more"
    assert found == file.expected(A, B, C)
    file.write(whole[:-3], is_old=False)
    assert file.poll() == []
    assert file.source.working
    file.write(whole)
    assert file.poll() == []
    assert not file.source.working


@pytest.mark.parametrize("kind", ["csv", "plain", "json", "objects"])
def test_a_last_row_without_a_line_break_is_read_eventually(tmp_path: Path, kind: str) -> None:
    file = Changing(tmp_path, kind)
    file.write(file.text([A, B]).rstrip(b"\n"), is_old=False)
    found = file.poll()
    ends = time.monotonic() + 600
    while file.source.working and time.monotonic() < ends:
        found += file.poll()
    assert found == file.expected(A, B)
    file.write(file.text([A, B, C]))
    assert file.poll() == file.expected(C)


@pytest.mark.parametrize("kind", ["split", "parquet"])
def test_a_file_is_read_after_it_is_written(tmp_path: Path, kind: str) -> None:
    file = Changing(tmp_path, kind)
    whole = file.text([A, B])
    with file.path.open("wb", buffering=0) as writer:
        writer.write(whole[:-3])
        assert file.poll() == []
        writer.write(whole[-3:])
        os.utime(file.path, (1000, 1000))
        assert file.poll() == []
    assert file.poll() == file.expected(A, B)


def test_a_file_that_is_rewritten_in_place(tmp_path: Path, kind: str) -> None:
    """While it is truncated, its rows do not count as deleted."""
    file = Changing(tmp_path, kind)
    file.write(file.text([A, B]))
    assert file.poll() == file.expected(A, B)
    with file.path.open("wb", buffering=0) as writer:
        os.utime(file.path, (2000, 2000))
        assert file.poll() == []
        whole = file.text([A, C, B])
        writer.write(whole[: len(whole) // 2])
        os.utime(file.path, (3000, 3000))
        assert file.poll() == []
        writer.write(whole[len(whole) // 2 :])
    assert file.poll() == []
    assert file.source.working, "it has just been written"
    os.utime(file.path, (4000, 4000))
    assert file.poll() == file.expected(C)


@pytest.mark.parametrize("kind", ["split", "parquet"])
def test_rows_after_a_damaged_part_are_not_deleted(tmp_path: Path, kind: str) -> None:
    file = Changing(tmp_path, kind)
    file.write(file.text([A, B, C]))
    assert file.poll() == file.expected(A, B, C)
    for _ in range(2):
        file.write(file.text([A, B, C])[:-7])
        list(file.source.poll(1.0))
    file.write(file.text([A, B, C, D]))
    assert file.poll() == file.expected(D)


def test_bad_rows_are_reported_once(tmp_path: Path) -> None:
    """Even if their lines move."""
    file = Changing(tmp_path, "plain")
    file.write(b"1,a\nx,b\n")
    list(file.source.poll(1.0))
    file.write(b"0,z\n1,a\nx,b\ny,c\n")
    list(file.source.poll(1.0))
    shown = [entry.problem or entry.values for entry in entries(file.log)]
    assert shown == [
        {"i": 1, "s": "a"},
        f"{file.path}, line 2: column i: 'x' is not an int",
        {"i": 0, "s": "z"},
        f"{file.path}, line 4: column i: 'y' is not an int",
    ]


def test_files_of_a_folder_change_independently(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    definition = stream(path="in", columns=COLUMNS)
    for moment, (one, two) in enumerate([([A, B], [A]), ([B, C], [A, A]), ([B, C, A], [A, A])], 1000):
        for name, rows in (("a.csv", one), ("b.csv", two)):
            (folder / name).write_bytes(plain_text(rows))
            os.utime(folder / name, (moment, moment))
        log, source = opened(tmp_path, definition)
        list(source.poll(1.0))
    found = [tuple(entry.values.values()) for entry in entries(log) if entry.values]
    assert found == [A, B, A, C, A, A]

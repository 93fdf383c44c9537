"""CSV, JSON Lines and Parquet files: typed rows in order, with bad rows set aside in their position."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fishweir.intake.sources.sections import Section
from tests.intake.support import bodies, entries, opened, problems, stream, taken

COLUMNS = (("i", "int"), ("x", "double"), ("s", "string"), ("b", "boolean"), ("t", "timestamp"))
MOMENT = datetime(2024, 1, 1, tzinfo=UTC)


def read(base: Path, name: str, content: str | bytes, columns: Any = COLUMNS, **options: Any) -> list[Any]:
    (base / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return taken(base, stream(path=name, columns=columns, **options))


def values(found: list[Any]) -> list[tuple[Any, ...] | None]:
    return [tuple(entry.values.values()) if entry.values is not None else None for entry in found]


def test_csv_with_a_header_in_another_order(tmp_path: Path) -> None:
    found = read(tmp_path, "a.csv", 's,more,i,x,t\na,!,1,1.5,2024-01-01\n,,,,\n\n"q,""r\nz",,2,,1704067200\n')
    assert values(found) == [
        (1, 1.5, "a", None, MOMENT),
        (None, None, None, None, None),
        (2, None, 'q,"r\nz', None, MOMENT),
    ]
    assert [entry.id for entry in found] == ["S-1", "S-2", "S-3"]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
def test_csv_without_a_header(tmp_path: Path, end: str, bom: str) -> None:
    found = read(tmp_path, "a.csv", f"{bom}1,2,a,true,2024-01-01T00:00:00Z{end}2,3,b,FALSE,{end}3,,,0,")
    assert values(found) == [
        (1, 2.0, "a", True, MOMENT),
        (2, 3.0, "b", False, None),
        (3, None, None, False, None),
    ]


def test_bad_csv_rows_keep_their_position(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    text = b'i,s\n1,a\nx,b\n\n3\n"4\n",c\n5,d,e\n6,\xe9\n7,"5"" tape"\n8,5" tape\n9,z\n'
    found = read(tmp_path, "a.csv", text, (("i", "int"), ("s", "string")))
    assert values(found) == [
        (1, "a"),
        None,
        None,
        (4, "c"),
        None,
        None,
        (7, '5" tape'),
        (8, '5" tape'),
        (9, "z"),
    ]
    path = tmp_path / "a.csv"
    assert problems(found) == [
        f"{path}, line 3: column i: 'x' is not an int",
        f"{path}, line 5: 1 fields, expected 2",
        f"{path}, line 8: 3 fields, expected 2",
        f"{path}, line 9: not CSV: 'utf-8' codec can't decode byte 0xe9 in position 2: invalid continuation byte",
    ]
    assert [entry.body for entry in found if entry.problem] == [b"x,b", b"3", b"5,d,e", b"6,\xe9"]
    assert f"stream S: {path}, line 3: column i: 'x' is not an int" in caplog.text


def test_csv_in_many_blocks_with_breaks_in_quotes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = Section.blocks
    monkeypatch.setattr(Section, "blocks", lambda section, quoted: blocks(section, quoted, 50))
    text = "i,s\n" + "".join(f'{n},"a\n{n}"\n' if n % 17 else f"bad{n},x\n" for n in range(1, 300))
    found = read(tmp_path, "a.csv", text, (("i", "int"), ("s", "string")))
    assert values(found) == [(n, f"a\n{n}") if n % 17 else None for n in range(1, 300)]
    number = 17 * 5
    line = 2 + sum(2 if n % 17 else 1 for n in range(1, number))
    assert problems(found)[4] == f"{tmp_path / 'a.csv'}, line {line}: column i: 'bad{number}' is not an int"


def test_a_row_longer_than_a_block(tmp_path: Path) -> None:
    found = read(tmp_path, "a.csv", f"1,{'x' * 9_000_000}\n2,b\n", (("i", "int"), ("s", "string")))
    assert [(row or (0, ""))[0] for row in values(found)] == [1, 2]


@pytest.mark.parametrize(("name", "content"), [("a.csv", ""), ("a.csv", "i,s\n"), ("a.jsonl", ""), ("a.jsonl", "\n\n")])
def test_no_rows(tmp_path: Path, name: str, content: str) -> None:
    assert read(tmp_path, name, content) == []
    _, source = opened(tmp_path, stream(path=name, columns=COLUMNS))
    assert list(source.poll(2.0)) == []


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_utf16_is_one_problem(tmp_path: Path, name: str) -> None:
    content = "i,x\n1,2\n".encode("utf-16")
    (found,) = read(tmp_path, name, content)
    assert found.problem == f"{tmp_path / name}: the file is UTF-16, expected UTF-8"
    assert found.body == content


def test_json_lines(tmp_path: Path) -> None:
    text = (
        '{"i": 1, "x": 2, "s": "a", "b": true, "t": "2024-01-01", "more": [1, {"a": 2}]}\n\n'
        '{"s": "2024-01-01", "more": 5}\n{"i": null}'
    )
    expected = [(1, 2.0, "a", True, MOMENT), (None, None, "2024-01-01", None, None), (None,) * 5]
    assert values(read(tmp_path, "a.jsonl", text)) == expected


def test_json_times_as_numbers(tmp_path: Path) -> None:
    found = read(tmp_path, "a.json", '{"t": 1704067200}\n{"t": 1704067200.5}\n', (("t", "timestamp"),))
    assert values(found) == [(MOMENT,), (MOMENT.replace(microsecond=500_000),)]


def test_bad_json_lines(tmp_path: Path) -> None:
    good = [f'{{"i": {n}, "s": "w{n}"}}' for n in range(5000)]
    bad = {
        10: "{broken",
        11: "[1]",
        12: '{"i": "x"}',
        13: '{"i": 1.5}',
        4000: '{"i":1}{"i":2}',
        4001: '{"s": [1]}',
    }
    also_good = {20: '{"i": "7", "s": 5}', 21: '{"i": 8.0, "s": true}'}
    rows = [{**bad, **also_good}.get(n, line) for n, line in enumerate(good)]
    content = "\n".join(rows).encode() + b'\n{"s": "\xe9"}\n{"i": 5}'
    found = read(tmp_path, "a.jsonl", content, (("i", "int"), ("s", "string")))
    assert len(found) == 5002
    assert {n for n, entry in enumerate(found) if entry.problem} == {*bad, 5000}
    assert all(
        entry.problem.startswith(f"{tmp_path / 'a.jsonl'}, line {n + 1}: ")
        for n, entry in enumerate(found)
        if entry.problem
    )
    assert [found[n].body.decode() for n in bad] == list(bad.values())
    assert "not JSON" in found[10].problem
    assert found[12].problem.endswith("column i: 'x' is not an int")
    assert [tuple(found[n].values.values()) for n in (9, 20, 21, 5001)] == [
        (9, "w9"),
        (7, "5"),
        (8, "true"),
        (5, None),
    ]


@pytest.mark.parametrize("line", ["null", " null", "5", "[]", '"a"'])
def test_json_lines_that_are_not_objects(tmp_path: Path, line: str) -> None:
    """Arrow crashes on a first line `null`, and treats a later one as a row."""
    found = read(tmp_path, "a.jsonl", f'{line}\n{{"i": 1}}\n{line}\n', (("i", "int"),))
    assert values(found) == [None, (1,), None]
    assert problems(found)[1] == f"{tmp_path / 'a.jsonl'}, line 3: not JSON: expected an object"


def test_parquet(tmp_path: Path) -> None:
    columns = {
        "s": pa.array(["a", "b"]).dictionary_encode(),
        "i": ["1", "x"],
        "t": pa.array([MOMENT] * 2),
        "z": [1, 2],
    }
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    found = taken(tmp_path, stream(path="a.parquet", columns=COLUMNS))
    assert values(found) == [(1, None, "a", None, MOMENT), None]
    assert problems(found) == [f"{tmp_path / 'a.parquet'}, row 2: column i: 'x' is not an int"]
    assert b'"s": "b"' in (found[1].body or b"")


@pytest.mark.parametrize("keep", [0, 3, 1000, -50])
def test_broken_parquet(tmp_path: Path, keep: int) -> None:
    pq.write_table(pa.table({"i": list(range(100_000))}), tmp_path / "whole")
    content = (tmp_path / "whole").read_bytes()[:keep]
    (found,) = read(tmp_path, "a.parquet", content)
    assert str(tmp_path / "a.parquet") in found.problem
    assert "not readable as Parquet" in found.problem
    assert found.body == content


def test_parquet_broken_in_the_middle(tmp_path: Path) -> None:
    pq.write_table(
        pa.table({"i": list(range(200_000))}), tmp_path / "whole", row_group_size=70_000, use_dictionary=False
    )
    content = bytearray((tmp_path / "whole").read_bytes())
    content[len(content) // 2 : len(content) // 2 + 2000] = b"\xff" * 2000
    (tmp_path / "a.parquet").write_bytes(content)
    log, source = opened(tmp_path, stream(path="a.parquet", columns=(("i", "int"),)))
    list(source.poll(1.0))
    found = pa.chunked_array([batch.column("problem") for _, batch in log.read(0, log.head())])
    assert len(found) > 65_000
    assert len(found) - found.null_count == 1
    assert found[-1].is_valid


def test_interrupted_in_the_middle(tmp_path: Path) -> None:
    rows = 300_000
    (tmp_path / "a.csv").write_text("i,s\n" + "".join(f"{n},some words to make it longer {n}\n" for n in range(rows)))
    definition = stream(path="a.csv", columns=(("i", "int"),))
    while True:
        log, source = opened(tmp_path, definition)
        if next(source.poll(1.0), None) is None:
            break
    found = pa.chunked_array([batch.column("c_i") for _, batch in log.read(0, log.head())])
    assert found.equals(pa.chunked_array([list(range(rows))]))
    assert len(list(log.folder.glob("*.arrow"))) > 2


def test_a_folder_of_many_formats(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("1\n")
    (tmp_path / "in" / "b.jsonl").write_text('{"i": 2}\n')
    pq.write_table(pa.table({"i": [3]}), tmp_path / "in" / "c.parquet")
    log, source = opened(tmp_path, stream(path="in", columns=(("i", "int"),)))
    assert list(source.poll(1.0)) == [3]
    assert sorted(row[0] for row in values(entries(log)) if row) == [1, 2, 3]
    assert bodies(entries(log)) == [""] * 3

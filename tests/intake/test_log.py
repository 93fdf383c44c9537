"""The log: numbers without gaps, atomic cursors, several writers, large bodies."""

from __future__ import annotations

import multiprocessing
import pickle
import time
from pathlib import Path

import pyarrow as pa
import pytest

from fishweir.intake import StreamLog, documents_batch
from fishweir.intake.packs import packed_from, read_packed
from tests.intake.support import stream

XML = stream()


def append(log: StreamLog, *texts: str, cursor: dict[str, int] | None = None) -> range:
    return log.append(documents_batch(log.stream, list(texts), None, None, 5.0), cursor)


def test_numbers_and_entries(tmp_path: Path) -> None:
    log = StreamLog(tmp_path, XML)
    assert log.head() == 0
    assert append(log, "<a/>", "<b/>") == range(1, 3)
    assert append(log, "<c/>") == range(3, 4)
    assert log.head() == 3
    assert (log.entry(3).id, log.entry(3).body, log.entry(3).arrival) == ("S-3", b"<c/>", 5.0)
    for number in (0, 4):
        with pytest.raises(IndexError, match="stream S has no entry"):
            log.entry(number)


def test_another_object_sees_appended_entries(tmp_path: Path) -> None:
    writer, reader = StreamLog(tmp_path, XML), StreamLog(tmp_path, XML)
    append(writer, "<a/>")
    assert reader.head() == 1
    append(reader, "<b/>")
    append(writer, "<c/>")
    assert [StreamLog(tmp_path, XML).entry(n).body for n in (1, 2, 3)] == [b"<a/>", b"<b/>", b"<c/>"]
    assert pickle.loads(pickle.dumps(writer)).head() == 3


@pytest.mark.parametrize("after", range(7))
@pytest.mark.parametrize("upto", range(7))
def test_read_slices(tmp_path: Path, after: int, upto: int) -> None:
    log = StreamLog(tmp_path, XML)
    for texts in (("1",), ("2", "3", "4"), ("5", "6")):
        append(log, *texts)
    found = [
        (number + i, int(body))
        for number, batch in StreamLog(tmp_path, XML).read(after, upto)
        for i, body in enumerate(batch.column("body").to_pylist())
    ]
    assert found == [(n, n) for n in range(after + 1, upto + 1)]


def test_cursors_with_and_without_entries(tmp_path: Path) -> None:
    log = StreamLog(tmp_path, XML)
    assert append(log, cursor={"n": 0}) == range(1, 1)
    append(log, "<a/>", cursor={"n": 1})
    append(log, "<b/>")
    append(log, cursor={"n": 2})
    append(log, cursor={"n": 3})
    append(log, "<c/>", cursor={"n": 4})
    again = StreamLog(tmp_path, XML)
    assert [cursor["n"] for cursor in again.cursors()] == [0, 1, 2, 3, 4]
    assert [cursor["n"] for cursor in again.cursors(after=2)] == [2, 3, 4]
    assert again.head() == 3


TUPLES = stream(columns=(("x", "int"), ("s", "string"), ("b", "boolean"), ("t", "timestamp")))
ROWS = [{"x": 1}, {"x": 2, "s": "a"}, {"b": True}, {"t": 5}, {"x": "wrong"}, {}]


@pytest.mark.parametrize("one_by_one", [True, False])
def test_columns_of_nulls_are_read_but_not_stored(tmp_path: Path, one_by_one: bool) -> None:
    log = StreamLog(tmp_path, TUPLES)
    given = [
        documents_batch(TUPLES, some, None, None, 5.0) for some in ([[row] for row in ROWS] if one_by_one else [ROWS])
    ]
    for batch in given:
        log.append(batch)
    (pack,) = tmp_path.glob("*.pack")
    stored = [
        pa.ipc.open_file(pa.py_buffer(read_packed(pack, one.offset, one.seal))).schema.names
        for one in packed_from(pack)
    ]
    if one_by_one:
        assert stored[:3] == [["arrival", "c_x"], ["arrival", "c_x", "c_s"], ["arrival", "c_b"]]
        assert stored[4:] == [["arrival", "problem", "body"], ["arrival"]]
    else:
        assert stored == [["arrival", "problem", "body", "c_x", "c_s", "c_b", "c_t"]]
    found = [batch for _, batch in StreamLog(tmp_path, TUPLES).read(0, len(ROWS))]
    assert pa.Table.from_batches(found).equals(pa.Table.from_batches(given))
    for batch in found:
        batch.validate(full=True)


def test_a_segment_may_have_all_columns(tmp_path: Path) -> None:
    """Earlier versions stored them."""
    batch = documents_batch(TUPLES, ROWS, None, None, 5.0).replace_schema_metadata({"rows": str(len(ROWS))})
    with pa.ipc.new_file(tmp_path / f"{1:015d}.arrow", batch.schema) as writer:
        writer.write(batch)
    log = StreamLog(tmp_path, TUPLES)
    assert log.head() == len(ROWS)
    assert pa.Table.from_batches([some for _, some in log.read(0, len(ROWS))]).equals(
        pa.Table.from_batches([batch]), check_metadata=False
    )
    assert log.append(documents_batch(TUPLES, ROWS[:1], None, None, 6.0)) == range(7, 8)


def test_a_batch_of_another_schema_is_refused(tmp_path: Path) -> None:
    tuples = stream(columns=(("x", "int"),))
    with pytest.raises(ValueError, match="stream S expects"):
        StreamLog(tmp_path, XML).append(documents_batch(tuples, [{"x": 1}], None, None, 1.0))
    assert not list(tmp_path.glob(".*.tmp"))


def write_many(folder: Path, name: str, count: int) -> None:
    log = StreamLog(folder, XML)
    for i in range(count):
        append(log, f"{name} {i}", f"{name} {i}+")


def test_processes_append_at_the_same_time(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=write_many, args=(tmp_path, name, 60)) for name in "abc"]
    for worker in workers:
        worker.start()
    log = StreamLog(tmp_path, XML)
    deadline = time.time() + 600
    while log.head() < 360 and time.time() < deadline:
        time.sleep(0.01)
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    found = [(log.entry(n).body or b"").decode() for n in range(1, log.head() + 1)]
    for name in "abc":
        mine = [text for text in found if text.startswith(name)]
        assert mine == [f"{name} {i}{plus}" for i in range(60) for plus in ("", "+")]
    assert len(found) == 360
    assert len(StreamLog(tmp_path, XML).segments.firsts) == 180
    assert sorted(path.name for path in tmp_path.iterdir()) == ["000000000000001.pack", "segments.list"]


def test_large_body(tmp_path: Path) -> None:
    log = StreamLog(tmp_path, XML)
    body = b"<a>" + b"x" * 200_000_000 + b"</a>"
    log.append(documents_batch(XML, [body, b"<b/>"], None, None, 1.0))
    assert log.entry(2).body == b"<b/>"
    assert log.entry(1).body == body

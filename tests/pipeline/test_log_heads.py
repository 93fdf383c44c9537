"""The heads of logs, found by announced arrivals or by looking at all logs."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

from fishweir.algebra.nodes import StreamDefinition
from fishweir.intake import StreamLog, log_batch
from fishweir.intake.arrivals import LONGEST, NAME, Arrivals, announce_stream
from fishweir.pipeline import log_heads
from fishweir.pipeline.home import Home, open_log
from fishweir.pipeline.log_heads import LogHeads


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    home.create()
    for id in (1, 2):
        home.add_stream(id, StreamDefinition(f"S{id}"))
    return home


def entries(log: StreamLog, count: int) -> pa.RecordBatch:
    return log_batch(log.stream, count, 0.0, {"body": [b"<a/>"] * count})


def append(home: Home, id: int, count: int) -> None:
    log = open_log(home.streams, id)
    log.append(entries(log, count))


def never_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_heads, "LOOK_EVERY", 1e9)


def test_announced_entries_and_streams_are_found_without_looking_at_all_logs(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    never_look(monkeypatch)
    logs = LogHeads(home)
    assert logs.heads() == {"1": 0, "2": 0}
    monkeypatch.setattr(Home, "stream_ids", lambda self: pytest.fail("looked at all logs"))
    append(home, 1, 3)
    append(home, 2, 1)
    append(home, 2, 1)
    assert logs.heads() == {"1": 3, "2": 2}
    home.add_stream(3, StreamDefinition("new"))
    assert logs.streams()[3].name == "new"
    assert logs.heads() == {"1": 3, "2": 2, "3": 0}


def test_entries_that_were_not_announced_are_found_by_looking(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    never_look(monkeypatch)
    logs = LogHeads(home)
    logs.heads()
    monkeypatch.setattr("fishweir.intake.log.announce", lambda folder: None)  # as if the process had died before it
    append(home, 1, 2)
    assert logs.heads() == {"1": 0, "2": 0}
    logs._look_at = 0.0
    assert logs.heads() == {"1": 2, "2": 0}


def test_another_process_announces_too(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    never_look(monkeypatch)
    logs = LogHeads(home)
    assert logs.heads() == {"1": 0, "2": 0}
    if (child := os.fork()) == 0:
        log = StreamLog(home.streams / "2" / "log", StreamDefinition("S2"))
        log.append(entries(log, 4))
        os._exit(0)
    os.waitpid(child, 0)
    assert logs.heads() == {"1": 0, "2": 4}


@pytest.mark.parametrize("harm", ["removed", "replaced", "shortened", "damaged", "of another home"])
def test_a_file_that_was_tampered_with_costs_a_look_but_loses_nothing(
    home: Home, monkeypatch: pytest.MonkeyPatch, harm: str
) -> None:
    never_look(monkeypatch)
    logs, place = LogHeads(home), home.path / NAME
    logs.heads()
    if harm == "removed":
        place.unlink()
    append(home, 1, 1)
    if harm == "replaced":
        place.unlink()
        (home.path / "other").touch()  # takes the inode
        place.touch()
    elif harm == "shortened":
        os.truncate(place, 0)
    elif harm == "damaged":
        place.write_bytes(b"\0" * 100)
    elif harm == "of another home":
        announce_stream(place, "77")
    assert logs.heads() == {"1": 1, "2": 0}


def test_a_long_file_is_replaced(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    place = home.path / NAME
    place.write_bytes(b"1\n" * (LONGEST // 2 + 1))
    arrivals = Arrivals(place)
    assert arrivals.next() is None
    arrivals.shorten()
    assert place.stat().st_size == 0
    assert arrivals.next() is None, "something may have been announced in the old file"
    announce_stream(place, "7")
    announce_stream(place, "8")
    assert arrivals.next() == {7, 8}
    assert arrivals.next() == set()


def test_half_an_announcement_is_read_when_it_is_complete(home: Home) -> None:
    place = home.path / NAME
    arrivals = Arrivals(place)
    arrivals.next()
    with place.open("ab", buffering=0) as file:
        file.write(b"1")
        assert arrivals.next() == set()
        file.write(b"5\n")
        assert arrivals.next() == {15}


def test_a_log_outside_a_home_announces_nothing(tmp_path: Path) -> None:
    log = StreamLog(tmp_path / "a" / "b" / "log", StreamDefinition("S"))
    log.append(entries(log, 1))
    assert not list(tmp_path.rglob(NAME))

"""A file that changes in place: inserts, changes and deletes, each once, whatever happens in between."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest

from fishweir.intake import StreamLog
from fishweir.intake.sources import changing
from fishweir.intake.sources.changing import ChangingSource
from tests.intake.support import entries, opened, problems, stream

QUOTES = stream(path="q.xml", rows="/Quotes/Quote", key="Symbol")


class File:
    """The changing file; each version has a later modification time."""

    def __init__(self, base: Path) -> None:
        self.path, self.versions = base / "q.xml", 0

    def write(self, content: str | bytes) -> None:
        self.versions += 1
        self.path.write_bytes(content if isinstance(content, bytes) else content.encode())
        os.utime(self.path, (self.versions, self.versions))

    def quotes(self, **prices: Any) -> None:
        self.write(f"<Quotes>{''.join(quote(*item) for item in prices.items())}</Quotes>")


def quote(symbol: str, price: Any) -> str:
    return f"<Quote><Symbol>{symbol}</Symbol><Price>{price}</Price></Quote>"


@pytest.fixture
def file(tmp_path: Path) -> File:
    return File(tmp_path)


def changes(log: StreamLog, after: int = 0) -> list[tuple[str | None, str]]:
    return [(entry.change, (entry.body or b"").decode("utf-8", "replace")) for entry in entries(log, after)]


def polled(source: Any, log: StreamLog, now: float) -> list[tuple[str | None, str]]:
    """The entries that one poll appends."""
    before = log.head()
    list(source.poll(now))
    return changes(log, before)


def test_inserts_changes_and_deletes(tmp_path: Path, file: File) -> None:
    log, source = opened(tmp_path, QUOTES)
    file.quotes(A=1, B=2, C=3)
    assert polled(source, log, 10) == [("inserted", quote(s, p)) for s, p in (("A", 1), ("B", 2), ("C", 3))]
    assert {(entry.context, entry.arrival) for entry in entries(log)} == {("Quotes", 10.0)}
    assert polled(source, log, 20) == []
    file.quotes(D=4, C=30, A=1)
    assert polled(source, log, 30) == [
        ("inserted", quote("D", 4)),
        ("updated", quote("C", 30)),
        ("deleted", quote("B", 2)),
    ]
    assert entries(log)[-1].context == "Quotes"
    file.quotes(D=4, C=30, A=1, B=2)
    assert polled(source, log, 40) == [("inserted", quote("B", 2))]


def test_every(tmp_path: Path, file: File) -> None:
    log, source = opened(tmp_path, stream(path="q.xml", rows="Quote", key="Symbol", every=5.0))
    file.quotes(A=1)
    assert len(polled(source, log, 100)) == 1
    file.quotes(A=2)
    assert polled(source, log, 104) == []
    assert len(polled(source, log, 105)) == 1


@pytest.mark.parametrize(
    "same",
    [
        "<Quotes>\n  <Quote x='1' y='2'>\n <Symbol>A</Symbol>\n\t<P>a b</P> </Quote>\n</Quotes>",
        "<?xml version='1.0'?><!--c--><Quotes><Quote y=\"2\" x='1'><Symbol>&#65;</Symbol><!-- d -->"
        "<P><![CDATA[a b]]></P></Quote></Quotes>",
    ],
)
def test_white_space_and_spelling_are_not_changes(tmp_path: Path, file: File, same: str) -> None:
    log, source = opened(tmp_path, QUOTES)
    file.write("<Quotes><Quote x='1' y='2'><Symbol>A</Symbol><P>a b</P></Quote></Quotes>")
    list(source.poll(1))
    file.write(same)
    assert polled(source, log, 2) == []
    _, source = opened(tmp_path, QUOTES)
    assert polled(source, log, 3) == []
    file.write("<Quotes><Quote x='1' y='2'><Symbol>A</Symbol><P>a  b</P></Quote></Quotes>")
    assert [change for change, _ in polled(source, log, 4)] == ["updated"]


@pytest.mark.parametrize("broken", ["<Quotes><Quote>", "", b"\xff\xfe\xfd", "<Quotes>&x;</Quotes>"])
def test_a_broken_version_is_one_problem(tmp_path: Path, file: File, broken: str | bytes) -> None:
    log, source = opened(tmp_path, QUOTES)
    file.quotes(A=1, B=2)
    list(source.poll(1))
    file.write(broken)
    assert [change for change, _ in polled(source, log, 2)] == [None]
    assert str(file.path) in problems(entries(log))[0]
    assert entries(log)[-1].body == file.path.read_bytes()
    assert polled(source, log, 3) == []
    log, source = opened(tmp_path, QUOTES)
    assert polled(source, log, 4) == []
    file.quotes(A=1, B=3)
    assert polled(source, log, 5) == [("updated", quote("B", 3))]


def test_bad_keys(tmp_path: Path, file: File, caplog: pytest.LogCaptureFixture) -> None:
    log, source = opened(tmp_path, QUOTES)
    rows = [quote("A", 1), quote("A", 2), "<Quote><Price>5</Price></Quote>", quote("B", 1)]
    content = "\n".join(["<Quotes>", *rows, "</Quotes>"])
    file.write(content)
    list(source.poll(1))
    found = entries(log)
    assert [entry.change for entry in found] == ["inserted", "inserted", None, None]
    assert problems(found) == [
        f"{file.path}, line 3: the key 'A' is already in line 2",
        f"{file.path}, line 4: the row has no key Symbol",
    ]
    assert found[2].body == quote("A", 2).encode()
    assert "stream S: " in caplog.text
    file.write(content + "\n")
    assert polled(source, log, 2) == []
    log, source = opened(tmp_path, QUOTES)
    list(source.poll(3))
    again, source = opened(tmp_path, QUOTES)
    assert polled(source, again, 4) == []


@pytest.mark.parametrize(
    ("key", "row"),
    [
        ("@id", "<Quote id='{}'><x id='9'/></Quote>"),
        ("a/@id", "<Quote><a id='{}'/></Quote>"),
        ("Quote/@id", "<Quote id='{}'/>"),
        ("/Quote/Symbol", "<Quote><x><Symbol>0</Symbol></x><Symbol>{}</Symbol></Quote>"),
        ("Symbol", "<n:Quote xmlns:n='rel'><x><Symbol>0</Symbol></x><n:Symbol> {} </n:Symbol></n:Quote>"),
        ("//Symbol", "<Quote><x><Symbol>{}</Symbol></x></Quote>"),
    ],
)
def test_keys_of_all_kinds(tmp_path: Path, file: File, key: str, row: str) -> None:
    definition = stream(path="q.xml", rows="Quote", key=key)
    log, source = opened(tmp_path, definition)
    file.write(f"<r>{row.format(1)}<g>{row.format(2)}</g></r>")
    assert [change for change, _ in polled(source, log, 1)] == ["inserted", "inserted"]
    assert [entry.context for entry in entries(log)] == ["r", "r/g"]
    log, source = opened(tmp_path, definition)
    file.write(f"<r>{row.format(2)}</r>")
    assert [(entry, row.format(1)) for entry in polled(source, log, 2)] == [(changes(log)[-1], row.format(1))]
    assert changes(log)[-1][0] == "deleted"


def test_a_missing_file_is_reported_and_deletes_nothing(tmp_path: Path, file: File) -> None:
    log, source = opened(tmp_path, QUOTES)
    assert polled(source, log, 1) == []
    assert source.trouble == f"stream S: {file.path}: No such file or directory"
    file.quotes(A=1)
    assert len(polled(source, log, 2)) == 1
    assert source.trouble is None
    file.path.unlink()
    assert polled(source, log, 3) == []
    assert source.trouble is not None


def test_a_crash_between_append_and_snapshot(tmp_path: Path, file: File, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changing, "UNSAVED_CHANGES", 1)
    log, source = opened(tmp_path, QUOTES)
    file.quotes(A=1, B=2)
    list(source.poll(1))
    assert (log.folder / "snapshot.json").exists()

    class Crash(Exception):
        pass

    def crash(*_: Any) -> None:
        raise Crash

    file.quotes(B=3, C=4)
    with monkeypatch.context() as patch:
        patch.setattr(changing, "save_snapshot", crash)
        with pytest.raises(Crash):
            list(source.poll(2))
    assert changes(log, 2) == [
        ("updated", quote("B", 3)),
        ("inserted", quote("C", 4)),
        ("deleted", quote("A", 1)),
    ]
    log, source = opened(tmp_path, QUOTES)
    assert polled(source, log, 3) == []
    file.quotes(C=5)
    assert polled(source, log, 4) == [("updated", quote("C", 5)), ("deleted", quote("B", 3))]


def test_a_crash_before_append(tmp_path: Path, file: File, monkeypatch: pytest.MonkeyPatch) -> None:
    log, source = opened(tmp_path, QUOTES)
    file.quotes(A=1)
    with monkeypatch.context() as patch:
        patch.setattr("os.link", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        assert list(source.poll(1)) == []
        assert "No space left" in str(source.trouble)
    assert polled(source, log, 1.5) == [("inserted", quote("A", 1))]


@pytest.mark.parametrize("restart", [True, False])
def test_large_versions_are_split_and_may_be_interrupted(tmp_path: Path, file: File, restart: bool) -> None:
    log, source = opened(tmp_path, QUOTES)
    file.quotes(**{f"s{n}": n for n in range(2500)})
    assert next(source.poll(1)) == 1000
    if restart:
        log, source = opened(tmp_path, QUOTES)
    assert list(source.poll(2)) == [1000, 500]
    assert changes(log) == [("inserted", quote(f"s{n}", n)) for n in range(2500)]
    file.quotes()
    assert list(source.poll(4)) == [1000, 1000, 500]
    assert {entry.change for entry in entries(log, 2500)} == {"deleted"}


@pytest.mark.parametrize("seed", range(5))
def test_random_histories(tmp_path: Path, file: File, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replaying the changes yields the file, whenever the process stops and whatever the snapshots contain."""
    choose = random.Random(seed)
    monkeypatch.setattr(changing, "UNSAVED_CHANGES", choose.choice([1, 7, 1000]))
    monkeypatch.setattr(changing, "BATCH_DOCUMENTS", 3)
    log, source = opened(tmp_path, QUOTES)
    for now in range(1, 40):
        prices = {s: choose.randrange(4) for s in "ABCDEFGH" if choose.random() < 0.6}
        file.quotes(**prices)
        polling = source.poll(now * 10)
        for _ in range(choose.randrange(3)):
            next(polling, None)
        if choose.random() < 0.3:
            log, source = opened(tmp_path, QUOTES)
        list(source.poll(now * 10 + 5))
        assert replayed(log) == {s: quote(s, p) for s, p in prices.items()}


def replayed(log: StreamLog) -> dict[str, str]:
    state: dict[str, str] = {}
    for change, body in changes(log):
        symbol = body.split("<Symbol>")[1][0]
        assert (symbol in state) == (change != "inserted")
        assert (state.get(symbol) == body) == (change == "deleted")
        state[symbol] = body
        if change == "deleted":
            del state[symbol]
    return state


def test_a_change_in_the_same_clock_tick_is_noticed(tmp_path: Path, file: File) -> None:
    log, source = opened(tmp_path, QUOTES)
    assert isinstance(source, ChangingSource)
    file.quotes(A=1)
    os.utime(file.path)
    tick = file.path.stat().st_mtime_ns
    list(source.poll(1))
    file.quotes(A=2)
    os.utime(file.path, ns=(tick, tick))
    assert polled(source, log, 2) == [("updated", quote("A", 2))]

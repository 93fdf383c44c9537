"""Many deliveries to files at once: their contents, the outcomes of failed ones, and a process that dies."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from fishweir import testing
from fishweir.delivery import disks, sending_files
from fishweir.delivery.outputs.append import Append
from fishweir.delivery.sending_files import grouped
from fishweir.testing import Clock, Weir

MANY = "subscribe to big output jsonl $box every $minutes minutes"
ROWS = [{"box": f"boxes/{i}", "minutes": 1 + i % 3} for i in range(12)]


class Died(BaseException):
    """Simulates a dead process: nothing catches this."""


def boxes() -> list[list[int]]:
    return [[json.loads(line)["output"]["x"] for line in Path(row["box"]).read_text().splitlines()] for row in ROWS]


def minute(weir: Weir, clock: Clock, *values: int) -> None:
    clock.advance(60.0)
    weir.publish("R", [{"x": value} for value in values])
    weir.step()


def test_each_file_gets_the_results_since_its_last_delivery(
    weir: Weir, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending_files, "MOST", 5)
    assert weir.register_many(MANY, ROWS) == len(ROWS)
    for value in range(10, 16):
        minute(weir, clock, value, 0)
    assert boxes() == [list(range(10, 16)) for _ in ROWS]
    assert not weir.letters()


def test_shared_results_are_serialized_once(weir: Weir, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[bytes] = []
    whole = Append.write
    monkeypatch.setattr(Append, "write", lambda self, text: (written.append(text), whole(self, text))[1])
    weir.register_many(MANY, [{**row, "minutes": 1} for row in ROWS])
    minute(weir, clock, 7)
    assert len(written) == len(ROWS)
    assert len({id(text) for text in written}) == 1


def test_failing_files_delay_no_others(weir: Weir, clock: Clock) -> None:
    weir.register_many(MANY, [{**row, "minutes": 1} for row in ROWS])
    Path("boxes/3").mkdir(parents=True)
    minute(weir, clock, 7)
    assert all(Path(row["box"]).is_file() for i, row in enumerate(ROWS) if i != 3)
    (letter,) = weir.letters()
    assert letter.action == f"jsonl {Path.cwd() / 'boxes/3'}"
    Path("boxes/3").rmdir()
    clock.advance(1.0)
    weir.step()
    assert boxes() == [[7] for _ in ROWS]


def test_targets_that_may_hang_are_sent_individually(weir: Weir, clock: Clock) -> None:
    """Opening a pipe blocks until there is a reader."""
    weir.register_many(MANY, [{**row, "minutes": 1} for row in ROWS])
    Path("boxes").mkdir()
    os.mkfifo("boxes/5")
    service = weir._delivery_service
    service.step = lambda: 0  # type: ignore[method-assign]
    minute(weir, clock, 7)
    service._poll()
    groups = [
        [delivery.channel.arguments[0] for delivery in group] for group in grouped(service.sender, service._claim())
    ]
    assert [len(group) for group in groups] == [1, len(ROWS) - 1]
    assert groups[0] == [str(Path.cwd() / "boxes/5")]


@pytest.mark.parametrize("at", [0, 5, 11])
def test_dying_in_between_delivers_once(weir: Weir, clock: Clock, at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    weir.register_many(MANY, [{**row, "minutes": 1} for row in ROWS])
    minute(weir, clock, 7)
    whole, count = Append.write, 0

    def dying(self: Append, text: bytes) -> int:
        nonlocal count
        count += 1
        if count > at:
            whole(self, text[: len(text) // 2])
            raise Died
        return whole(self, text)

    monkeypatch.setattr(Append, "write", dying)
    with pytest.raises(Died):
        minute(weir, clock, 8, 9)
    monkeypatch.setattr(Append, "write", whole)
    with testing.open(weir.home.path, clock=clock) as again:
        again.step()
        assert not again.letters()
    assert boxes() == [[7, 8, 9] for _ in ROWS]


def test_subscriptions_in_bulk_are_those_of_a_script(weir: Weir, tmp_path: Path) -> None:
    rows = [*ROWS, ROWS[0], {"box": "boxes/1", "minutes": 9}]
    weir.register_many(MANY, rows)
    with testing.open(tmp_path / "other", clock=weir.clock) as other:  # type: ignore[arg-type]
        other.execute("create stream R (x int); create query big as select x from R where x > 5")
        other.execute(
            ";".join(f"subscribe to big output jsonl '{r['box']}' every {r['minutes']} minutes" for r in rows)
        )
        assert len(stored(weir)) == len(ROWS) + 1
        assert stored(weir) == stored(other)
    weir.register_many(MANY, rows)
    assert len(stored(weir)) == len(ROWS) + 1, "those that stand are passed over"


def stored(weir: Weir) -> list[tuple[object, ...]]:
    wanted = """
        select query, text, key, every, address from subscriptions
            join channels on channels.id = subscriptions.channel join targets on targets.id = channels.target
        order by subscriptions.id
    """
    with weir.catalog.database.connect() as connection:
        return [tuple(row) for row in connection.execute(wanted)]


def test_files_on_network_mounts_are_sent_individually(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tmp_path / "mounts"
    table.write_text(
        f"a / ext4 rw 0 0\nb {tmp_path}/far\\040away nfs4 rw 0 0\nc {tmp_path}/far\\040away/near tmpfs rw 0 0\n"
    )
    monkeypatch.setattr(disks, "MOUNTS", table)
    mounted = disks.local_disks()
    assert disks.is_ordinary(f"{tmp_path}/x", mounted)
    assert not disks.is_ordinary(f"{tmp_path}/far away/x", mounted)
    assert disks.is_ordinary(f"{tmp_path}/far away/near/x", mounted)
    assert not disks.is_ordinary(str(tmp_path), mounted), "a folder"
    monkeypatch.setattr(disks, "MOUNTS", tmp_path / "none")
    assert not disks.is_ordinary(f"{tmp_path}/x", disks.local_disks())

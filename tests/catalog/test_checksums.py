"""Checksums of the catalog's rows: a flipped bit is detected, wherever it is."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from fishweir import HomeError, testing
from fishweir.catalog import database
from fishweir.catalog.catalog import Catalog
from fishweir.catalog.checksums import INTEGERS, add_functions, with_checksum
from fishweir.catalog.schema import definitions
from fishweir.catalog.sqlite import SqliteConnection

SCRIPT = """
create stream R (x int); create stream D;
create query big as select x from R where x > 5 do append 'big.jsonl';
create query deep as D//a[b->b][c = 'constant'];
create feed news from D where [title contains 'weir'];
subscribe to news output http 'http://127.0.0.1:9/';
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    with testing.open("home") as weir:
        weir.execute(SCRIPT)
        weir.register_many(
            "create query q$n as select x from R where x = $n do append 'some.jsonl'", [{"n": n} for n in range(200)]
        )
        weir.drop("q7")
        weir.pause("q8")
        weir.resume("q8")
        weir.publish("R", [{"x": x} for x in range(9)])
        weir.run(until_idle=True)
    return tmp_path / "home"


def rows(path: Path) -> dict[str, list[Any]]:
    """All rows, read without verification."""
    with closing(sqlite3.connect(path)) as connection:
        return {name: connection.execute(f"select * from {name}").fetchall() for name in definitions()}


def test_a_flipped_bit_is_noticed_wherever_it_is(home: Path) -> None:
    path, pick = home / "catalog.db", random.Random(15)
    whole, right = path.read_bytes(), rows(path)
    noticed = 0
    for _ in range(100):
        content = bytearray(whole)
        content[pick.randrange(len(content))] ^= 1 << pick.randrange(8)
        path.write_bytes(bytes(content))
        try:
            catalog = Catalog(path, is_new=False)
            catalog.verify()
        except HomeError as error:
            noticed += 1
            assert "catalog.db" in str(error)  # noqa: PT017
        else:
            assert rows(path) == right, "undetected flips are in unused space"
        finally:
            for name in ("catalog.db-wal", "catalog.db-shm"):
                (home / name).unlink(missing_ok=True)
    assert noticed


@pytest.mark.parametrize(
    ("change", "call"),
    [
        ("update shapes set shape = replace(shape, '5', '6')", lambda weir: weir.explain("big")),
        ("update queries set constants = '[6.0]' where name = 'big'", lambda weir: weir.status("big")),
        ("update queries set dropped = 3 where name = 'q7'", lambda weir: list(weir.results())),
        ("update streams set definition = replace(definition, 'int', 'tin')", lambda weir: weir.status()),
        ("update subscriptions set query = 'other' where query = 'big'", lambda weir: weir.run(until_idle=True)),
        ("update channels set arguments = '[]'", lambda weir: weir.subscriptions()),
        ("update facts set value = '0' where name = 'collected'", lambda weir: weir.run(until_idle=True)),
    ],
)
def test_readers_verify_checksums(home: Path, change: str, call: Any) -> None:
    damage(home, change)
    with pytest.raises(HomeError, match=r"catalog\.db is damaged \(row"), testing.open(home) as weir:
        call(weir)


TEXTS = (
    *("a", "it's", 'say "x"', "'\"", "back\\slash", "line\nbreak", "ü €", "\x00", "a\x00b", "", "None", "%s %d"),
    *("\u200b", "', '", "a', 1, 'b"),
)
VALUES: dict[str, tuple[Any, ...]] = {
    "float": (0.0, -0.0, 1.5, 0.1, 1e300),
    **dict.fromkeys(INTEGERS, (0, 1, -5, 2**40, 2**62)),
    **dict.fromkeys(("text", "varchar"), TEXTS),
}
ODD = (None, b"", b"1", b"a", "", "1", 0, 1, 1.5)
COLUMNS = [
    *("number integer not null", "flag boolean not null", "optional integer", "name varchar not null"),
    *("text text not null", "note text", "every float not null", "start float"),
]


@pytest.mark.parametrize("columns", [COLUMNS, COLUMNS[3:4], COLUMNS[2:3], COLUMNS[6:7], COLUMNS[3:5]], ids=len)
def test_the_test_of_usual_rows_agrees_with_the_checksum(columns: list[str]) -> None:
    """For all kinds of values, and for damage that keeps the checksum."""
    pick, kept = random.Random(3), [0]
    with closing(sqlite3.connect(":memory:")) as raw:
        add_functions(raw)
        lines = ",\n    ".join(columns)
        raw.execute(with_checksum(f"create table some (\n    {lines}\n)"))
        connection = SqliteConnection(raw, "here")
        given = connection._columns("some")
        for _ in range(300):
            row = {one.name: pick.choice(VALUES[one.type] + (None,) * 5 * one.nullable) for one in given}
            connection.insert("some", **row)
        tests = f"{connection.is_whole('some')}, sum = sum_now({', '.join(one.name for one in given)})"
        assert {tuple(row) for row in connection.execute(f"select {tests} from some")} == {(1, 1)}
        raw.create_function("row_sum", -1, lambda *_: kept[0], deterministic=True)
        for place, kept[0] in connection.execute("select rowid, sum from some"):
            column = pick.choice(given)
            new = pick.choice((*VALUES[column.type], *ODD[0 if column.nullable else 1 :]))
            new = "b" if isinstance(new, str) and "\x00" in new else new  # longer, and would move the checksum
            connection.execute(f"update some set {column.name} = :new where rowid = :place", new=new, place=place)
        found = [tuple(row) for row in connection.execute(f"select {tests} from some")]
        assert set(found) == {(0, 0), (1, 1)}
        whole = "update some set {0} = cast({0} as blob)"
        for column in given:
            connection.execute(whole.format(column.name))
        assert all(tested == exact for tested, exact in connection.execute(f"select {tests} from some"))


def damage(home: Path, change: str) -> None:
    """Changes rows without their checksums, as damage would."""
    with closing(sqlite3.connect(home / "catalog.db")) as connection:
        for name in ("row_sum", "sum_now"):
            connection.create_function(name, -1, lambda *_: 0, deterministic=True)
        assert connection.execute(change).rowcount
        connection.commit()


@pytest.mark.parametrize("values_per_statement", [3, 10_000])
@pytest.mark.parametrize(
    "change",
    ["name = 'other'", "added = added - 1", "shape = 0", "text = 'x'", "text = cast(text as blob)",
     "name = cast(name as blob)", "preference = '[]'"],
)  # fmt: skip
def test_a_damaged_query_with_results_is_named(
    home: Path, monkeypatch: pytest.MonkeyPatch, change: str, values_per_statement: int
) -> None:
    """The queries with results are read together; the message names the damaged one."""
    monkeypatch.setattr(database, "VALUES_PER_STATEMENT", values_per_statement)
    catalog = Catalog(home / "catalog.db", is_new=False)
    number = catalog.database.scalar("select number from queries where name = 'q5'")
    catalog.close()
    damage(home, f"update queries set {change} where number = {number}")
    with testing.open(home) as weir:
        message = rf"catalog\.db is damaged \(row {number} of queries: checksum mismatch\)"
        with pytest.raises(HomeError, match=message):
            list(weir.results())
        with pytest.raises(HomeError, match=message):
            weir.results().to_arrow()
        assert len(list(weir.results("q4"))) == 1, "results of other queries are readable"

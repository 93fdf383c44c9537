"""The catalog: durable, numbered, all or nothing, and shared by several processes."""

from __future__ import annotations

import math
import multiprocessing
import tracemalloc
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from fishweir.algebra.nodes import CreateQuery, CreateStream, Schedule, StreamDefinition
from fishweir.algebra.normal import to_normal
from fishweir.catalog.catalog import Catalog
from fishweir.errors import QueryError
from fishweir.languages.script import parse_script

STREAM = CreateStream(StreamDefinition("s"), "create stream s")


def query(text: str) -> CreateQuery:
    (statement,) = parse_script(text, now=0.0)
    assert isinstance(statement, CreateQuery)
    return statement


def above(name: str | None, low: int = 1) -> CreateQuery:
    named = f"create {name} " if name else ""
    return query(f"{named}where <r><v>$v</></> in 's', $v > {low} construct $v")


def add(catalog: Catalog, *statements: CreateQuery) -> list[str]:
    with catalog.change() as change:
        return list(change.add_queries(statements))


def drop(catalog: Catalog, name: str) -> None:
    with catalog.change() as change:
        change.drop(name)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "catalog.db"


@pytest.fixture
def catalog(path: Path) -> Iterator[Catalog]:
    opened = Catalog(path)
    yield opened
    opened.close()


def test_survives_reopening(path: Path, catalog: Catalog) -> None:
    whole = query(
        "create a where <r><k>'x'</><v>$v</></> in 's', $v > 1.5 construct <o by=$v>é</o>\n"
        "do append 'f.jsonl' start 2026-01-01 every 1 hour expire 2027-01-01"
    )
    with catalog.change() as change:
        change.add_stream(STREAM)
        list(change.add_queries([whole, above("b")]))
    drop(catalog, "b")
    catalog.close()
    again = Catalog(path)
    assert again.version() == 4
    assert again.streams() == {"s": (1, STREAM.stream)}
    found = again.query("a")
    assert found is not None
    assert (found.number, found.shape, found.constants, found.text) == (1, whole.shape, ("x", 1.5), whole.text)
    assert found.schedule == Schedule(1767225600.0, 3600.0, 1798761600.0)
    assert (found.added, found.dropped) == (2, None)
    assert [(one.query, one.action) for one in again.subscribers()] == [(found.name, "append f.jsonl")]
    assert [again.tombstones().upto(version).tolist() for version in (3, 4)] == [[], [2]]
    assert again.names() == ["a"]


def test_the_version_counts_every_change(catalog: Catalog) -> None:
    assert catalog.version() == 0
    with catalog.change() as change:
        change.add_stream(STREAM)
    assert catalog.version() == 1
    add(catalog, above("a"), above("b"), above("c"))
    assert catalog.version() == 4
    drop(catalog, "b")
    assert catalog.version() == 5
    with catalog.change():
        pass
    assert catalog.version() == 5
    assert [catalog.count_active(0, v) for v in range(6)] == [0, 0, 1, 1, 2, 2]
    assert [n for n, _, _ in catalog.planned(1, 4)] == [1, 3]
    assert [n for n, _, _ in catalog.planned(2, 4)] == [3]


def test_identical_statements_are_skipped(catalog: Catalog) -> None:
    for _ in range(3):
        with catalog.change() as change:
            change.add_stream(STREAM)
            assert list(change.add_queries([above("a"), above("a"), above(None)])) == ["a", "a", "q1"]
    assert catalog.version() == 3, "nothing changed after the first time"
    assert catalog.names() == ["a", "q1"]


def test_a_taken_name_is_an_error_and_changes_nothing(catalog: Catalog) -> None:
    add(catalog, above("a"))
    with pytest.raises(QueryError, match="the query a already exists"):
        add(catalog, above("fresh"), above("a", 2))
    with pytest.raises(QueryError, match="the query new already exists"):
        add(catalog, above("new"), above("new", 2))
    assert (catalog.names(), catalog.version()) == (["a"], 1)


def test_a_taken_stream_name(catalog: Catalog) -> None:
    with catalog.change() as change:
        change.add_stream(STREAM)
    other = CreateStream(StreamDefinition("s", (("x", "int"),)), "create stream s (x int)")

    def refused() -> None:
        with catalog.change() as change:
            list(change.add_queries([above("a")]))
            change.add_stream(other)

    with pytest.raises(QueryError, match="the stream s already exists"):
        refused()
    same = CreateStream(StreamDefinition("s"), "create  stream  s")
    with catalog.change() as change:
        change.add_stream(same)
    assert (catalog.names(), catalog.version()) == ([], 1)


def test_all_or_nothing(catalog: Catalog) -> None:
    def statements() -> Iterator[CreateQuery]:
        yield above("a")
        raise RuntimeError("the reader broke")

    def broken() -> None:
        with catalog.change() as change:
            change.add_stream(STREAM)
            list(change.add_queries(statements()))

    def refused() -> None:
        with catalog.change() as change:
            list(change.add_queries([above("b")]))
            change.drop("a")

    with pytest.raises(RuntimeError):
        broken()
    with pytest.raises(QueryError, match="there is no query a"):
        refused()
    assert (catalog.version(), catalog.streams(), catalog.names(), catalog.query("b")) == (0, {}, [], None)


def test_drop_and_create_again(catalog: Catalog) -> None:
    add(catalog, above("a"))
    drop(catalog, "a")
    with pytest.raises(QueryError, match="there is no query a"):
        drop(catalog, "a")
    gone = catalog.query("a")
    assert gone is not None
    assert (gone.number, gone.dropped) == (1, 2)
    with catalog.change() as change:
        list(change.add_queries([above("a", 5)]))
        change.drop("a")
        list(change.add_queries([above("a", 6)]))
    newest = catalog.query("a")
    assert newest is not None
    assert (newest.number, newest.constants, newest.dropped) == (3, (6.0,), None)
    gone_then = catalog.tombstones()
    assert (gone_then.numbers.tolist(), gone_then.changes.tolist()) == ([1, 2], [2, 4])


def test_only_new_changes_are_read_again(catalog: Catalog, executed: list[dict[str, object]]) -> None:
    mail = query("create m where <r><v>$v</></> in 's' construct $v do append 'f.jsonl'")
    add(catalog, above("a"), above("b"), mail)
    drop(catalog, "a")
    assert catalog.tombstones().numbers.tolist() == [1]
    executed.clear()
    assert catalog.tombstones().numbers.tolist() == [1]
    assert executed == [], "nothing has changed"
    add(catalog, query("create n where <r><v>$v</></> in 's' construct $v do append 'f.jsonl'"))
    drop(catalog, "m")
    executed.clear()
    assert catalog.tombstones().numbers.tolist() == [1, 3]
    assert [values for values in executed if values] == [{"after": 4}], "from the last change that was read"
    assert catalog.tombstones().within(0, 3, since=3) == 2
    assert catalog.tombstones().within(0, 3, since=4) == 1
    assert [one.query for one in catalog.subscribers()] == ["n"], "the actions of a query end with it"


def test_unnamed_queries(catalog: Catalog) -> None:
    assert add(catalog, above("q2"), above(None, 1), above(None, 2), above(None, 1)) == ["q2", "q1", "q3", "q1"]
    drop(catalog, "q1")
    assert add(catalog, above(None, 2), above(None, 1)) == ["q3", "q4"], (
        "the name of a dropped query is not assigned again"
    )


def test_expired(catalog: Catalog) -> None:
    add(catalog, query("create a where <r/> element_as $r in 's' construct $r expire 1970-01-02"), above("b"))
    assert catalog.expired(86_399) == []
    assert catalog.expired(86_400) == ["a"]
    assert catalog.next_due(catalog.version()) == 86_400
    drop(catalog, "a")
    assert catalog.expired(86_400) == []
    assert catalog.next_due(catalog.version()) == math.inf


def test_stored_normal_form_and_signature(catalog: Catalog) -> None:
    text = "create {} where <r><k>$k</><v>$v</></> in 's', $k = 'x', $v > 2 construct $v"
    add(catalog, query(text.format("a")), query(text.format("b").replace("'x'", "'y'")))
    with catalog.database.connect() as connection:
        (row,) = connection.execute("select normal_form, signature from shapes")
    assert row.normal_form == "s: r.k, r.v | r.k = constant and r.v > number | r.v"
    assert row.signature == "r.k = constant in s and r.v > number in s"


def test_constants_come_in_the_template_s_order(catalog: Catalog) -> None:
    written = query("create a where <r><z>$z</><b>$b</></> in 's', $z > 2, $b = 'x' construct $z")
    add(catalog, written)
    ((number, template, constants),) = catalog.planned(0, 1)
    assert (number, template) == (1, to_normal(written.shape).template)
    paths = [".".join(map(str, template.path(c.node))) for c in template.constants]
    assert dict(zip(paths, constants, strict=True)) == {"r.b": "x", "r.z": 2.0}


def test_fifty_thousand_queries_need_little_memory(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """Queries are read, named and stored in chunks, never all at once."""
    monkeypatch.setattr("fishweir.catalog.change.CHUNK", 2_000)
    first = above("a")
    total = 50_000

    def statements() -> Iterator[CreateQuery]:
        for i in range(total):
            yield CreateQuery(first.shape, (float(i),), f"n{i}", text=f"create n{i} {'x' * 500} {i}")

    tracemalloc.start()
    with catalog.change() as change:
        stored = sum(1 for _ in change.add_queries(statements()))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert stored == total == catalog.version() == catalog.count_active(0, total)
    assert peak < 10_000_000, "the texts alone have 25 MB"
    assert [n for n, _, _ in islice(catalog.planned(0, total), 3)] == [1, 2, 3]


def register(path: Path, prefix: str, count: int, ready) -> None:  # type: ignore[no-untyped-def]
    ready.wait()
    catalog = Catalog(path)
    for i in range(0, count, 10):
        add(
            catalog,
            *(above(f"{prefix}{j}", j) for j in range(i, i + 8)),
            above(None, other_low(prefix, i)),
            above(None, other_low(prefix, i) + 1),
        )


def other_low(prefix: str, i: int) -> int:
    return 1_000_000 * ord(prefix) + i * 2


def test_two_processes_register_at_once(path: Path) -> None:
    """Also on a catalog that neither has created yet. No query is lost, and no number is assigned twice."""
    context = multiprocessing.get_context("spawn")
    ready = context.Barrier(2)
    workers = [context.Process(target=register, args=(path, prefix, 500, ready)) for prefix in "ab"]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout=600)
    assert [worker.exitcode for worker in workers] == [0, 0]
    catalog = Catalog(path)
    assert catalog.version() == 1_000
    assert len(set(catalog.names())) == 1_000
    named = {f"{prefix}{i}" for prefix in "ab" for i in range(500) if i % 10 < 8}
    assert set(catalog.names()) == named | {f"q{i}" for i in range(1, 201)}
    assert sorted(number for number, _, _ in catalog.planned(0, 1_000)) == list(range(1, 1_001))


def open_new(folder: Path, count: int, ready) -> None:  # type: ignore[no-untyped-def]
    for i in range(count):
        ready.wait(600)
        assert Catalog(folder / f"{i}.sqlite").version() == 0


def test_many_processes_open_a_new_catalog_at_once(tmp_path: Path) -> None:
    """SQLite does not wait while a file is switched to write-ahead logging; the catalog does."""
    context = multiprocessing.get_context("spawn")
    ready = context.Barrier(4)
    workers = [context.Process(target=open_new, args=(tmp_path, 25, ready)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout=600)
    assert [worker.exitcode for worker in workers] == [0] * 4


@pytest.mark.parametrize("name", ["ünï", "a b", "x';--", 'q"', "%", "NULL"])
def test_any_name(catalog: Catalog, name: str) -> None:
    first = above("a")
    assert add(catalog, CreateQuery(first.shape, (1.0,), name, text=name)) == [name]
    found = catalog.query(name)
    assert found is not None
    drop(catalog, name)
    assert catalog.names() == []

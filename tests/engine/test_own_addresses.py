"""Queries and subscriptions with an address each: in bulk, what is stored is what single statements store."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from fishweir import testing
from fishweir.engine.weir import Weir
from fishweir.errors import QueryError
from fishweir.languages.bulk import render_rows

NOW = 1_000_000.0
SETUP = """
    create stream S; create stream R (x int, s string); create stream news;
    create feed F from news as $n where $n[title contains 'x']
"""
QUERIES = {
    "a mail": "create query $name as select x from R where x > $a do mail $to",
    "part of an address": "create query $name as select x from R where x > $a do mail '$name@example.org'",
    "a URL": "create query $name as select x from R where x > $a do http $url secret key",
    "a file": "create query $name as select x from R where x > $a do append $file",
    "two actions": "create query $name as select x from R where x > $a do mail $to do append $file",
    "one of two": "create query $name as select x from R where x > $a do append 'all.jsonl' do http $url every 1 hour",
    "the same twice": "create query $name as select x from R where x > $a do mail $to do mail $to",
    "an interval": "create query $name as select s from R where x > $a do mail $to start '2030-01-01' every 1 day",
    "an option": "create query $name as select s from R where x > $a do mail $to at most 3 per hour",
    "no constant": "create query $name as select s from R do http $url",
    "XSCL": "create query $name as S/a/b[c = $a]/d do mail $to",
    "NiagaraCQ": "create $name where <a><b>$v</></> in 'S', $v = $a construct $v do mail $to every 2 hours",
    "XQuery": "create query $name as for $d in stream('S')/a where $d/b = $a return $d do http $url",
    "RoSeS": "create query $name as from news as $n where $n[title contains $word] do mail $to",
    "a path": "create query $name as S$path do mail $to",
    "a path with two actions": "create query $name as S$path do append $file do http $url every 1 hour",
    "a path with its own interval": "create query $name as S$path do mail $to every $often",
}
SUBSCRIPTIONS = {
    "a mail": "subscribe to F output mail $to",
    "an interval": "subscribe to F output mail $to every 2 hours",
    "its own interval": "subscribe to F output http $url every $often minutes",
    "a file": "subscribe to F output append $file start '2030-01-01' every $often expire '2031-01-01'",
    "an end in some days": "subscribe to F output mail $to every 1 hour expire in 3 days",
    "a stream": "subscribe to news output mail $to at most $often per hour",
    "a feed": "subscribe to $feed output mail $to",
}
PATHS = ("/a/b", "//a[@k = 'it''s']/b", "/a[b = 3]//c", "/*/b/@k", "/a[b < 'x']", "/a->v", "/a[contains(b, 'c')]")


def drawn_rows(seed: int, count: int = 130) -> list[dict[str, Any]]:
    draw = random.Random(seed)
    users = ["o'neill", "jürgen", "李", "a+b", 'q\\"uote', "X", *(f"u{i}" for i in range(60))]
    rows = []
    for i in range(count):
        user = draw.choice(users)
        rows.append(
            {
                "name": f"q{i}",
                "a": draw.randint(0, 9),
                "word": draw.choice(("it's", "weir", "ü")),
                "to": f"{user.replace(chr(34), '')}@example.org",
                "url": f"http://h{draw.randint(1, 3)}.example.org:{draw.choice((80, 8080))}/{user}?x='{i % 7}'",
                "file": f"{user} {i % 9}.jsonl",
                "path": draw.choice(PATHS) if i else "/a",
                "often": draw.choice((1, 5, 30)),
                "feed": draw.choice(("F", "news")),
            }
        )
    return rows


def stored(weir: Weir) -> dict[str, list[tuple[Any, ...]]]:
    """What was registered, without the numbers of rows, which depend on the order of insertion, and random tokens."""
    tables = {
        "queries": "name, unnamed, text, start, every, expire, paused, published, added, dropped from queries",
        "subscriptions": """query, feed, timed, by_query, start, expire, text, paused, added, dropped, key, output,
            arguments, stylesheet, every, anchor, address, host from subscriptions
            join channels on channels.id = channel join targets on targets.id = target""",
        "timers": "key, timers.due, batch from timers join channels on channels.id = channel",
        "targets": "address, host from targets",
        "channels": "key from channels",
    }
    with weir.catalog.database.connect() as connection:
        found = {name: [tuple(row) for row in connection.execute(f"select {of}")] for name, of in tables.items()}
    return {name: sorted(rows, key=repr) for name, rows in found.items()}


def by_rows(weir: Weir, template: str, rows: Sequence[dict[str, Any]]) -> None:
    assert weir.register_many(template, rows) == len(rows)


def by_script(weir: Weir, template: str, rows: Sequence[dict[str, Any]]) -> None:
    weir.execute(";\n".join(render_rows(template, rows)))


def one_by_one(weir: Weir, template: str, rows: Sequence[dict[str, Any]]) -> None:
    for text in render_rows(template, rows):
        weir.execute(text)


@pytest.fixture
def new_weir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Weir]]:
    monkeypatch.chdir(tmp_path)
    opened: list[testing.Weir] = []

    def new() -> Weir:
        opened.append(testing.open(tmp_path / f"home{len(opened)}", clock=testing.Clock(NOW)))
        opened[-1].execute(SETUP)
        return opened[-1]

    yield new
    for weir in opened:
        weir.close()


@pytest.mark.parametrize("kind", QUERIES)
def test_queries_in_bulk_are_stored_like_single_ones(kind: str, new_weir: Callable[[], Weir]) -> None:
    rows, homes = drawn_rows(len(kind)), [new_weir() for _ in range(3)]
    for weir, register in zip(homes, (one_by_one, by_rows, by_script), strict=True):
        register(weir, QUERIES[kind], rows)
    expected = stored(homes[0])
    assert len(expected["queries"]) == len(rows) + 1
    assert stored(homes[1]) == expected
    assert stored(homes[2]) == expected


@pytest.mark.parametrize("kind", SUBSCRIPTIONS)
def test_subscriptions_in_bulk_are_stored_like_single_ones(kind: str, new_weir: Callable[[], Weir]) -> None:
    rows, homes = drawn_rows(len(kind)), [new_weir() for _ in range(3)]
    for weir, register in zip(homes, (one_by_one, by_rows, by_script), strict=True):
        register(weir, SUBSCRIPTIONS[kind], rows)
    singles, columns, script = map(stored, homes)
    for found in (singles, columns, script):
        if any("all items" in str(query) for query in found["queries"]):
            # a stream's query takes a number before or after those that follow the first subscription
            found["subscriptions"] = [row[:8] + row[9:] for row in found["subscriptions"]]
            found["queries"] = [row[:8] for row in found["queries"]]
    assert singles["subscriptions"]
    assert columns == singles
    assert script == singles


@pytest.mark.parametrize("kind", ["a mail", "two actions", "XSCL", "RoSeS", "a path"])
@pytest.mark.parametrize("register", [by_rows, by_script])
def test_an_invalid_address_is_reported_like_that_of_a_single_query(
    kind: str, register: Callable[..., None], new_weir: Callable[[], Weir]
) -> None:
    weir, rows = new_weir(), drawn_rows(1)
    before = stored(weir)
    rows[117]["to"] = rows[121]["to"] = "no address"
    with pytest.raises(QueryError) as alone:
        weir.execute(next(iter(render_rows(QUERIES[kind], rows[117:]))))
    with pytest.raises(QueryError) as found:
        register(weir, QUERIES[kind], rows)
    assert "query q117 has an invalid action: 'no address' is not a mail address" in found.value.reason
    assert found.value.reason == alone.value.reason
    assert stored(weir) == before


@pytest.mark.parametrize("register", [by_rows, by_script])
def test_the_first_invalid_subscription_is_reported(
    register: Callable[..., None], new_weir: Callable[[], Weir]
) -> None:
    weir, rows = new_weir(), drawn_rows(2)
    before = stored(weir)
    rows[120]["feed"], rows[118]["to"] = "G", "nobody"
    with pytest.raises(QueryError, match="'nobody' is not a mail address"):
        register(weir, SUBSCRIPTIONS["a feed"], rows)
    rows[118]["to"], rows[125]["to"] = "a@example.org", "nobody"
    with pytest.raises(QueryError, match="there is no feed 'G' to subscribe to"):
        register(weir, SUBSCRIPTIONS["a feed"], rows)
    with pytest.raises(QueryError, match="'nobody' is not a mail address"):
        register(weir, SUBSCRIPTIONS["an interval"], rows)
    assert stored(weir) == before


@pytest.mark.parametrize("template", [QUERIES["a mail"], QUERIES["a path"], SUBSCRIPTIONS["an interval"]])
@pytest.mark.parametrize(
    ("value", "message"),
    [(None, "row 91: the column 'to' has no value"), ("", "'' is not a mail address"), (5, "'5' is not a mail")],
)
def test_values_that_are_no_address(template: str, value: object, message: str, new_weir: Callable[[], Weir]) -> None:
    weir, rows = new_weir(), drawn_rows(3)
    before = stored(weir)
    rows[90]["to"] = value
    with pytest.raises(QueryError, match=message):
        weir.register_many(template, rows)
    assert stored(weir) == before


@pytest.mark.parametrize("kind", ["a mail", "a path"])
def test_names_that_are_taken(kind: str, new_weir: Callable[[], Weir]) -> None:
    weir, rows = new_weir(), drawn_rows(4)
    weir.register_many(QUERIES[kind], [*rows, *rows[:3]])
    before = stored(weir)
    weir.register_many(QUERIES[kind], rows)
    assert stored(weir) == before
    more = [{**row, "name": f"r{i}"} for i, row in enumerate(rows)]
    more[77] = {**rows[77], "to": "other@example.org"}
    with pytest.raises(QueryError, match="the query q77 already exists with a different definition"):
        weir.register_many(QUERIES[kind], more)
    assert stored(weir) == before


def test_subscriptions_that_exist_are_skipped(new_weir: Callable[[], Weir]) -> None:
    weir, rows = new_weir(), [{"to": f"u{i % 120}@example.org"} for i in range(150)]
    weir.register_many(SUBSCRIPTIONS["a mail"], rows)
    before = stored(weir)
    assert len(before["subscriptions"]) == 120
    by_script(weir, SUBSCRIPTIONS["a mail"], rows)
    assert stored(weir) == before


def test_times_of_subscriptions_count_from_their_registration(new_weir: Callable[[], Weir]) -> None:
    weir, text = new_weir(), SUBSCRIPTIONS["an end in some days"]
    for day in range(2):
        weir.clock = testing.Clock(NOW + day * 86_400)
        weir.register_many(text, [{"to": f"u{i}-{day}@example.org"} for i in range(120)])
    ends = {(one.arguments[0][-13:], one.expire) for one in weir.catalog.subscribers() if not one.by_query}
    assert ends == {(f"{day}@example.org", NOW + (3 + day) * 86_400) for day in range(2)}


def test_a_script_of_many_kinds_keeps_its_order(new_weir: Callable[[], Weir]) -> None:
    rows, homes = drawn_rows(5), [new_weir(), new_weir()]
    templates = [*SUBSCRIPTIONS.values()][:3] * 40 + [QUERIES["a mail"]] * 5 + [SUBSCRIPTIONS["a mail"]] * 5
    texts = [next(iter(render_rows(template, [row]))) for template, row in zip(templates, rows, strict=True)]
    homes[0].execute(";\n".join(texts))
    for text in texts:
        homes[1].execute(text)
    assert stored(homes[0]) == stored(homes[1])
    assert [one.text for one in homes[0].catalog.subscribers()] == [one.text for one in homes[1].catalog.subscribers()]


def test_many_subscriptions_are_ended_by_a_script(new_weir: Callable[[], Weir]) -> None:
    weir, rows = new_weir(), [{"to": f"u{i}@example.org", "name": f"q{i}", "a": i} for i in range(150)]
    for feed in ("F", "news"):
        weir.register_many(f"subscribe to {feed} output mail $to every 1 hour", rows)
    weir.register_many("subscribe to F output mail $to", rows[:20])
    weir.register_many(QUERIES["a mail"], rows)
    weir.execute(";".join(render_rows("unsubscribe from F output mail $to", rows[:140])))
    left = [one for one in weir.catalog.subscribers() if not one.by_query]
    expected = [("F", row["to"]) for row in rows[140:]] + [("news", row["to"]) for row in rows]
    assert sorted((one.feed, one.target) for one in left) == sorted(expected)
    assert len([one for one in weir.catalog.subscribers() if one.by_query]) == 150
    before = stored(weir)
    with pytest.raises(QueryError, match="there is no such subscription to 'F'"):
        weir.execute(";".join(render_rows("unsubscribe from F output mail $to", [*rows[140:], rows[3]])))
    assert stored(weir) == before
    weir.execute(";".join(render_rows("unsubscribe from news output mail $to", rows)))
    assert not [one for one in weir.catalog.subscribers() if one.feed == "news"]
    assert not [name for name in weir.catalog.names() if "items" in name]


@pytest.mark.parametrize("by", ["names", "pattern"])
def test_dropped_queries_end_their_actions(by: str, new_weir: Callable[[], Weir]) -> None:
    weir, rows = new_weir(), drawn_rows(6)
    weir.register_many(QUERIES["one of two"], rows)
    weir.register_many(QUERIES["a mail"].replace("$name", "r$name"), rows)
    if by == "names":
        weir.drop_many([row["name"] for row in rows])
    else:
        weir.execute("drop where name like 'q%'")
    assert {one.query for one in weir.catalog.subscribers()} == {f"rq{i}" for i in range(len(rows))}
    assert not stored(weir)["timers"]
    weir.register_many(QUERIES["one of two"], rows)
    assert len(weir.catalog.subscribers()) == 3 * len(rows)
    assert len(stored(weir)["timers"]) == len({(row["url"]) for row in rows}) + 1

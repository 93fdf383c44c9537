"""Tuples that queries of every language publish and read: columns, types, ids; each level equals the oracle."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from fishweir import testing
from fishweir.algebra.construct import construct, joined_columns, select_columns
from fishweir.algebra.documents import Document, parse_document, tuple_to_document
from fishweir.algebra.feeds import Selection
from fishweir.algebra.join_oracle import evaluate_join
from fishweir.algebra.nodes import Source
from fishweir.algebra.oracle import evaluate, selects
from fishweir.errors import QueryError
from fishweir.pipeline.home import open_log

TRADES = "create stream trades (symbol string, price double, size int, buy boolean, at timestamp);"
NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)
LATE = {"symbol": "A", "price": 120.0, "size": 10, "buy": True, "at": datetime(2026, 2, 1, tzinfo=UTC)}
EARLY = {"symbol": "A", "price": 10.0, "size": 3, "buy": None, "at": datetime(2025, 2, 1, tzinfo=UTC)}


def found(weir, name):
    return [(r.documents, r.output) for r in weir.results(name)]


def columns(weir, name):
    return dict(weir.catalog.streams()[name][1].columns)


@pytest.fixture
def trades(tmp_path):
    with testing.open(tmp_path / "home") as weir:
        weir.execute(TRADES + "create stream docs")
        yield weir


def test_select_lists_are_streams_of_typed_tuples(trades):
    trades.execute("""
        select symbol, price, at as moment from trades where price > 100 publish expensive;
        select symbol from expensive where moment > '2026-01-01T01:00:00+02:00' and price = 120 publish recent;
        create query sql as select * from recent;
        create query ordered as select l.price as price from expensive [range 9] as l, trades [range 9] as r
            where l.moment > r.at and l.price >= r.size;
        create query path as expensive/expensive[price > 100]/moment;
        create query niagara as where <expensive><symbol>$s</></> in "expensive" construct <o>$s</o>;
        create feed feed from expensive where [price > 100];
    """)
    assert columns(trades, "expensive") == {"symbol": "string", "price": "double", "moment": "timestamp"}
    trades.publish("trades", [EARLY, LATE], timestamps=[1, 2], ids=["early", "late"])
    trades.run(until_idle=True)
    moment = "2026-02-01T00:00:00+00:00"
    assert found(trades, "recent") == [(["expensive-1"], {"symbol": "A"})]
    assert found(trades, "sql") == [(["recent-1"], {"symbol": "A"})]
    assert found(trades, "ordered") == [(["early", "expensive-1"], {"price": 120.0})]
    assert found(trades, "path") == [(["expensive-1"], f"<moment>{moment}</moment>")]
    assert found(trades, "niagara") == [(["expensive-1"], "<o>A</o>")]
    item = f"<expensive><symbol>A</symbol><price>120</price><moment>{moment}</moment></expensive>"
    assert found(trades, "feed") == [(["expensive-1"], item)]


FILTERS = [
    # a filter that publishes P, the name of the elements of its tuples
    ("select * from trades where size > 5 publish P", "P"),
    ("trades publish P", "trades"),
    ("trades/trades[size > 5] publish P", "trades"),
    ("where <trades><size>$s</></> element_as $t in 'trades', $s > 5 construct $t publish P", "trades"),
    ("create feed P from trades where [size > 5]", "trades"),
    ("from trades where [size > 5] publish P", "trades"),
]


@pytest.mark.parametrize(("text", "element"), FILTERS)
def test_filters_keep_tuples_their_ids_and_types(trades, text, element):
    trades.execute(f"""
        {text};
        create query all as select * from P where at > '2026-01-01';
        create query path as P/{element}/price;
        create query itself as select l.size as size from P [range 9] as l, trades [range 9] as r where l.size = r.size;
    """)
    assert columns(trades, "P") == columns(trades, "trades")
    trades.publish("trades", [LATE, LATE], timestamps=[1, 2], ids=["one", "two"])
    trades.run(until_idle=True)
    assert found(trades, "all") == [(["one"], LATE), (["two"], LATE)]
    assert found(trades, "path") == [(["one"], "<price>120</price>"), (["two"], "<price>120</price>")]
    pairs = sorted(documents for documents, _ in found(trades, "itself"))
    assert pairs == [["one", "two"], ["one", "two"]], "a tuple does not meet itself by another name"


def test_columns_of_joins(trades):
    trades.execute("""
        select a.*, b.* from trades [range 9] as a, docs [range 9] as d, trades [range 9] as b
            where a.symbol = d.s and b.symbol = d.s and a.size < b.size publish three;
        select a.price, d.s, d.k.v as deep, b.* from trades [range 9] as a, docs [range 9] as d, trades [range 9] as b
            where a.symbol = d.s and b.symbol = d.s and a.size < b.size publish mixed;
        select * from trades [range 9], docs [range 9] where trades.symbol = docs.s publish open;
        create query three_read as select "a.price" as low, "b.at" as at from three where "b.at" > '2026-01-01';
        create query mixed_read as select * from mixed;
        create query open_read as open/open;
    """)
    whole = columns(trades, "trades")
    assert columns(trades, "three") == {f"{name}.{n}": kind for name in "ab" for n, kind in whole.items()}
    expected = {"s": "string", "deep": "string", **whole}
    del expected["price"]
    assert columns(trades, "mixed") == {"price": "double", **expected, "b.price": "double"}
    assert columns(trades, "open") == {}, "the columns of documents are not known before they come"
    trades.publish("trades", [EARLY, LATE], timestamps=[1, 2], ids=["early", "late"])
    trades.publish("docs", ["<d><s>A</s><k><v>7</v></k></d>"], timestamps=[3], ids=["d"])
    trades.run(until_idle=True)
    assert found(trades, "three_read") == [(["three-1"], {"low": 10.0, "at": LATE["at"]})]
    ((_, mixed),) = found(trades, "mixed_read")
    assert (mixed["price"], mixed["b.price"], mixed["deep"], mixed["at"]) == (10.0, 120.0, "7", LATE["at"])
    text = found(trades, "open_read")[0][1]
    assert text.startswith("<open><symbol>A</symbol><price>10</price>")
    assert text.endswith("<s>A</s><k>7</k></open>")


def test_documents_selected_whole_by_sql_are_unchanged(trades):
    trades.execute("""
        select * from docs where x = 7 publish P; select x, "@k" from docs publish Q;
        create query whole as P; create query path as P/d/x; create query row as select * from Q where k = 1;
    """)
    assert (columns(trades, "P"), columns(trades, "Q")) == ({}, {"x": "string", "k": "string"})
    body = '<d k="1"><x>7</x><!-- more --><x>8</x></d>'
    trades.publish("docs", [body, "<d><x>9</x></d>"], ids=["a", "b"])
    trades.run(until_idle=True)
    assert found(trades, "whole") == [(["a"], body)]
    assert found(trades, "path") == [(["a"], "<x>7</x>"), (["a"], "<x>8</x>")]
    assert found(trades, "row") == [(["Q-1"], {"x": "7", "k": "1"})]


REFUSED = [
    # statements, the place is at this text of the last one, words
    ("select symbol from trades publish P; select price from P", "price", "reads price; the columns of P are symbol"),
    ("select at from trades publish P; select at from P where at > 'soon'", "soon", "compares at, a time, with soon"),
    ("select * from P publish P", "P publish", "query P reads itself"),
    ("select * from trades publish trades", "trades", "query trades: there is already a stream with this name"),
    ("select * from P publish Q", "P", "reads P, which is neither a stream nor a file"),
]


@pytest.mark.parametrize(("text", "place", "words"), REFUSED)
def test_refused(trades, text, place, words):
    with pytest.raises(QueryError) as caught:
        trades.execute(text)
    last = text.split(";")[-1].strip()
    assert words in caught.value.reason
    assert caught.value.column == last.rindex(place) + 1
    assert trades.catalog.names() == []


def test_feeds_and_queries_with_readers_cannot_be_dropped(trades):
    trades.execute("""
        select symbol, size from trades publish P; select symbol from P publish Q;
        where <Q><symbol>$s</></> in "Q" construct <s>$s</s> publish R; create query last as R;
    """)
    for name, reader in (("P", "Q"), ("Q", "R"), ("R", "last")):
        with pytest.raises(QueryError, match=f"the query {name} is read by {reader}; drop them first"):
            trades.drop(name)
    trades.execute("delete last; delete R; delete Q; delete P")
    assert list(trades.catalog.streams()) == ["trades", "docs"]


def test_readers_of_an_expired_query_keep_its_columns(trades):
    trades.execute("select symbol from trades publish P expire 2001-01-01; select * from P publish Q")
    trades._expire()
    with pytest.raises(QueryError, match="query P: its readers expect the columns symbol string; first drop Q"):
        trades.execute("select price from trades publish P")
    with pytest.raises(QueryError, match="the queries read each other: P -> Q -> P"):
        trades.execute("select symbol from Q publish P")
    trades.execute("select symbol from trades where price > 5 publish P")
    with pytest.raises(QueryError, match="feed F: its readers expect the columns symbol string, price double"):
        trades.execute("create feed F from trades; create query q as F; create or replace feed F from docs")


# Each level against the oracle


@dataclass(frozen=True)
class Level:
    """A stream with the columns of its tuples and the name of their element; without columns if it has documents."""

    name: str
    columns: dict[str, str]
    element: str


CONDITIONS = {
    "int": ("{} > 2", "{} = 3.0", "{} != 1"),
    "double": ("{} <= 2.5", "{} = 3", "not {} > 2"),
    "string": ("{} = 'x'", "{} in ('y', '3')", "{} is not null"),
    "boolean": ("{} = true", "{} != false"),
    "timestamp": ("{} >= '2026-01-03'", "{} < '2026-01-03T02:00:00+02:00'"),
}


def condition(draw: random.Random, level: Level, prefix: str = "") -> str:
    """One of two conditions, so that some tuples pass several levels."""
    chosen = draw.choices(sorted(level.columns.items()), k=2)
    parts = [draw.choice(CONDITIONS[kind]).format(f'{prefix}"{name}"') for name, kind in chosen]
    return f"({' or '.join(parts)})"


def projection(draw: random.Random, name: str, level: Level) -> tuple[str, Level]:
    chosen = draw.sample(sorted(level.columns), draw.randint(1, len(level.columns)))
    shown = ", ".join(f'"{column}" as c{i}' for i, column in enumerate(chosen))
    kinds = {f"c{i}": level.columns[column] for i, column in enumerate(chosen)}
    return f"select {shown} from {level.name} where {condition(draw, level)} publish {name}", Level(name, kinds, name)


def selection(draw: random.Random, name: str, level: Level) -> tuple[str, Level]:
    return f"select * from {level.name} where {condition(draw, level)} publish {name}", Level(name, level.columns, name)


def filtered(draw: random.Random, name: str, level: Level) -> tuple[str, Level]:
    column = draw.choice(sorted(level.columns))
    text = draw.choice((f"{level.name}/{level.element}[{column}]", f"from {level.name}", f"{level.name}"))
    return f"{text} publish {name}", Level(name, level.columns, level.element)


def joined(draw: random.Random, name: str, left: Level, right: Level) -> tuple[str, Level]:
    one, two = (draw.choice(sorted(level.columns)) for level in (left, right))
    alike = [(a, b) for a, kind in left.columns.items() for b, other in right.columns.items() if kind == other]
    extra = ""
    if alike:
        a, b = draw.choice(alike)
        op = draw.choice(("=", "<=")) if left.columns[a] == "timestamp" else "="
        extra = f' and l."{a}" {op} r."{b}"'
    text = (
        f'select l."{one}" as c0, r."{two}" as c1 from {left.name} [range 900] as l, {right.name} [range 900] as r '
        f"where {condition(draw, left, 'l.')}{extra} publish {name}"
    )
    return text, Level(name, {"c0": left.columns[one], "c1": right.columns[two]}, name)


def script(draw: random.Random) -> tuple[list[str], list[Level]]:
    """Queries, each over the levels before it, and the levels that they create; only two of them are joins."""
    base = {"a": "int", "b": "double", "s": "string", "f": "boolean", "t": "timestamp"}
    levels, texts = [Level("R", base, "R")], []
    for i in range(9):
        kind = joined if i in (2, 5) else draw.choice((projection, selection, filtered))
        sources = [draw.choice(levels[-4:]), *([levels[0]] if kind is joined else [])]
        text, level = kind(draw, f"P{i}", *sources)
        texts.append(text)
        levels.append(level)
    return texts, levels


def items_of(weir, name: str) -> list[tuple[Document, dict[str, Any] | None]]:
    """All documents of a stream so far, in the form that the oracle takes."""
    id, stream = weir.catalog.streams()[name]
    log = open_log(weir.home.streams, id)
    entries = [log.entry(number) for number in range(1, log.head() + 1)]
    roots = [
        tuple_to_document(stream.tuple_element, e.values) if e.values is not None else parse_document(e.body or b"")
        for e in entries
    ]
    return [(Document(e.id, e.timestamp, root), e.values) for e, root in zip(entries, roots, strict=True)]


def expected(weir, name: str) -> list[tuple[list[str], float, Any]]:
    """The oracle's results of a query over the documents of its sources."""
    query = weir.catalog.query(name)
    shape, constants = query.shape, query.constants
    if isinstance(shape, Selection):
        source: Source = shape.filters[0].source
        return [
            ([d.id], d.timestamp, select_columns(shape.output, d.root, values))
            for d, values in items_of(weir, source.name)
            if selects(shape, constants, source, d)
        ]
    sides = [items_of(weir, block.source.name) for block in shape.blocks]
    if len(sides) == 1:
        return [
            ([d.id], d.timestamp, construct(shape.output, {n: (node.element, None) for n, node in binding.items()}))
            for d, _ in sides[0]
            for binding in evaluate(shape, constants, d)
        ]
    values = {id(d.root): v for side in sides for d, v in side}
    pairs = evaluate_join(shape, constants, [[d for d, _ in side] for side in sides])
    return [
        (
            p.documents,
            p.timestamp,
            joined_columns(shape.columns, [(d.root, values[id(d.root)]) for d in p.sides]),
        )
        for p in pairs
        if len({d.id for d in p.sides}) == len(p.sides)
    ]


def rows(draw: random.Random, count: int) -> list[dict[str, Any]]:
    choices = {
        "a": (1, 2, 3, None), "b": (1.0, 2.5, 3.0, None), "s": ("x", "y", "3"), "f": (True, False, None),
        "t": tuple(NEW_YEAR.replace(day=day) for day in (1, 2, 3, 4)),
    }  # fmt: skip
    return [{name: draw.choice(values) for name, values in choices.items()} for _ in range(count)]


@pytest.mark.parametrize("seed", range(6))
def test_every_level_agrees_with_the_oracle(tmp_path, seed):
    draw = random.Random(seed)
    texts, levels = script(draw)
    create = "create stream R (a int, b double, s string, f boolean, t timestamp); "
    for part in range(3):
        with testing.open(tmp_path / "home") as weir:
            weir.execute(create + ";".join(texts))
            weir.publish("R", rows(draw, 6), timestamps=[part * 10 + i for i in range(6)])
            weir.run(until_idle=True)
    with testing.open(tmp_path / "home") as weir:
        streams = weir.catalog.streams()
        assert len({r.query for r in weir.results()}) > 3, "most queries have results"
        for level in levels[1:]:
            results = [(r.documents, r.timestamp, r.output) for r in weir.results(level.name)]
            assert sorted(results, key=repr) == sorted(expected(weir, level.name), key=repr), texts
            if level.name not in streams:
                continue
            assert dict(streams[level.name][1].columns) == level.columns
            put = [(d.timestamp, v) for d, v in items_of(weir, level.name)]
            if all(isinstance(output, dict) for _, _, output in results):
                assert put == [(time, output) for _, time, output in results]
            else:
                assert [time for time, _ in put] == [time for _, time, _ in results]

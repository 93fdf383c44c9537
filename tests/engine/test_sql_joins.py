"""SQL joins through the engine: tuples and documents, typed columns, each pair once, and the real Spark job."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from fishweir import testing
from fishweir.algebra.documents import Document, parse_document, tuple_to_document
from fishweir.algebra.join_oracle import evaluate_join
from fishweir.errors import QueryError
from fishweir.languages.script import parse_script

STREAMS = """
    create stream R (a int, c double, k int, x string, t double) timestamp t;
    create stream S (b int, d double, y double, x string, t double) timestamp t;
    create stream D timestamp t;
"""
QUERIES = {
    "both": "select R.x, S.y as z from R [range 10 seconds], S [rows 2] where R.a = S.b and R.c < S.d and R.k > 1",
    "either": "select * from R [range 6], S [range 3] where R.a = S.b and (R.k > 2 or S.y > 1)",
    "mixed": 'select R.k, D."@id" as i from R [rows 3] join D [range unbounded] on R.x = D.v',
    "itself": "select l.t as one, r.t as two from R [rows 2] as l, R [rows 2] as r where l.a = r.a",
}


def row(draw: random.Random, names: str, time: float) -> dict[str, object]:
    one, two, three = names
    cells = {one: draw.choice([None, 0, 1, 2]), two: draw.choice([0.5, 1.5]), three: draw.choice([None, 0, 1, 2, 3])}
    return cells | {"x": draw.choice(["u", "v", None]), "t": time}


def arrivals(seed: int) -> list[tuple[str, dict[str, object] | str]]:
    draw, found = random.Random(seed), []
    for time in range(1, 31):
        stream = draw.choice("RRSSD")
        if stream == "D":
            values = "".join(f"<v>{v}</v>" for v in draw.choices("uvw", k=2))
            found.append((stream, f"<d id='{time}'><t>{time}</t>{values}</d>"))
        else:
            found.append((stream, row(draw, "ack" if stream == "R" else "bdy", float(time))))
    return found


def oracle(arrived, text: str) -> list[list[str]]:
    by_stream: dict[str, list[Document]] = {"R": [], "S": [], "D": []}
    for time, (stream, item) in enumerate(arrived, 1):
        root = parse_document(item.encode()) if isinstance(item, str) else tuple_to_document(stream, item)
        own = by_stream[stream]
        own.append(Document(f"{stream}-{len(own) + 1}", float(time), root))
    (query,) = parse_script(text)
    sides = [by_stream[block.source.name] for block in query.shape.blocks]
    return sorted(pair.documents for pair in evaluate_join(query.shape, query.constants, sides))


def published(weir, arrived) -> None:
    for stream, item in arrived:
        weir.publish(stream, [item])


@pytest.fixture
def plain(tmp_path: Path):
    """A weir that runs micro-batches without Spark."""
    with testing.open(tmp_path / "home") as weir:
        weir.execute(STREAMS + "".join(f"create query {name} as {text};" for name, text in QUERIES.items()))
        yield weir


@pytest.mark.parametrize("seed", [1, 2])
def test_micro_batches_equal_oracle(plain, seed: int) -> None:
    arrived = arrivals(seed)
    for start in range(0, len(arrived), 7):
        published(plain, arrived[start : start + 7])
        plain.step()
    for name, text in QUERIES.items():
        found = sorted(result.documents for result in plain.results(name))
        assert found == oracle(arrived, text), name
        assert plain.status(name).results == len(found)
    assert all(len(list(plain.results(name))) for name in QUERIES)


def test_outputs_are_typed(plain) -> None:
    plain.publish("R", [{"a": 1, "c": 0.5, "k": 3, "x": None, "t": 1.0}])
    plain.publish("S", [{"b": 1, "d": 1.5, "y": None, "x": "p", "t": 2.0}])
    plain.step()
    (both,) = plain.results("both")
    assert both.output == {"x": None, "z": None}
    (either,) = plain.results("either")
    assert either.output == {
        "a": 1,
        "c": 0.5,
        "k": 3,
        "R.x": None,
        "R.t": 1.0,
        "b": 1,
        "d": 1.5,
        "y": None,
        "S.x": "p",
        "S.t": 2.0,
    }
    assert either.documents == ["R-1", "S-1"]
    assert either.timestamp == 2.0


def test_unknown_column(plain) -> None:
    with pytest.raises(QueryError, match="the query reads zz; the columns of S are b, d, y, x, t"):
        plain.execute("select R.a from R [range 5], S [range 5] where R.a = S.zz")


def test_explain_shows_both_windows(plain) -> None:
    plain.step()
    shown = plain.explain("both")
    assert "left waits 10 s, right waits 2 rows" in shown
    assert "signature a = b and c < d in R join S" in shown


def test_spark_job_equals_oracle(spark_weir) -> None:
    weir = spark_weir
    weir.execute(STREAMS + "".join(f"create query {name} as {text};" for name, text in QUERIES.items()))
    arrived = arrivals(3)
    published(weir, arrived)
    weir.run(until_idle=True)
    for name, text in QUERIES.items():
        assert sorted(result.documents for result in weir.results(name)) == oracle(arrived, text), name

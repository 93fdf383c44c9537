"""SQL joins of three and more streams through the engine: with registrations and drops, restarts, on Spark."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import fishweir
from fishweir import testing
from fishweir.algebra.documents import Document, parse_document, tuple_to_document
from fishweir.algebra.join_oracle import evaluate_join
from fishweir.errors import QueryError
from fishweir.languages.script import parse_script

STREAMS = """
    create stream R (a int, c double, t double) timestamp t;
    create stream S (a int, b int, t double) timestamp t;
    create stream T (b int, k int, t double) timestamp t;
    create stream D timestamp t;
"""
QUERIES = {
    "chain": "select R.c, T.k as z from R [range 12], S [rows 4], T [range 9] "
    "where R.a = S.a and S.b = T.b and T.k > 0",
    "theta": "select * from R [range 4] join S [range 4] on R.a <= S.a join T [rows 2] on T.b < S.b where R.c > 1",
    "either": "select R.a from R [range 9], S [range 9], T [range 9] where R.a = S.a and (S.b = T.b or T.k > 1)",
    "itself": "select x.t as one, z.t as two from R [rows 6] as x, R [rows 6] as y, S [range 6] as z "
    "where x.a = y.a and y.a = z.a",
    "mixed": 'select R.a, D."@id" as i from R [range 9], S [rows 3], T [rows 3], D [range unbounded] '
    "where R.a = S.a and S.b = T.b and D.v = T.k",
    "apart": "select R.a from R [rows 1], S [range 2], T [rows 1]",
}


def arrivals(seed: int, size: int = 40) -> list[tuple[str, dict[str, object] | str]]:
    """Some are late, some have equal times."""
    draw, found = random.Random(seed), []
    for i in range(1, size + 1):
        stream, time = draw.choice("RRSSTTD"), float(max(1, i // 2 - draw.choice([0, 0, 0, 0, 2])))
        if stream == "D":
            found.append((stream, f"<d id='{i}'><t>{time}</t><v>{draw.choice([0, 1, 2])}</v><v>1</v></d>"))
        else:
            names = {"R": "ac", "S": "ab", "T": "bk"}[stream]
            found.append((stream, {name: draw.choice([None, 0, 1, 1, 2]) for name in names} | {"t": time}))
    return found


def documents_of(arrived) -> list[tuple[str, Document]]:
    counts, found = dict.fromkeys("RSTD", 0), []
    for stream, item in arrived:
        counts[stream] += 1
        root = parse_document(item.encode()) if isinstance(item, str) else tuple_to_document(stream, item)
        time = float(root.findtext("t"))
        found.append((stream, Document(f"{stream}-{counts[stream]}", time, root)))
    return found


def oracle(batches, text: str, since: int = 0, until: int | None = None) -> list[list[str]]:
    """The results that each document completes on arrival, among the documents since the query was registered."""
    (query,) = parse_script(text)
    come, found = [], []
    for number, (stream, document) in ((i, one) for i, batch in enumerate(batches) for one in batch):
        come.append((stream, document, number))
        fresh = {document.id}
        sides = [[d for s, d, _ in come if s == block.source.name] for block in query.shape.blocks]
        seen = {d.id for _, d, own in come if own >= since}
        if until is None or number < until:
            for result in evaluate_join(query.shape, query.constants, sides):
                ids = set(result.documents)
                if ids & fresh and ids <= seen:
                    found.append(result.documents)
    return sorted(found)


def created(names) -> str:
    return "".join(f"create query {name} as {QUERIES[name]};" for name in names)


@pytest.mark.parametrize("seed", [1, 2])
def test_micro_batches_equal_oracle(tmp_path: Path, seed: int) -> None:
    """`late` is registered after two micro-batches, the chain dropped after three; the home is reopened each time."""
    arrived = arrivals(seed)
    parts = [arrived[i : i + 8] for i in range(0, len(arrived), 8)]
    documents = documents_of(arrived)
    batches = [documents[i : i + 8] for i in range(0, len(documents), 8)]
    for number, part in enumerate(parts):
        with testing.open(tmp_path / "home") as weir:
            if number == 0:
                weir.execute(STREAMS + created(QUERIES))
            if number == 2:
                weir.execute(f"create query late as {QUERIES['either']}")
            if number == 3:
                weir.drop("chain")
            for stream, item in part:
                weir.publish(stream, [item])
            weir.step()
    with testing.open(tmp_path / "home") as weir:
        for name in [*QUERIES, "late"]:
            text = QUERIES["either" if name == "late" else name]
            wanted = oracle(batches, text, 2 if name == "late" else 0, 3 if name == "chain" else None)
            found = sorted(result.documents for result in weir.results(name))
            assert found == wanted, name
            assert found, name
            assert weir.status(name).results == len(found)
        assert len(oracle(batches, QUERIES["either"], 2)) < len(oracle(batches, QUERIES["either"]))


def test_output_and_explain(tmp_path: Path) -> None:
    with testing.open(tmp_path / "home") as weir:
        weir.execute(STREAMS + created(["theta", "chain"]))
        weir.publish("T", [{"b": 0, "k": 5, "t": 1.0}])
        weir.publish("S", [{"a": 2, "b": 1, "t": 2.0}])
        weir.publish("R", [{"a": 2, "c": 1.5, "t": 2.0}])
        weir.step()
        (result,) = weir.results("theta")
        assert result.documents == ["T-1", "R-1", "S-1"]
        assert result.timestamp == 2.0
        assert result.output == {
            "R.a": 2,
            "c": 1.5,
            "R.t": 2.0,
            "S.a": 2,
            "S.b": 1,
            "S.t": 2.0,
            "T.b": 0,
            "k": 5,
            "T.t": 1.0,
        }
        shown = weir.explain("theta")
        assert "R waits 4 s, S waits 4 s, T waits 2 rows" in shown
        assert "signature R#1.a <= S#2.a and S#2.b > T#3.b in R join S join T" in shown
        assert "in R join S join T" in weir.explain()


def test_queries_registered_in_bulk_share_a_table(tmp_path: Path) -> None:
    """Registered in bulk. Queries of a later segment join the retained documents since their registration."""
    statement = (
        "create query $name as select R.a from R [range $w], S [rows $n], T [range 9] "
        "where R.a = S.a and S.b = T.b and T.k > $k"
    )
    rows = [{"name": f"q{i}", "w": i % 7, "n": 1 + i % 4, "k": i % 3} for i in range(300)]
    arrived = arrivals(5, 24)
    documents = documents_of(arrived)
    batches = [documents[:12], documents[12:18], documents[18:]]
    with testing.open(tmp_path / "home") as weir:
        weir.execute(STREAMS)
        assert weir.register_many(statement, rows[:200]) == 200
        for part in (arrived[:12], arrived[12:18], arrived[18:]):
            for stream, item in part:
                weir.publish(stream, [item])
            weir.step()
            if len(weir.table.commits()) == 1:
                weir.register_many(statement, rows[200:])
        shown = weir.explain("q0")
        assert "queries: 300, shapes: 1" in shown
        counts = []
        for i in [*range(0, 300, 37), 201, 202, 203]:
            text = statement.partition(" as ")[2]
            for name, value in rows[i].items():
                text = text.replace(f"${name}", str(value))
            wanted = oracle(batches, text, 0 if i < 200 else 1)
            assert sorted(result.documents for result in weir.results(f"q{i}")) == wanted, text
            counts.append(len(wanted))
        assert any(counts)


def test_unknown_column_of_the_third_stream(tmp_path: Path) -> None:
    with testing.open(tmp_path / "home") as weir:
        weir.execute(STREAMS)
        with pytest.raises(QueryError, match="the query reads zz; the columns of T are b, k, t"):
            weir.execute("select R.a from R [range 5], S [range 5], T [range 5] where R.a = T.zz")


def test_spark_job_equals_oracle(spark_weir, spark) -> None:
    """Two runs of the job on one home; the second continues with the state of the first."""
    weir = spark_weir
    names = list(QUERIES)
    weir.execute(STREAMS + created(names))
    got = []
    weir.action("take", lambda result: got.append(result.documents))
    weir.execute(f"create query taken as {QUERIES['either']} do take")
    arrived = arrivals(3)
    documents = documents_of(arrived)
    for stream, item in arrived[:20]:
        weir.publish(stream, [item])
    weir.run(until_idle=True)
    with fishweir.open(weir.home.path, spark=spark) as again:
        for stream, item in arrived[20:]:
            again.publish(stream, [item])
        again.action("take", lambda result: got.append(result.documents))
        again.run(until_idle=True)
        for name in names:
            found = sorted(result.documents for result in again.results(name))
            assert found == oracle([documents[:20], documents[20:]], QUERIES[name]), name
        assert sorted(got) == sorted(result.documents for result in again.results("taken"))
        assert got

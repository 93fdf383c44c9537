"""Corner cases of joins: similar definitions, queries of one template in several segments, ends of windows.

All in micro-batches without Spark, compared with the oracle.
"""

from __future__ import annotations

import shutil

import pytest

import fishweir
from fishweir import testing
from fishweir.algebra.documents import Document, parse_document
from tests.engine.test_joins import expected, got


class Publisher:
    """Publishes to S, one micro-batch at a time, and records what the oracle needs."""

    def __init__(self, weir):
        self.weir, self.documents, self.batch = weir, [], 0

    def publish(self, texts, times):
        ids = self.weir.publish("S", texts, timestamps=times)
        for id, text, at in zip(ids, texts, times, strict=True):
            self.documents.append(("S", Document(id, at, parse_document(text.encode())), self.batch))
        self.weir.step()
        self.batch += 1

    def check(self, name, since=0):
        want = expected(self.weir, name, self.documents, since)
        assert got(self.weir, name) == want, name
        assert self.weir.status(name).results == len(want)
        return len(want)


def test_paths_with_the_same_spelling_are_distinguished(weir):
    """A name with a dot and two steps; the root's child and the document element."""
    weir.execute("""
        create stream S;
        create query whole as S->x JOIN{x/a = y/a, INF} S->y;
        create query root as S/a->x JOIN{x=y, INF} S/a->y;
        create query one as S//r[a.b->x] JOIN{x=y, INF} S//r[a.b->y];
        create query two as S//r[a/b->x] JOIN{x=y, INF} S//r[a/b->y];
    """)
    publisher = Publisher(weir)
    publisher.publish(["<a><a>1</a></a>", "<a>1</a>", "<b><a>1</a></b>", "<r><a.b>1</a.b></r>"], [0.0, 1.0, 2.0, 3.0])
    publisher.publish(["<r><a.b>1</a.b></r>", "<r><a><b>1</b></a></r>", "<r><a><b>1</b></a></r>"], [4.0, 5.0, 6.0])
    assert [publisher.check(name) for name in ("whole", "root", "one", "two")] == [12, 2, 2, 2]


@pytest.mark.parametrize(("limit", "predicate"), [("", "x=y AND u<v"), ("[@k = '1']", "x=y"), ("", "x!=y")])
def test_one_template_in_several_segments(weir, limit, predicate):
    """Rows that serve the queries of several segments are stored once."""
    statement = f"S//d{limit}[a->x][b->u] JOIN{{{predicate}, $t}} S//d[a->y][b->v]"
    weir.execute("create stream S")
    weir.register_many(f"create query $name as {statement}", [{"name": f"n{i}", "t": i} for i in range(600)])
    publisher = Publisher(weir)
    publisher.publish(["<d k='1'><a>1</a><b>2</b></d>"], [0.0])
    weir.execute(f"create query late as {statement.replace('$t', '5')}")
    publisher.publish(["<d k='1'><a>1</a><b>3</b></d>", "<d k='1'><a>2</a><b>3</b></d>"], [1.0, 2.0])
    publisher.publish(["<d k='1'><a>1</a><b>1</b></d>"], [3.0])
    assert len(list(weir.home.plan.glob("segment-*"))) == 2
    assert all([publisher.check("n2"), publisher.check("n599"), publisher.check("late", since=1)])


def test_partners_with_the_same_queries_form_one_row(weir):
    """A row ends where the queries of the pairs, their times or their versions differ; a late document is on the
    left."""
    weir.execute("create stream S; create query q as S//d[@k->x] FOLLOWED BY{x=y, INF} S//d[@k->y]")
    weir.execute("create query near as S//d[@k->x] JOIN{x=y, 6} S//d[@k->y]")
    publisher = Publisher(weir)
    publisher.publish(["<d k='1'/>"] * 4, [0.0, 1.0, 2.0, 5.0])
    weir.execute("create query new as S//d[@k->x] FOLLOWED BY{x=y, INF} S//d[@k->y]")
    publisher.publish(["<d k='1'/>", "<d k='2'/>"], [6.5, 7.0])
    publisher.publish(["<d k='1'/>"], [8.0])
    publisher.publish(["<d k='1'/>"], [3.0])
    assert [publisher.check("q"), publisher.check("near"), publisher.check("new", since=1)] == [21, 36, 3]
    rows = [weir.table.rows(commit).to_pylist() for commit in weir.table.commits()]
    assert [(row["document"], row["others"], row["side"]) for row in rows[1]] == [
        (5, [1], 1),
        (5, [2, 3, 4], 1),
        (5, [2, 3, 4], 0),
    ]
    seen = [(row["others"], row["since"]) for row in rows[2] if row["side"] == 1]
    assert seen == [([1, 2], 3), ([3, 4], 3), ([5], 4)]
    documents = [tuple(result.documents) for result in weir.results("q")]
    assert documents[:6] == [(f"S-{i}", f"S-{j}") for j in range(2, 5) for i in range(1, j)]


def test_the_end_of_a_window_is_rounded_consistently(weir):
    """2.4 - 0.1 is 2.3, but 2.4 - 2.3 is more than 0.1: retention and join use the same rounding."""
    weir.execute("create stream S; create query q as S//d[@k->x] FOLLOWED BY{x=y, 2.3} S//d[@k->y]")
    publisher = Publisher(weir)
    for key, at in ((1, 0.1), (2, 2.4), (1, 2.4)):
        publisher.publish([f"<d k='{key}'/>"], [at])
    assert publisher.check("q") == 1


def test_a_micro_batch_of_bad_documents_only(weir):
    """In a stream that joins read: nothing joins, and the next micro-batch continues."""
    weir.execute("create stream S; create stream T; create query q as S//d[@k->x] JOIN{x=y, INF} T//d[@k->y]")
    weir.publish("S", ["<d", "<e>"])
    weir.step()
    assert weir.status().retained == 0
    for stream in "ST":
        weir.publish(stream, ["<d k='1'/>", "<"], timestamps=[1.0, 2.0])
        weir.step()
    assert [r.documents for r in weir.results("q")] == [["S-3", "T-1"]]


def test_missing_or_truncated_state_is_not_treated_as_empty(weir):
    """Nothing is committed, and once the file is restored, the job continues."""
    weir.execute("create stream S; create query q as S//d[@k->x] JOIN{x=y, INF} S//d[@k->y]")
    weir.publish("S", ["<d k='1'/>"])
    weir.step()
    (file,) = weir.home.state.glob("*.state")
    body = file.read_bytes()
    weir.publish("S", ["<d k='1'/>"])
    for left in (body[: len(body) // 2], body[:100], b""):
        file.unlink()
        with pytest.raises(fishweir.FishweirError, match="missing"):
            weir.step()
        file.write_bytes(left)
        with pytest.raises(fishweir.HomeError, match=rf"{file.name} (has .* bytes instead of|is damaged)"):
            weir.step()
    file.write_bytes(body)
    weir.step()
    assert len(list(weir.results("q"))) == 2


def test_the_window_of_a_dropped_query_retains_nothing(weir):
    """Even if most queries of its segment still exist, so that the segment is not rewritten."""
    rows = [{"name": f"n{i}", "t": 10} for i in range(600)] + [{"name": "far", "t": 10**9}]
    weir.execute("create stream S")
    weir.register_many("create query $name as S//d[@k->x] FOLLOWED BY{x=y, $t} S//d[@k->y]", rows)
    sizes = []
    for i in range(10):
        if i == 5:
            weir.drop("far")
        weir.publish("S", ["<d k='1'/>"] * 10, timestamps=[i * 10.0] * 10)
        weir.step()
        sizes.append(weir.status().retained)
    assert sizes[4] == 50
    assert max(sizes[6:]) <= 40


def test_a_home_recreated_in_the_same_place_is_empty(tmp_path):
    found = []
    for where in ("R.a = S.a and R.a > 5", "R.a < S.a"):
        with testing.open(tmp_path / "home") as weir:
            weir.execute(
                "create stream R (a int, t double) timestamp t; create stream S (a int, t double) timestamp t;"
                f"create query j as select R.a from R [range 9], S [range 9] where {where};"
                f"create query m as select R.a from R [range 9], S [range 9], S [range 9] as z where {where};"
                "create query s as select a from R where a < 2"
            )
            weir.publish("R", [{"a": 1, "t": 1.0}])
            weir.publish("S", [{"a": 2, "t": 1.0}, {"a": 3, "t": 1.0}])
            weir.step()
            found.append({name: len(list(weir.results(name))) for name in "jms"})
        shutil.rmtree(tmp_path / "home")
    assert found == [{"j": 0, "m": 0, "s": 1}, {"j": 2, "m": 2, "s": 1}]


def test_windows_of_more_rows_than_there_are_numbers(tmp_path):
    with testing.open(tmp_path / "home") as weir:
        rows = 99999999999999999999
        weir.execute(
            "create stream R (a int); create stream S (a int);"
            f"create query j as select R.a from R [rows {rows}], S [rows {rows}] where R.a < S.a"
        )
        weir.publish("R", [{"a": 1}, {"a": 4}], timestamps=[1.0, 2.0])
        weir.publish("S", [{"a": 2}, {"a": 5}], timestamps=[1.0, 2.0])
        weir.step()
        assert len(list(weir.results("j"))) == 3


@pytest.mark.parametrize("times", [[1.0, 2.0, 3.0, 4.0], [1.0, 1.0, 1.0, 1.0], [1.0, 2.0, 2.0, 3.0]])
@pytest.mark.parametrize("cuts", [(4,), (1, 2, 3, 4), (2, 4)])
def test_the_newest_row_is_one_of_the_rows(weir, times, cuts):
    """CQL: the window of one row holds the tuple that arrived last and no other. Rows with equal times are ordered by
    arrival."""
    weir.execute("""
        create stream A (k int);
        create query one as select x.k as x, y.k as y from A [rows 1] as x, A [rows 1] as y;
        create query two as select x.k as x, y.k as y from A [rows 2] as x, A [rows 1] as y;
        create query three as select x.k as x, y.k as y, z.k as z
            from A [rows 3] as x, A [rows 2] as y, A [rows 1] as z;
    """)
    start = 0
    for end in cuts:
        weir.publish("A", [{"k": k + 1} for k in range(start, end)], timestamps=times[start:end])
        weir.step()
        start = end
    found = {name: sorted(tuple(r.output.values()) for r in weir.results(name)) for name in ("one", "two", "three")}
    assert found == {"one": [], "two": [(1, 2), (2, 3), (3, 4)], "three": [(1, 2, 3), (2, 3, 4)]}

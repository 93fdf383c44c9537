"""`distinct on ... within ...`: the first of each key, in every language, however the streams are cut and restarted."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given

import fishweir
from fishweir import testing
from fishweir.algebra.distinct import Distinct, key_of, passing
from fishweir.algebra.documents import parse_document
from fishweir.algebra.nodes import Step
from fishweir.engine.weir import Weir
from fishweir.pipeline.states import cached_states
from tests import strategies as st

DAY = 86400.0
STREAMS = """
create stream A timestamp at late by 10 years;
create stream B timestamp at late by 10 years;
"""
WITHIN = 5.0
KEY = Distinct(((Step("link"),), (Step("title"),)), WITHIN)
QUERIES = {
    "roses": "create feed roses from A | B distinct on link, title within 5 seconds",
    "chosen": "create feed chosen from A | B where [n = '1' or n = '2'] distinct on link, title within 5 seconds",
    "sql": "create query sql as select * from A where n = '1' or link = 'l1' distinct on link, title within 5 seconds",
    "xscl": "create query xscl as A/item[n = '1'] distinct on link, title within 5 seconds",
    "niagaracq": 'create niagaracq where <item><n>$n</></> element_as $i in "A", $n = "1" construct $i '
    "distinct on link, title within 5 seconds",
    "xquery": "create query xquery as for $i in stream('A')/item where $i/n = '1' return $i "
    "distinct on link, title within 5 seconds",
}
READS = {name: ("A", "B") if name in ("roses", "chosen") else ("A",) for name in QUERIES}
HOLDS = {"roses": lambda item: True, "chosen": lambda item: item[3] in ("1", "2")} | {
    name: (lambda item: item[3] == "1") for name in ("xscl", "niagaracq", "xquery")
}
HOLDS["sql"] = lambda item: item[3] == "1" or item[1] == "l1"

ITEMS = st.tuples(
    st.sampled_from("AB"),
    st.sampled_from(["", "l1", "l2"]),
    st.sampled_from(["", "t1"]),
    st.sampled_from("123"),
    st.integers(0, 25),
)


def body(item: tuple[str, str, str, str, int]) -> str:
    _, link, title, n, at = item
    links = f"<link>{link}</link>" if link else ""
    titles = f"<title>{title}</title>" if title else ""
    return f"<item>{links}{titles}<n>{n}</n><at>{at}</at></item>"


def expected(name: str, items: list[tuple[str, str, str, str, int]]) -> list[str]:
    counts = {"A": 0, "B": 0}
    selected = []
    for item in items:
        counts[item[0]] += 1
        if item[0] in READS[name] and HOLDS[name](item):
            key = key_of(parse_document(body(item).encode()), KEY)
            selected.append((f"{item[0]}-{counts[item[0]]}", key, float(item[4])))
    passes = passing([(key, at) for _, key, at in selected], WITHIN)
    return sorted(id for (id, _, _), is_first in zip(selected, passes, strict=True) if is_first)


def found(weir: Weir, name: str) -> list[str]:
    return sorted(id for result in weir.results(name) for id in result.documents)


@given(st.lists(ITEMS, min_size=1, max_size=24), st.sets(st.integers(1, 23)), st.integers(1, 6), st.integers(1, 2))
@st.examples(8)
def test_every_language_equals_the_oracle(tmp_path_factory, items, restarts, size, parallelism) -> None:  # type: ignore[no-untyped-def]
    """However the items are cut into micro-batches, wherever the engine is restarted."""
    home, clock = tmp_path_factory.mktemp("home"), testing.Clock(1000.0)
    cuts = [0, *sorted(cut for cut in restarts if cut < len(items)), len(items)]
    for first, last in pairwise(cuts):
        with testing.open(home, clock=clock, documents_per_batch=size, parallelism=parallelism) as weir:
            if not first:
                weir.execute(STREAMS + ";".join(QUERIES.values()))
            for item in items[first:last]:
                clock.advance(1)
                weir.publish(item[0], [body(item)])
            weir.run(until_idle=True)
            for name in QUERIES:
                assert found(weir, name) == expected(name, items[:last]), name


def test_arrival_order_decides_regardless_of_the_cut(weir: testing.Weir) -> None:
    """Streams are evaluated in separate slices; the arrival order spans all of them."""
    weir.execute("create stream A; create stream B; create feed U from A | B distinct on link within 7 days")
    for number in range(6):
        weir.publish("AB"[number % 2], [f"<item><link>{number // 3}</link></item>"])
    weir.run(until_idle=True)
    assert found(weir, "U") == ["A-1", "B-2"]


def test_an_update_passes_only_after_the_interval(weir: testing.Weir) -> None:
    weir.execute("create stream A; create feed U from A distinct on link within 7 days")
    for day in (0, 5, 7.5, 14, 14.6):
        weir.publish("A", ["<item><link>x</link></item>"], timestamps=[day * DAY])
    weir.run(until_idle=True)
    assert found(weir, "U") == ["A-1", "A-3", "A-5"]


def test_readers_of_a_distinct_feed_read_its_items(weir: testing.Weir) -> None:
    """The condition of a reader is checked on the items that pass, not before."""
    weir.execute("""
        create stream A;
        create feed U from A distinct on link within 7 days;
        create feed V from U where [title contains 'rock'];
        create query s as select title from U where title = 'rock';
    """)
    weir.publish("A", [f"<item><link>{link}</link><title>{t}</title></item>" for link, t in ("1p", "1r", "2r")])
    weir.publish("A", ["<item><link>3</link><title>rock</title></item>"] * 2)
    weir.run(until_idle=True)
    assert found(weir, "U") == ["A-1", "A-3", "A-4"]
    assert found(weir, "V") == ["A-4"]
    assert [result.output for result in weir.results("s")] == [{"title": "rock"}]


def test_tuples_and_documents_without_a_key(weir: testing.Weir) -> None:
    weir.execute("""
        create stream R (id int, word string);
        create query q as select id from R distinct on word within 1 hour;
    """)
    rows = [(1, "a"), (2, None), (3, "a"), (4, None), (5, "b")]
    weir.publish("R", [{"id": id, "word": word} for id, word in rows])
    weir.run(until_idle=True)
    assert [result.output["id"] for result in weir.results("q")] == [1, 2, 4, 5], "NULL is no duplicate of NULL"


def test_a_published_join_can_be_distinct_where_it_is_read(weir: testing.Weir) -> None:
    weir.execute("""
        create stream R (k int); create stream S (k int);
        create query j as select R.k from R [range 1 hour], S [range 1 hour] where R.k = S.k publish j;
        create query once as select k from j distinct on k within 1 hour;
    """)
    weir.publish("R", [{"k": 1}, {"k": 1}, {"k": 2}])
    weir.publish("S", [{"k": 1}, {"k": 2}])
    weir.run(until_idle=True)
    assert [r.output for r in weir.results("once")] == [{"k": 1}, {"k": 2}]


JOINS = {
    "sql": "select N.title, P.link from N [range 1 hour], P [range 1 hour] where N.title = P.title "
    "{} title within 1 hour",
    "roses": "from N as $n join last 1 hour on P with $n[title = window.title] {} title within 1 hour",
    "xscl": "N//item->x[.//title->t] JOIN{{t=u, 1 hour}} P//item->y[.//title->u] {} item/title within 1 hour",
    "chain": "N//item->x[.//title->t] JOIN{{t=u, 1 hour}} P//item->y[.//title->u] "
    "JOIN{{u=v, 1 hour}} P//item->z[.//title->v] {} item/title within 1 hour",
    "niagaracq": 'where <item><title>$t</></> element_as $a in "N", <item><title>$t</></> element_as $b in "P" '
    "construct <r><t>$t</></> {} t within 1 hour",
}


@pytest.mark.parametrize("language", JOINS)
def test_a_distinct_join_is_like_a_distinct_query_over_it(language: str, tmp_path: Path) -> None:
    """Over restarts, and it leaves nothing behind."""
    join, _, within = JOINS[language].format("distinct on").partition(" distinct on ")
    read = "select * from j" if language == "sql" else "from j"
    script = f"""
        create stream N; create stream P;
        create query j as {join} publish j;
        create query apart as {read} distinct on {within};
        create query once as {join} distinct on {within};
    """
    for number in range(3):
        with testing.open(tmp_path / "home") as weir:
            assert weir.execute(script) == ["j", "apart", "once"]
            for stream in "PN":
                items = [f"<item><title>t{i % 4}</title><link>{number} {i}</link></item>" for i in range(number, 9)]
                weir.publish(stream, items)
                weir.run(until_idle=True)
            outputs = [result.output for result in weir.results("once")]
            assert outputs == [result.output for result in weir.results("apart")]
            assert 0 < len(outputs) < len(list(weir.results("j")))
    with testing.open(tmp_path / "home") as weir:
        assert [query.name for query in weir.queries()] == ["j", "apart", "once"]
        for name in ("once", "apart", "j"):
            weir.drop(name)
        assert (weir.status().queries, sorted(weir.catalog.streams())) == (0, ["N", "P"])


def join_items(weir: testing.Weir, *titles: str) -> None:
    for stream in "PN":
        weir.publish(stream, [f"<item><title>{title}</title><link>{title[0]}</link></item>" for title in titles])
        weir.run(until_idle=True)


@pytest.mark.parametrize("language", JOINS)
def test_many_joins_are_distinct_as_one_by_one(weir: testing.Weir, language: str) -> None:
    weir.execute("create stream N; create stream P")
    kind, query = "create query $name as ", JOINS[language].format("distinct on")
    if language == "roses":
        kind, query = "create feed $name ", query.replace(" distinct", " where $n[title contains $word] distinct")
    rows = [{"name": f"many{i}", "word": word} for i, word in enumerate("abc")]
    assert weir.register_many(kind + query, rows) == 3
    for row in rows:
        one = kind.replace("$name", f"one{row['name']}") + query.replace("$word", f"'{row['word']}'")
        weir.execute(one)
    join_items(weir, "a b", "b c", "a b", "c a")
    for row in rows:
        outputs = [result.output for result in weir.results(row["name"])]
        assert outputs
        assert outputs == [result.output for result in weir.results(f"one{row['name']}")]
    assert len(weir.queries()) == 6


def test_a_feed_is_replaced_by_a_distinct_join_and_back(weir: testing.Weir, tmp_path: Path) -> None:
    """Its readers are updated, and the auxiliary queries of earlier definitions are dropped."""
    weir.execute("create stream N; create stream P")
    join = "from N as $n join last 1 hour on P with $n[title = window.title]"
    plain, first = "create or replace feed F from N", f"create or replace feed F {join} distinct on title within 1 hour"
    second = first.replace("on title", "on link")
    weir.execute(f"{first}; {first}; create query reads as from F where [title contains 'b']")
    join_items(weir, "a b", "b c", "a b", "a c")
    assert [len(list(weir.results(name))) for name in ("F", "reads")] == [3, 2]
    weir.execute(second)
    join_items(weir, "x b", "y b", "x c")
    assert [len(list(weir.results(name))) for name in ("F", "reads")] == [5, 4]
    weir.replace(first.replace("or replace ", ""))
    join_items(weir, "x b", "y b", "x c")
    assert [len(list(weir.results(name))) for name in ("F", "reads")] == [8, 6]
    weir.execute(plain)
    join_items(weir, "b", "b")
    assert [len(list(weir.results(name))) for name in ("F", "reads")] == [10, 8]
    assert weir.status().queries == 2
    weir.drop("reads")
    weir.drop("F")
    assert (weir.status().queries, sorted(weir.catalog.streams())) == (0, ["N", "P"])


def test_a_feed_of_a_feed_that_joins_is_distinct(weir: testing.Weir) -> None:
    weir.execute("""
        create stream N; create stream P;
        create feed Annotated from N as $n join last 1 hour on P with $n[title = window.title];
        create feed Once from Annotated distinct on link within 1 hour;
    """)
    weir.publish("P", ["<item><title>t</title></item>"])
    weir.run(until_idle=True)
    weir.publish("N", ["<item><title>t</title><link>l</link></item>"] * 2)
    weir.run(until_idle=True)
    (once,) = weir.results("Once")
    assert once.output.count("<annotation") == 1


def test_distinct_queries_are_added_dropped_and_share_a_group(weir: testing.Weir) -> None:
    weir.execute("create stream R (x int, w string)")
    weir.register_many(
        "create query $name as select w from R where x > $x distinct on w within 1 day",
        [{"name": f"q{i}", "x": i} for i in range(50)],
    )
    weir.publish("R", [{"x": 25, "w": "a"}, {"x": 45, "w": "a"}, {"x": 45, "w": "b"}])
    weir.step()
    weir.drop("q30")
    weir.publish("R", [{"x": 99, "w": "a"}])
    weir.run(until_idle=True)
    count = {f"q{i}": len(found(weir, f"q{i}")) for i in range(50)}
    assert [count[name] for name in ("q10", "q30", "q40")] == [2, 2, 2]
    assert count["q47"] == 1, "the first that the query itself selects"
    assert "distinct  on w within 86400 s, in arrival order" in weir.explain("q10")
    assert "size      queries: 50" in weir.explain("q10")


def test_state_is_bounded_by_the_interval(weir: testing.Weir, tmp_path: Path) -> None:
    """A thousand keys, one after the other: only those needed for the interval and the allowed lateness are kept."""
    weir.execute("""
        create stream R (k int, at double) timestamp at late by 5;
        create query q as select k from R distinct on k within 10 seconds;
    """)
    kept = []
    for start in range(0, 1000, 50):
        weir.publish("R", [{"k": i, "at": float(i)} for i in range(start, start + 50)])
        weir.step()
        files = (tmp_path / "home" / "state").glob("*.state")
        kept.append(sum(len(cached_states(file)["distinct"].firsts) for file in files))  # type: ignore[attr-defined]
    assert len(found(weir, "q")) == 1000
    assert max(kept[5:]) <= 2 * max(kept[:5]) < 500


@pytest.mark.parametrize(
    ("statement", "at", "says"),
    [
        ("create feed F from A distinct on link", (1, 38), "expected ',' or 'within'"),
        ("create feed F from A distinct on link within 7 fortnights", (1, 46), "not a unit of time"),
        ("create feed F from A distinct on within 7 days", (1, 41), "expected"),
        ("create feed F from A distinct on link within 0 days", (1, 39), "longer than 0"),
        ("create query q as select x from R distinct on y within 1 day", (1, 47), "the columns of R are x"),
        (
            "create query q as select R.x as x from R [range 5], R as S [range 5] where R.x = S.x "
            "distinct on y within 5",
            (1, 98),
            "the columns of",
        ),
        ("create or replace feed F from A distinct on link", (1, 49), "expected ',' or 'within'"),
        ("from A distinct on a/@b/c within 5", (1, 20), "continues after an attribute"),
    ],
)
def test_invalid_clauses_are_refused_with_their_position(
    weir: testing.Weir, statement: str, at: tuple[int, int], says: str
) -> None:
    weir.execute("create stream A; create stream R (x int)")
    with pytest.raises(fishweir.QueryError) as refused:
        weir.execute(statement)
    assert says in str(refused.value)
    assert (refused.value.line, refused.value.column) == at


def test_through_the_spark_job(tmp_path: Path, spark) -> None:  # type: ignore[no-untyped-def]
    for run in range(2):
        with fishweir.open(tmp_path / "home", spark=spark) as weir:
            if not run:
                weir.execute("""
                    create stream A; create stream B;
                    create feed U from A | B distinct on link, title within 7 days;
                """)
            items = [f"<item><link>{i % 7}</link><title>{i % 2}</title></item>" for i in range(100)]
            weir.publish("A", items, timestamps=[0.0] * 100)
            weir.publish("B", items, timestamps=[0.0] * 100)
            weir.run(until_idle=True)
            assert len(found(weir, "U")) == 14

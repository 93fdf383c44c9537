"""SJ-Join and IBS-JS through the engine: the oracle's results, and the default's over restarts and other queries."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given

from fishweir.evaluate.join.join_tables import JoinTable
from fishweir.languages.script import parse_script
from fishweir.papers.spatialjoin import window_joins
from fishweir.papers.spatialjoin.window_queries import is_published
from fishweir.papers.strategies import OFFERED, named_strategies
from tests import strategies as st
from tests.evaluate.join.runs_support import expected, joined, parsed, what_is_needed
from tests.evaluate.join.test_sql_joins import batches_of, streams
from tests.papers.strategies.support import REOPEN, Event, Execute, Publish, Together, explained, inline, play

NAMES = [*OFFERED["window-joins"]]
STREAMS = "create stream R (a double, b int, name string); create stream S (c double, d int, name string);"
COLUMNS = {"R": ["a", "b"], "S": ["c", "d"]}


def query(rng: random.Random) -> str:
    """Comparisons and ranges on either side, sometimes with conditions that the paper does not support."""
    left, right = rng.choice([("R", "S"), ("R", "S"), ("R", "S"), ("S", "R"), ("R", "R")])

    def column(stream: str) -> str:
        return rng.choice(COLUMNS[stream])

    edges = [
        f"l.{column(left)} {rng.choice(['=', '<', '<=', '>', '>='])} r.{column(right)}"
        for _ in range(rng.randint(1, 2))
    ]
    edges += rng.choice([[], [], [], ["l.name = r.name"], [f"l.{column(left)} != r.{column(right)}"]])
    for alias, stream in (("l", left), ("r", right)):
        if rng.random() < 0.5:
            edges.append(f"{alias}.{column(stream)} {rng.choice(['<', '>=', '='])} {rng.randint(0, 6)}")
    edges += rng.choice([[], [], [], ["l.name like '%x%'"]])
    windows = [rng.choice([f"range {rng.choice([0, 2, 5, 30])}", f"rows {rng.randint(1, 4)}", "rows 3"]) for _ in "lr"]
    return f"select * from {left} [{windows[0]}] as l, {right} [{windows[1]}] as r where {' and '.join(edges)}"


def queries(rng: random.Random, first: int, count: int) -> Execute:
    return Execute("".join(f"create query q{i} as {query(rng)};" for i in range(first, first + count)))


def tuples(rng: random.Random, start: float) -> list[Event]:
    def value() -> int | None:
        return rng.choice([None, *range(7)])

    def row(stream: str) -> dict[str, object]:
        return {column: value() for column in COLUMNS[stream]} | {"name": rng.choice(["x", "y", None])}

    def some(stream: str) -> Publish:
        times = [start + rng.choice([0, 1, 2, 5, 9]) for _ in range(5)]
        return Publish(stream, [row(stream) for _ in range(5)], times if rng.random() < 0.3 else sorted(times))

    return [some(rng.choice("RS")), Together([some("R"), some("S")])]


def history(seed: int) -> list[Event]:
    rng = random.Random(seed)
    first: list[Event] = [Execute(STREAMS), queries(rng, 0, 12), *tuples(rng, 0.0)]
    drops = "".join(f"delete q{i};" for i in rng.sample(range(12), 4))
    later = [REOPEN, Execute(drops), queries(rng, 12, 6), *tuples(rng, 4.0), REOPEN, *tuples(rng, 10.0)]
    return [*first, *later]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", range(1, 5))
def test_results_match_the_default(name: str, seed: int, tmp_path: Path) -> None:
    expected = play(inline(tmp_path / "default", {}), history(seed))
    assert expected
    assert play(inline(tmp_path / name, {"window-joins": name}, parallelism=1 + seed % 3), history(seed)) == expected


@pytest.mark.parametrize("name", NAMES)
def test_retained_state_serves_every_strategy(name: str, tmp_path: Path) -> None:
    """The home is opened with the default, twice with the strategy, and with the default again."""
    less = "create query less as select * from R [range 9] as l, S [range 9] as r where l.a < r.c and l.b > 1;"
    play(inline(tmp_path, {}), [Execute(STREAMS + less), Publish("R", [{"a": 1.0, "b": 2}], [1.0])])
    for number, requested in enumerate(({"window-joins": name}, {"window-joins": name}, {}), 1):
        found = play(inline(tmp_path, requested), [Publish("S", [{"c": 2.0}], [1.0 + number])])
        assert len(found) == number
    found = play(inline(tmp_path, {}), [Publish("R", [{"a": 0.0, "b": 2}], [5.0])])
    assert len(found) == 6, "three tuples of S are retained, two of them by the strategy"


@pytest.mark.parametrize("name", NAMES)
def test_a_document_may_have_some_attributes_only(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the strategy had not taken joins by equality when the document arrived."""

    def by_order(table: JoinTable) -> bool:
        return is_published(table) and not any(edge.is_equality for edge in table.template.edges)

    both = """create query less as select * from R [range 9] as l, S [range 9] as r where l.a < r.c;
    create query same as select * from R [range 9] as l, S [range 9] as r where l.name = r.name and l.a < r.c;"""
    requested = inline(tmp_path, {"window-joins": name})
    with monkeypatch.context() as patched:
        patched.setattr(window_joins, "is_published", by_order)
        play(requested, [Execute(STREAMS + both), Publish("R", [{"a": 1.0, "name": "x"}], [1.0])])
    play(inline(tmp_path, {}), [Publish("S", [{"c": 0.0, "name": "y"}], [2.0])])
    found = play(requested, [Publish("S", [{"c": 2.0, "name": "x"}], [3.0])])
    assert [result["query"] for result in found] == ["less", "same"]
    assert f"decided   by the strategy {name}" in explained(inline(tmp_path, {}), "same")


@pytest.mark.parametrize("name", NAMES)
def test_rows_count_all_documents_of_the_stream(name: str, tmp_path: Path) -> None:
    """Also documents without the columns, from before the strategy, and from before any document had the columns."""
    last = "create query last as select * from R [rows 2] as l, S [rows 2] as r where l.a = r.c;"
    empty, one, other = [{"name": "x"}], [{"a": 1.0}], [{"c": 1.0}]
    parts: list[list[Event]] = [
        [Execute(STREAMS + last), Publish("R", empty, [5.0])],
        [Publish("R", one, [3.0]), Publish("R", empty, [6.0]), Publish("S", other, [7.0])],
        [Publish("R", one, [6.5]), Publish("S", other, [8.0]), Publish("S", other, [6.0]), Publish("R", empty, [9.0])],
    ]
    found = [
        [result["documents"] for result in play(inline(tmp_path, requested), part)]
        for requested, part in zip(({}, {"window-joins": name}, {"window-joins": name}), parts, strict=True)
    ]
    assert found == [[], [], [["R-4", "S-1"], ["R-4", "S-2"], ["S-3", "R-4"]]]


@pytest.mark.parametrize("name", NAMES)
def test_explain_shows_the_strategy(name: str, tmp_path: Path) -> None:
    """Inequality, and windows of rows in a self-join, are left to the default."""
    which = {
        "less": ("select * from R [range 9] as l, S [range 9] as r where l.a < r.c and l.b > 1", True),
        "same": ("select * from R [rows 9] as l, S [range 9] as r where l.name = r.name", True),
        "other": ("select * from R [range 9] as l, S [range 9] as r where l.name = r.name and l.a != r.c", False),
        "itself": ("select * from R [rows 9] as l, R [rows 9] as r where l.name = r.name and l.a < r.a", False),
    }
    script = STREAMS + "".join(f"create query {name} as {text};" for name, (text, _) in which.items())
    rows = [Publish("R", [{"a": 1.0, "b": 2, "name": "x"}], [1.0]), Publish("S", [{"c": 2.0, "name": "x"}], [2.0])]
    assert len(play(inline(tmp_path, {"window-joins": name}), [Execute(script), *rows])) == 3
    for query, (_, taken) in which.items():
        assert (f"decided   by the strategy {name}" in explained(inline(tmp_path, {}), query)) == taken


OPERATORS, COLUMN = st.sampled_from(["=", "=", "<", "<=", ">", ">="]), st.sampled_from("abc")
WINDOWS = st.sampled_from(["range 0", "range 2", "range 5", "range unbounded", "rows 1", "rows 2", "rows 3", "rows 5"])


@st.composite
def published(draw: st.DrawFn) -> tuple[object, object]:
    """Joins that the paper supports."""
    parts = [f"l.{draw(COLUMN)} {draw(OPERATORS)} r.{draw(COLUMN)}" for _ in range(draw(st.integers(1, 2)))]
    ranges = st.tuples(st.sampled_from("lr"), COLUMN, OPERATORS, st.sampled_from([0, 1, 2]))
    parts += [f"{side}.{column} {op} {value}" for side, column, op, value in draw(st.lists(ranges, max_size=2))]
    sources = draw(st.sampled_from(["RS", "RS", "SR"]))
    text = ", ".join(f"{s} [{draw(WINDOWS)}] as {n}" for s, n in zip(sources, "lr", strict=True))
    (statement,) = parse_script(f"select * from {text} where {' and '.join(parts)}")
    return statement.shape, statement.constants  # type: ignore[union-attr]


@pytest.mark.parametrize("name", NAMES)
@st.examples(30)
@given(some=st.lists(published(), min_size=1, max_size=6), stream=streams(12), parts=st.sampled_from([1, 3]))
def test_runs_equal_oracle(name: str, some: list[object], stream: tuple[list[object], list[int]], parts: int) -> None:
    """The values include texts that are not numbers and NULL; documents outside all windows are dropped."""
    docs, requested = parsed(stream[0]), named_strategies({"window-joins": name})
    batches = batches_of(docs, stream[1])
    assert joined(some, batches, parts, requested=requested) == expected(some, docs)
    dropping = joined(
        some, batches, requested=requested, merge=lambda s, runs: [s.merged(runs, what_is_needed(s, runs))]
    )
    assert dropping == expected(some, docs)

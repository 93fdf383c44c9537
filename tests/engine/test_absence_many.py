"""Many queries with `NOT FOLLOWED BY`: rows of one shape, whatever else is registered, dropped or restarted."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given

from fishweir import testing
from fishweir.algebra.codec import from_json
from fishweir.catalog.increments import QuerySet
from fishweir.engine import absences
from fishweir.engine.waiting import WaitingDocuments, matched_run, waiting_run
from fishweir.engine.weir import Weir
from fishweir.errors import HomeError
from tests import strategies as st
from tests.engine.test_absence import LATE, declare, document, found

Found = list[tuple[list[str], float]]
TEMPLATE = "create query $name as S//a->x[k > $least] NOT FOLLOWED BY{x/k = y/k, $window} S//b->y"


@pytest.fixture(autouse=True)
def save_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(absences, "SAVE_EVERY", 1)


def expected(arrived: Iterable[tuple[str, int, int]], least: int, window: int) -> Found:
    some = list(arrived)
    return sorted(
        ([f"S-{n}"], time + float(window))
        for n, (kind, time, key) in enumerate(some, 1)
        if kind == "a"
        and key > least
        and not any(other == "b" and k == key and 0 < t - time <= window for other, t, k in some)
    )


rows = st.lists(st.tuples(st.sampled_from("ababc"), st.integers(0, 25), st.integers(0, 2)), max_size=14)


@st.examples(30)
@given(
    rows,
    st.lists(st.integers(1, 4), min_size=1, max_size=6),
    st.sets(st.integers(0, 13)),
    st.lists(st.tuples(st.integers(-1, 1), st.integers(1, 12)), min_size=1, max_size=6),
    st.sets(st.integers(0, 5)),
)
def test_random_queries_of_one_shape_equal_the_definition(
    some: list[tuple[str, int, int]],
    cuts: list[int],
    restarts: set[int],
    queries: list[tuple[int, int]],
    dropped: set[int],
) -> None:
    arrived, front = list[tuple[str, int, int]](), 0
    for kind, time, key in some:
        arrived.append((kind, max(time, front - LATE), key))
        front = max(front, arrived[-1][1])
    with TemporaryDirectory() as folder:
        weir = testing.open(f"{folder}/home")
        declare(weir)
        given = [{"name": f"n{i}", "least": least, "window": window} for i, (least, window) in enumerate(queries)]
        weir.register_many(TEMPLATE, given)
        weir.execute("create query plain as S//a; create query pairs as S//a->x JOIN{x/k = y/k, 3} S//b->y")
        start = 0
        for turn, cut in enumerate(cuts * len(arrived)):
            if start >= len(arrived):
                break
            weir.publish("S", [document(*row) for row in arrived[start : start + cut]])
            weir.step()
            if turn == 1:
                weir.drop_many([f"n{i}" for i in sorted(dropped) if i < len(queries)])
            if start in restarts:
                weir.close()
                weir = testing.open(f"{folder}/home")
            start += cut
        dropped = dropped if len(cuts * len(arrived)) > 1 and start > cuts[0] else set()
        weir.publish("S", [document("c", 1000, 0)])
        weir.run(until_idle=True)
        for i, (least, window) in enumerate(queries):
            if i not in dropped:
                assert found(weir, f"n{i}") == expected(arrived, least, window)
        assert len(list(weir.results("plain"))) == sum(kind == "a" for kind, _, _ in arrived)
        weir.close()


def test_they_need_neither_streams_nor_queries_of_their_own(weir: Weir) -> None:
    declare(weir)
    weir.register_many(TEMPLATE, [{"name": f"n{i}", "least": i, "window": 5} for i in range(300)])
    assert list(weir.catalog.streams()) == ["S"]
    assert weir.catalog.count_active(0, weir.catalog.version()) == 300
    assert len({weir.catalog.query(f"n{i}").shape for i in (0, 299)}) == 1  # type: ignore[union-attr]


def test_a_script_registers_what_single_statements_do(weir: Weir) -> None:
    declare(weir)
    texts = [TEMPLATE.replace("$name", f"n{i}").replace("$least", str(i)).replace("$window", "5") for i in range(200)]
    weir.execute(";\n".join(texts))
    weir.execute(texts[7].replace("n7", "single"))
    many, single = (weir.catalog.query(name) for name in ("n7", "single"))
    assert many is not None
    assert single is not None
    assert (many.shape, many.constants) == (single.shape, single.constants)


def test_a_result_for_each_binding_and_once_for_alternatives(weir: Weir) -> None:
    declare(weir)
    weir.execute("""
        create query bound as select <v>$v</v> from S//a/k->v NOT FOLLOWED BY{5} S//b;
        create query either as S//a[k = 1 or k = 2]->x NOT FOLLOWED BY{x/k = y/k, 5} S//b->y;
    """)
    weir.publish("S", ["<a><t>1</t><k>1</k><k>2</k></a>", document("c", 50, 0)])
    weir.run(until_idle=True)
    assert [result.output for result in weir.results("bound")] == ["<v><k>1</k></v>", "<v><k>2</k></v>"]
    assert found(weir, "either") == [(["S-1"], 6.0)]


def test_other_queries_read_what_is_published(weir: Weir) -> None:
    declare(weir)
    weir.execute("""
        S//a->x[k->u] NOT FOLLOWED BY{u = v, 5} S//b[k->v] publish gone;
        create query large as select k from gone where k > 1;
        create query every as S//a->x NOT FOLLOWED BY{x/k = y/k, 5} S//b->y distinct on k within 1 hour;
    """)
    weir.publish("S", [document("a", 1, 1), document("a", 2, 2), document("a", 3, 2), document("c", 50, 0)])
    weir.run(until_idle=True)
    assert [result.output for result in weir.results("large")] == [{"k": "2"}, {"k": "2"}]
    assert found(weir, "every") == [(["S-1"], 6.0), (["S-2"], 7.0)]


@pytest.mark.parametrize("strategy", ["mmqjp", "mmqjp-views", "sequential"])
def test_matches_are_found_by_any_strategy(tmp_path: Path, strategy: str) -> None:
    with testing.open(tmp_path / "home", strategies={"joins": strategy}) as weir:
        declare(weir)
        weir.execute("create query gone as S//a->x[k->u] NOT FOLLOWED BY{u = v, 5} S//b[k->v]")
        weir.publish("S", [document("a", 1, 1), document("a", 2, 2), document("b", 4, 2), document("c", 50, 0)])
        weir.run(until_idle=True)
        assert found(weir, "gone") == [(["S-1"], 6.0)]


def test_a_query_registered_later_does_not_see_documents_that_wait(weir: Weir) -> None:
    declare(weir)
    weir.execute("create query early as S//a->x NOT FOLLOWED BY{x/k = y/k, 5} S//b->y")
    weir.publish("S", [document("a", 1, 1)])
    weir.run(until_idle=True)
    weir.execute("create query late as S//a->x NOT FOLLOWED BY{x/k = y/k, 5} S//b->y")
    weir.publish("S", [document("a", 2, 2), document("c", 50, 0)])
    weir.run(until_idle=True)
    assert found(weir, "early") == [(["S-1"], 6.0), (["S-2"], 7.0)]
    assert found(weir, "late") == [(["S-2"], 7.0)]


def test_a_lost_position_loses_and_repeats_nothing(tmp_path: Path) -> None:
    for content in (None, "{", json.dumps({"after": 1_000_000})):
        home = tmp_path / f"home{content}"
        for turn, some in enumerate([[("a", 1, 1)], [("a", 9, 2)], [("c", 20, 0)], [("b", 21, 2)], [("c", 50, 0)]]):
            with testing.open(home) as weir:
                if turn == 0:
                    declare(weir)
                    weir.execute("create query gone as S//a->x[k->u] NOT FOLLOWED BY{u = v, 15} S//b[k->v]")
                weir.publish("S", [document(*row) for row in some])
                weir.run(until_idle=True)
            place = home / "delivery" / "absences.json"
            place.unlink(missing_ok=True)
            if content is not None:
                place.parent.mkdir(exist_ok=True)
                place.write_text(content)
        with testing.open(home) as weir:
            assert found(weir, "gone") == [(["S-1"], 16.0)]


def test_queries_of_earlier_versions_are_refused() -> None:
    with pytest.raises(HomeError, match="drop them with that version"):
        from_json({"!": "Unless", "query": "join.1", "seconds": 5.0})


@given(st.sets(st.integers(1, 40)))
def test_sets_of_queries(numbers: set[int]) -> None:
    chosen = QuerySet(np.array(sorted(numbers), np.int64))
    assert chosen.has(np.arange(42)).tolist() == [number in numbers for number in range(42)]


@st.examples(60)
@given(
    st.lists(
        st.tuples(
            st.lists(st.tuples(st.integers(1, 3), st.integers(1, 9)), max_size=5),
            st.lists(st.tuples(st.integers(1, 3), st.integers(1, 9)), max_size=3),
            st.integers(0, 14),
        ),
        max_size=12,
    )
)
def test_waiting_documents_equal_a_dictionary(
    steps: list[tuple[list[tuple[int, int]], list[tuple[int, int]], int]],
) -> None:
    """A document of number n waits until n + 3 and has its matches before that."""
    kept, waiting, matched, given = WaitingDocuments(), dict[tuple[int, int], int](), set[tuple[int, int]](), set()
    for batch, (new, matches, time) in enumerate(steps):
        new = [pair for pair in dict.fromkeys(new) if pair not in given]
        given.update(new)
        matches = [pair for pair in matches if pair in given]
        waiting |= dict.fromkeys(new, batch)
        matched.update(matches)
        queries, documents = (np.array([pair[i] for pair in new], np.int64) for i in (0, 1))
        batches, places = np.full(len(new), batch), np.arange(len(new))
        run = waiting_run(documents + 3.0, queries, documents, batches, places)
        own = (np.array([pair[i] for pair in matches], np.int64) for i in (0, 1))
        kept.add(run, matched_run(*own, np.array([pair[1] + 3.0 for pair in matches])))
        due = {pair for pair in waiting if pair[1] + 3 < time}
        result = kept.due(lambda _, time=time: float(time))  # type: ignore[misc]
        pairs = [] if result is None else list(zip(result.queries.tolist(), result.documents.tolist(), strict=True))
        assert sorted(pairs) == sorted(due - matched)
        waiting = {pair: at for pair, at in waiting.items() if pair not in due}
        assert kept.first is None if not waiting else kept.first is not None and kept.first <= min(waiting.values())

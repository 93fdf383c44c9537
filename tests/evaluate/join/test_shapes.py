"""Hash joins per shape equal the oracle, alone and beside edge sets; the rule that chooses them; the change between the
two in a home."""

from __future__ import annotations

import random

from hypothesis import given

from fishweir import testing
from fishweir.evaluate.join.kind import ByShape
from fishweir.evaluate.join.shape_rule import by_anchor, cheaper_by_shape, shape_costs
from fishweir.evaluate.statistics import PathStatistics
from fishweir.languages.script import parse_script
from tests import strategies as st
from tests.evaluate.join.runs_support import expected, joined, parsed, tables_of, what_is_needed
from tests.evaluate.join.test_fast_joins import batches_of, streams
from tests.evaluate.join.test_placement import counted
from tests.generators import joins


class EveryShape(ByShape):
    """Takes each plain join, or every other one."""

    def __init__(self, step: int = 1) -> None:
        self.step = step

    def take(self, groups, statistics):
        plain = [place for place, table in groups.items() if table.is_plain][:: self.step]
        return [self.bundle(plain)] if plain else []


@st.examples(60)
@given(
    st.booleans().flatmap(lambda deep: st.lists(joins(("S", "T"), deep=deep), min_size=1, max_size=6)),
    streams(("S", "T"), 9),
    st.sampled_from([1, 3]),
    st.sampled_from([1, 2]),
    st.booleans(),
)
def test_runs_equal_oracle(queries, stream, parts, step, merges):
    texts, cuts = stream
    docs = parsed(texts)
    merge = (lambda stage, runs: [stage.merged(runs)]) if merges else None
    found = joined(queries, batches_of(docs, cuts), parts, merge=merge, requested=[EveryShape(step)])
    assert found == expected(queries, docs)


def test_dropped_state_is_not_needed():
    rng = random.Random(1)
    text = "S/i[a->x][b->y] FOLLOWED BY{{x=u AND y=v, {}}} S/i[a->u][b->v];"
    some = [(s.shape, s.constants) for s in parse_script("".join(text.format(w) for w in (1, 3, 9)))]
    rows = [f"<i><a>{rng.randrange(2)}</a><b>{rng.randrange(3)}</b></i>" for _ in range(60)]
    docs = parsed([("S", row, float(i)) for i, row in enumerate(rows)])

    def merge(stage, runs):
        return [stage.merged(runs, what_is_needed(stage, runs))]

    batches = [docs[i : i + 7] for i in range(0, 60, 7)]
    assert joined(some, batches, merge=merge, requested=[EveryShape()]) == expected(some, docs)


def plain(*shapes: str):
    text = ";".join(
        f"S/i{''.join(f'[{c}->x{c}]' for c in s)} JOIN{{{' AND '.join(f'x{c}=y{c}' for c in s)}, 5}} "
        f"S/i{''.join(f'[{c}->y{c}]' for c in s)}"
        for s in shapes
    )
    return dict(enumerate(tables_of([(s.shape, s.constants) for s in parse_script(text)])))


def statistics(**distinct: int):
    return {f"S\ti.{name}": counted(many) for name, many in distinct.items()}


def test_few_shapes_with_a_common_anchor_value_have_hash_joins():
    tables = plain("ab", "ac")
    assert cheaper_by_shape(tables, statistics(a=20, b=20, c=20)) == [0, 1]
    assert cheaper_by_shape(tables, statistics(a=5_000, b=20, c=20)) == []


def test_a_shape_with_only_the_anchor_needs_all_hits():
    tables = plain("a", "ab", "ac")
    assert cheaper_by_shape(tables, statistics(a=20, b=20, c=20)) == []


def test_many_shapes_share_a_set():
    columns = "bcdefghi"
    tables = plain(*(f"a{one}{two}" for one in columns for two in columns if one < two))
    assert cheaper_by_shape(tables, statistics(a=20, **dict.fromkeys(columns, 20))) == []


def test_without_statistics_nothing_is_chosen():
    tables = plain("ab")
    assert cheaper_by_shape(tables, {}) == []
    assert shape_costs(list(tables.values()), {"S\ti.b": PathStatistics()}) is None
    assert list(by_anchor(tables).values()) == [[0]]


def test_a_home_changes_strategy_once_values_are_counted(tmp_path):
    """The same state serves both; a restart in between is harmless."""
    rng = random.Random(2)
    query = "create query q as S/i[a->x][b->y] FOLLOWED BY{x=u AND y=v, 500} S/i[a->u][b->v]"
    rows = [(rng.randrange(3), rng.randrange(300)) for _ in range(900)]
    texts = [f"<i><a>{a}</a><b>{b % 3 if i < 100 else b}</b></i>" for i, (a, b) in enumerate(rows)]
    explained = []
    for start in range(0, 900, 300):
        with testing.open(tmp_path / "home", parallelism=2) as weir:
            if not start:
                weir.execute(f"create stream S; {query}")
                explained.append(weir.explain("q"))
            for at in range(start, start + 300, 100):
                weir.publish("S", texts[at : at + 100], timestamps=[float(i) for i in range(at, at + 100)])
                weir.step()
            explained.append(weir.explain("q"))
            found = sorted(tuple(result.documents) for result in weir.results("q"))
    pairs = [(a, b % 3 if i < 100 else b) for i, (a, b) in enumerate(rows)]
    wanted = [
        (f"S-{i + 1}", f"S-{j + 1}") for j in range(900) for i in range(max(0, j - 500), j) if pairs[i] == pairs[j]
    ]
    assert found == sorted(wanted)
    assert "looked up once per set" in explained[0]
    assert "by a hash join of its shape" in explained[-1]
